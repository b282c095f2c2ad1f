"""Records of hooks: stored values, pending events, people's decisions about them, and the hooks of each gateway.

`gateway.records.records` reads and writes them with all others.
"""

from typing import Any

import msgspec

from gateway.messages.steps import JournalRecord


class HookDecisionState(JournalRecord, tag="switches", frozen=True, kw_only=True):
    """The hooks that people switched on or off, and the content that they trusted; the last record counts."""

    enabled: dict[str, bool] = msgspec.field(default_factory=dict)
    trusted: dict[str, str] = msgspec.field(default_factory=dict)


class OwedHook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A durable hook and the events that it subscribes to. `token` is the name of its consumer."""

    hook: str
    token: str
    events: tuple[str, ...]
    intercepts: tuple[str, ...] = ()
    when: dict[str, Any] = msgspec.field(default_factory=dict)


class HookFolder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of a hook's folder, to compare folders of the same name."""

    digest: str
    version: str = ""


class HookGuard(msgspec.Struct, frozen=True, omit_defaults=True):
    """The events that are denied if a hook cannot answer.

    `stored_as`: the name under which it is switched, if different.
    """

    intercepts: tuple[str, ...]
    when: dict[str, Any] = msgspec.field(default_factory=dict)
    order: float = 0
    stored_as: str = ""


class NodeHooks(JournalRecord, tag="hooks", frozen=True, kw_only=True):
    """The hook folders of a gateway by name, with their guards and the subscriptions of durable hooks.

    The last record of each gateway counts.
    """

    node: str
    folders: dict[str, HookFolder] = msgspec.field(default_factory=dict)
    owed: tuple[OwedHook, ...] = ()
    guards: dict[str, HookGuard] = msgspec.field(default_factory=dict)


class StoredValue(JournalRecord, tag="stored", frozen=True, kw_only=True):
    """A value that a hook stored under a key; the last record counts."""

    hook: str
    key: str
    value: Any


class EmittedEvent(JournalRecord, tag="event", frozen=True, kw_only=True):
    """An event that is pending for durable hooks."""

    name: str
    fields: dict[str, Any]
    depth: int = 0  # the number of events before it, each caused by a hook
