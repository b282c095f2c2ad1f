"""All groups of parts. `build_gateway` builds each group from the groups before, and starts no part."""

from collections.abc import Callable
from functools import partial
from inspect import signature
from itertools import takewhile
from typing import Any, TypeVar

import msgspec

from gateway.daemon.groups.hooks import Hooks, build_hooks
from gateway.daemon.groups.networks import Networks, build_networks
from gateway.daemon.groups.people import People, build_people
from gateway.daemon.groups.process import Base, NodePresence, Run, build_presence
from gateway.daemon.groups.storage import Storage, build_storage
from gateway.daemon.groups.turns import Turns, build_turns
from gateway.daemon.groups.work import Work, build_work

T = TypeVar("T")


class Gateway(msgspec.Struct, frozen=True):
    """All groups of parts. Only the start uses this class; other functions name the groups that they need."""

    base: Base
    run: Run
    presence: NodePresence
    storage: Storage
    people: People
    hooks: Hooks
    work: Work
    turns: Turns
    networks: Networks

    def bind(self, function: Callable[..., T]) -> Callable[..., T]:
        """Return the function, bound to the groups that its first parameters name: `storage`, `people` and so on."""
        groups = msgspec.structs.asdict(self)
        names = takewhile(groups.__contains__, signature(function).parameters)
        return partial(function, *map(groups.__getitem__, names))

    def find(self, name: str) -> Any:
        """Return the group with this name, or the part with this name in a group; `bind` names that method."""
        groups = {"bind": self.bind, **msgspec.structs.asdict(self)}
        if name in groups:
            return groups[name]
        parts = (getattr(group, name) for group in msgspec.structs.astuple(self) if name in group.__struct_fields__)
        return next(parts)


def build_gateway(base: Base) -> Gateway:
    run, presence = Run(), build_presence(base)
    storage, people = build_storage(base, presence), build_people(base)
    hooks = build_hooks(base, presence, storage)
    work = build_work(base, storage, people, hooks)
    turns = build_turns(base, run, presence, storage, people, hooks, work)
    networks = build_networks(base, presence, storage, people, turns)
    return Gateway(base, run, presence, storage, people, hooks, work, turns, networks)
