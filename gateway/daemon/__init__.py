"""The daemon: it builds all parts of a gateway, holds the lock on the home, and orders the start and stop."""
