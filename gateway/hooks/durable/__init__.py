"""The events for durable hooks: their deliveries, their dead letters, and the end of both."""
