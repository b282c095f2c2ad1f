"""The group of hooks: folders, skills, offers of plugins, and the files that hooks read."""

from typing import TYPE_CHECKING

import msgspec

from gateway.adapters.terminal import PLATFORM
from gateway.daemon.cluster_table import build_other_hooks
from gateway.daemon.groups.process import Base, NodePresence
from gateway.daemon.groups.storage import Storage
from gateway.daemon.hooks import build_hook_environment, list_sources
from gateway.daemon.part_settings import add_agent_hooks
from gateway.daemon.platforms import list_enabled
from gateway.daemon.skill_hooks import SkillHooks
from gateway.hermes.plugin_host import Plugins
from gateway.hermes.session_list import SessionList
from gateway.hermes.state_follower import StateFollower
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.places.sources import Source
from gateway.hooks.services import FileWriters, HookPorts
from gateway.parser.parser_process import ParserProcess

if TYPE_CHECKING:
    from gateway.traces.trace_sender import TraceSender


class Hooks(msgspec.Struct, frozen=True):
    """The parts of hooks. `offers` come from plugins; `state_follower` and `session_list` write Hermes's files."""

    folder_hooks: FolderHooks
    skill_hooks: SkillHooks
    offers: Plugins
    parser: ParserProcess
    traces: "TraceSender | None"
    state_follower: StateFollower
    session_list: SessionList


def build_hooks(base: Base, presence: NodePresence, storage: Storage) -> Hooks:
    home, settings, node = base.home, base.settings, presence.nodes.name
    others = build_other_hooks(base.engine, home, base.current.configuration, node)
    state_follower = StateFollower(home.hermes_state, base.engine, settings.sessions.state_db)
    session_list = SessionList(home, base.engine, storage.sessions, state_follower.is_foreign)
    parser = ParserProcess(base.fork_server, home.logs / "parser.log")
    traces = build_traces(base, node) if settings.traces.endpoint else None
    ports = HookPorts(
        FileWriters(state_follower, session_list),
        parser.match,
        traces.note_call if traces else None,
        storage.find_files,
        storage.marks.tools,
    )
    served = (PLATFORM, *{one.platform for one in list_enabled(settings.platforms)})
    around = build_hook_environment(home, base.current.configuration, served, ports)
    own = add_agent_hooks(settings)
    folder_hooks = FolderHooks(base.registry, base.fork_server, base.engine, own, around, others)
    skill_hooks, offers = SkillHooks(base.engine, home), Plugins(folder_hooks.plugin_tools)
    return Hooks(folder_hooks, skill_hooks, offers, parser, traces, state_follower, session_list)


def list_all_sources(base: Base, hooks: Hooks) -> tuple[Source, ...]:
    """List the places of hooks. Skills come first: any other hook of the same name replaces the hook of a skill."""
    others = hooks.folder_hooks.others.list_sources(base.home.hooks)
    return (*hooks.skill_hooks.sources, *list_sources(base.home, base.current.configuration, others))


async def reload_places(base: Base, hooks: Hooks) -> None:
    """Load and unload hooks, so that they match the current places of hooks."""
    await hooks.folder_hooks.follow(list_all_sources(base, hooks))


def build_traces(base: Base, node: str) -> "TraceSender":
    """Build the sender of traces, which names the provider of each model."""
    from gateway.traces.trace_sender import TraceSender  # noqa: PLC0415 - only where a collector is named

    def find_provider(model: str) -> str:
        known = (base.settings.model, *base.settings.models.values())
        return next((one.provider for one in known if one.name == model), "")

    return TraceSender(base.engine, base.settings.traces.endpoint, find_provider, node)
