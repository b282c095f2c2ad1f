"""The group of parts that do the work: the agents, their tools and their programs."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from gateway.agent.context_files import ContextFiles
from gateway.agent.mcp.servers import McpServers
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.daemon.agents import SHELL_VARIABLES, Agents, ToolSurroundings
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.hooks import describe_hooks
from gateway.daemon.part_settings import mcp_specs_from
from gateway.daemon.tool_servers import ToolServerJournal
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.media_process import MediaProcess
from gateway.usage.search_count import SearchCount
from gateway.voice.program import VoicePrograms
from gateway.worker.process_marks import mark_of


class CurrentAgents:
    """The agents of the configuration in effect (`now`); a reload replaces these agents."""

    def __init__(self, build: Callable[[Configuration], Agents], configuration: Configuration) -> None:
        self.build = build
        self.now = build(configuration)


class Work(msgspec.Struct, frozen=True):
    """The agents, their tool servers, the files with their instructions, and programs for pictures and voices."""

    agents: CurrentAgents
    tool_servers: McpServers
    tool_journal: ToolServerJournal
    context_files: ContextFiles
    media: MediaProcess
    voice_programs: VoicePrograms


def build_work(base: Base, storage: Storage, people: People, hooks: Hooks) -> Work:
    home, configuration = base.home, base.current.configuration
    tool_journal, context_files = ToolServerJournal(base.engine), ContextFiles(home.context_copies)
    tool_servers = McpServers(mcp_specs_from(base.settings, home, hooks.parser, ()), tool_journal)
    skills = hooks.skill_hooks.list_loaded
    searches = SearchCount(base.engine, people.usage.totals.today, lambda: base.settings.tools.search.a_day)
    around = ToolSurroundings(base.fork_server.run, hooks.parser, context_files, skills, storage.memory, searches.take)
    describe = partial(describe_hooks, hooks.folder_hooks, "owner")

    def build(found: Configuration) -> Agents:
        tools = tuple(tool_servers.servers.values())
        return Agents(found.settings, home, found.environ, base.registry, describe, around, tools)

    return Work(
        CurrentAgents(build, configuration),
        tool_servers,
        tool_journal,
        context_files,
        MediaProcess(base.fork_server, home.logs),
        build_voice_programs(configuration.environ, home, base.fork_server),
    )


def build_voice_programs(environ: Mapping[str, str], home: Home, fork_server: ForkServerClient) -> VoicePrograms:
    """Build the voice programs, without secrets in their environment."""
    env = {name: environ[name] for name in SHELL_VARIABLES if name in environ}
    return VoicePrograms(env, mark_of(home.lock), fork_server.start_program if fork_server.settings.fork else None)
