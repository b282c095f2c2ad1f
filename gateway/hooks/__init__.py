"""The hooks: who is told of what happens, in which order, and what they may change."""

from gateway.events.event import Deny, End, Event, Pause, Question, Retry, is_yes, on
from gateway.hooks.cause import CAUSE, Cause, caused_by
from gateway.hooks.hook import Health, Hook
from gateway.hooks.registry import HookRegistry
from gateway.hooks.scope import Scope

__all__ = [
    "CAUSE",
    "Cause",
    "Deny",
    "End",
    "Event",
    "Health",
    "Hook",
    "HookRegistry",
    "Pause",
    "Question",
    "Retry",
    "Scope",
    "caused_by",
    "is_yes",
    "on",
]
