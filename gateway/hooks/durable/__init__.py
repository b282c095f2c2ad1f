"""The events that hooks are owed: their deliveries, their dead letters, and the end of both."""
