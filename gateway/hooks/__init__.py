"""The hooks: which functions an event is given to, in which order, and what they may change."""

from typing import TYPE_CHECKING, Any

from gateway.events import Deny, End, Event, Retry, is_yes, on
from gateway.hooks.registry import HookRegistry
from gateway.hooks.subscriptions import Subscription
from gateway.public import get_moved

__all__ = ["Deny", "End", "Event", "HookRegistry", "Retry", "Subscription", "is_yes", "on"]

if not TYPE_CHECKING:  # a type checker knows what is here, and nothing else

    def __getattr__(name: str) -> Any:
        return get_moved(__name__, name)
