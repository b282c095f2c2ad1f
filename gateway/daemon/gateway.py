"""The one place where the parts meet: all groups of parts, each built from those before it. Nothing runs yet."""

from collections.abc import Callable, Mapping
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
from gateway.daemon.notices import list_all_notices
from gateway.daemon.platforms import PlatformPart
from gateway.daemon.status import StatusReport
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.sessions.repository import SessionRepository

T = TypeVar("T")


class GatewayGroups(msgspec.Struct, frozen=True):
    """All groups, for the start alone; whatever else needs some of them names these."""

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
        """The function with the groups that its first parameters name: `storage`, `people` and so on."""
        groups = msgspec.structs.asdict(self)
        names = takewhile(groups.__contains__, signature(function).parameters)
        return partial(function, *map(groups.__getitem__, names))


def build_gateway(base: Base) -> GatewayGroups:
    run, presence = Run(), build_presence(base)
    storage, people = build_storage(base, presence), build_people(base)
    hooks = build_hooks(base, presence, storage)
    work = build_work(base, storage, hooks)
    turns = build_turns(base, run, presence, storage, people, hooks, work)
    networks = build_networks(base, presence, storage, people, turns)
    return GatewayGroups(base, run, presence, storage, people, hooks, work, turns, networks)


class Gateway:
    """Each part by its name, for verbs that do not name their groups yet."""

    sessions: SessionRepository
    folder_hooks: FolderHooks
    platforms: list[PlatformPart]

    def __init__(self, groups: GatewayGroups) -> None:
        self.groups, self.status = groups, StatusReport(groups.bind)

    def __getattr__(self, name: str) -> Any:
        groups = self.groups
        if name in OTHER_NAMES:
            return OTHER_NAMES[name](groups)
        return next(getattr(one, name) for one in msgspec.structs.astuple(groups) if name in one.__struct_fields__)

    def bind(self, function: Callable[..., T]) -> Callable[..., T]:
        return self.groups.bind(function)

    def notices(self) -> list[str]:
        """What somebody may want to know though nothing is wrong."""
        found: list[str] = self.groups.bind(list_all_notices)()
        return found


OTHER_NAMES: Mapping[str, Callable[[GatewayGroups], Any]] = {
    "settings": lambda groups: groups.base.settings,
    "configuration": lambda groups: groups.base.current.configuration,
    "agents": lambda groups: groups.work.agents.now,
    "shared_files": lambda groups: groups.storage.files,
    "shared_folders": lambda groups: groups.storage.folders,
    "plugins": lambda groups: groups.hooks.offers,
}
