"""The hooks: who is told of what happens, in which order, and what they may change."""

from gateway.events import Deny, End, Event, Pause, Question, Retry, is_yes, on
from gateway.hooks.cause import CAUSE, Cause, use_cause
from gateway.hooks.hook import Hook, HookHealth
from gateway.hooks.registry import HookRegistry
from gateway.hooks.scope import HookScope

__all__ = [
    "CAUSE",
    "Cause",
    "Deny",
    "End",
    "Event",
    "Hook",
    "HookHealth",
    "HookRegistry",
    "HookScope",
    "Pause",
    "Question",
    "Retry",
    "is_yes",
    "on",
    "use_cause",
]
