"""The hooks: which functions an event is given to, in which order, and what they may change."""

from gateway.events import Deny, End, Event, Pause, Question, Retry, is_yes, on
from gateway.hooks.cause import CAUSE, Cause, use_cause
from gateway.hooks.hook import Hook
from gateway.hooks.registry import HookRegistry
from gateway.hooks.scope import HookScope
from gateway.hooks.subscriptions import Subscription

__all__ = [
    "CAUSE",
    "Cause",
    "Deny",
    "End",
    "Event",
    "Hook",
    "HookRegistry",
    "HookScope",
    "Pause",
    "Question",
    "Retry",
    "Subscription",
    "is_yes",
    "on",
    "use_cause",
]
