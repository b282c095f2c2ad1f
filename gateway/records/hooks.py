"""Records of hooks: what they keep and are owed, what people decided about them, and which gateway has which.

They stand in the journal with all others, which `gateway.records.records` reads and writes.
"""

from typing import Any

import msgspec

from gateway.messages.steps import JournalRecord


class HookDecisionState(JournalRecord, tag="switches", frozen=True, kw_only=True):
    """Which hooks people have switched on or off, and which content they have trusted; the last one counts."""

    enabled: dict[str, bool] = msgspec.field(default_factory=dict)
    trusted: dict[str, str] = msgspec.field(default_factory=dict)


class OwedHook(msgspec.Struct, frozen=True, omit_defaults=True):
    """A durable hook, and which events it is owed. `token` is the name of its consumer."""

    hook: str
    token: str
    events: tuple[str, ...]
    intercepts: tuple[str, ...] = ()
    when: dict[str, Any] = msgspec.field(default_factory=dict)


class HookFolder(msgspec.Struct, frozen=True, omit_defaults=True):
    """What tells apart two folders of one name."""

    digest: str
    version: str = ""


class HookGuard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is denied where a hook cannot answer. `stored_as`: under which name it is switched, where that is another
    one."""

    intercepts: tuple[str, ...]
    when: dict[str, Any] = msgspec.field(default_factory=dict)
    order: float = 0
    stored_as: str = ""


class NodeHooks(JournalRecord, tag="hooks", frozen=True, kw_only=True):
    """Which hooks a gateway has in folders, by their names, which of them guard something, and what those that are
    durable are owed; the last one of each gateway counts."""

    node: str
    folders: dict[str, HookFolder] = msgspec.field(default_factory=dict)
    owed: tuple[OwedHook, ...] = ()
    guards: dict[str, HookGuard] = msgspec.field(default_factory=dict)


class StoredValue(JournalRecord, tag="stored", frozen=True, kw_only=True):
    """What a hook keeps under a key; the last one counts."""

    hook: str
    key: str
    value: Any


class EmittedEvent(JournalRecord, tag="event", frozen=True, kw_only=True):
    """An event that a durable hook is owed."""

    name: str
    fields: dict[str, Any]
    depth: int = 0  # how many events came before it, each caused by a hook
