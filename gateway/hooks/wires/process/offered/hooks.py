"""`gateway.hooks`, as a handler sees it."""

from gateway.events import Deny, End, Event, Retry, on

__all__ = ["Deny", "End", "Event", "Retry", "on"]
