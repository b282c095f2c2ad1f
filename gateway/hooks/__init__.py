"""The hooks: the functions that an event calls, their order, and what they may change."""

from gateway.events import Deny, End, Event, Retry, is_yes, on
from gateway.hooks.registry import HookRegistry
from gateway.hooks.subscriptions import Subscription

__all__ = ["Deny", "End", "Event", "HookRegistry", "Retry", "Subscription", "is_yes", "on"]
