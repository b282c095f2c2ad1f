"""The agents that the settings describe: who answers which chat, with which model and which tools."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from gateway.agent import Agent, Model, Tool, TurnLimits
from gateway.agent.context_files import ContextFiles
from gateway.agent.libraries import describe_install, is_installed
from gateway.agent.models.demo_agent import ListHooks, make_demo_agent
from gateway.agent.models.factory import ModelSpec, lazy_model
from gateway.agent.models.fallback import RetryPolicy
from gateway.agent.models.prices import find_price, list_prices
from gateway.agent.models.script import read_script
from gateway.agent.skills import find_skills
from gateway.agent.toolbox.chat import make_chat_tools
from gateway.agent.toolbox.file_reach import READABLE, FileReach
from gateway.agent.toolbox.files import make_file_tools
from gateway.agent.toolbox.key_homes import WIDE_ROOT, find_wide_roots, list_key_homes, list_startup_files
from gateway.agent.toolbox.memory import Memory, make_memory_tools
from gateway.agent.toolbox.search import SearchOptions, TakeSearch, make_search_tool
from gateway.agent.toolbox.shell import SHELL, RunCommand, ShellOptions, make_shell_tool
from gateway.agent.toolbox.shell_rules import ShellPlaces
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.agent.toolbox.web import PageParser, WebOptions, make_web_tool
from gateway.agent.toolbox.workspace import make_workspace
from gateway.agent.tools import ToolSource, choose_sources, find_tool
from gateway.agent.turn_tools import TURN_TOOLS
from gateway.chats.rules import ChatRule, RuleName
from gateway.config.home import Home
from gateway.config.providers import DEMO, PROVIDERS
from gateway.config.settings import MAIN, ModelSettings, Settings
from gateway.daemon.installed_skills import find_installed_skills
from gateway.errors import ConfigError
from gateway.files.folders import UNCLAIMED
from gateway.hooks import HookRegistry
from gateway.jobs.messages import JOB_MODEL
from gateway.messages.message import Message
from gateway.sessions.session import Session
from gateway.worker.sandbox import find_support

log = logging.getLogger(__name__)

DEFAULT_MODEL = "default"
LANGUAGE = "In this chat, answer in the language with the tag `{}`, whatever language you are written to in."
DATABASE_SUFFIXES = ("", "-wal", "-shm", ".lock")  # the files that belong to a database
SHELL_VARIABLES = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR")


class ToolSurroundings(msgspec.Struct, frozen=True):
    """The services that tools use. A change of the configuration keeps these services.

    `run_command` and `parser` do work that must not happen in this process. `context_files` protects instruction files
    from commands; `list_skills` returns the folders of the skills that a session has loaded: the session's commands may
    read these folders. `memory` holds the notes of people, `take_search` counts the searches of each person.
    """

    run_command: RunCommand
    parser: PageParser
    context_files: ContextFiles
    list_skills: Callable[[str], Sequence[Path]]
    memory: Memory
    take_search: TakeSearch


class Agents:
    """The agents and models that the settings name. The start builds all agents, and reports wrong settings.

    A model that is not built in is made at its first use.
    """

    def __init__(
        self,
        settings: Settings,
        home: Home,
        environ: Mapping[str, str],
        registry: HookRegistry,
        list_hooks: ListHooks,
        surroundings: ToolSurroundings,
        sources: tuple[ToolSource, ...] = (),
    ) -> None:
        self._settings = settings
        self._home = home
        self._environ = environ
        self._registry = registry
        self._sources = sources
        self._surroundings = surroundings
        self._models = {DEFAULT_MODEL: self._model(DEFAULT_MODEL, settings.model)}
        self._models |= {name: self._model(name, model) for name, model in settings.models.items()}
        self._demo = make_demo_agent(memory=surroundings.memory, hooks=list_hooks)
        placed, wrong = find_skills([home.skills])
        installed, left_out = find_installed_skills(home, placed)
        self.skills, self.findings = (*placed, *installed), (*wrong, *left_out)
        roots = [home.path(root) for root in settings.tools.roots]
        named = (settings.main, *settings.agents.values())
        instructions = [roots[0] / one for agent in named for one in agent.context_files] if roots else []
        protected = self._list_protected()
        inner = tuple(root for root in roots if _is_inner(root, home.own_folder, protected))
        forbidden = (*protected, home.own_folder)  # the whole folder, with files that are added later
        real_roots = [os.path.realpath(root) for root in roots]
        guarded = [
            place
            for place in (*list_key_homes(environ), *list_startup_files(environ))
            if any(map(Path(os.path.realpath(place)).is_relative_to, real_roots))
        ]
        self.reach = FileReach(
            tuple(roots), home.files, home.files / UNCLAIMED, forbidden, tuple(instructions), inner, tuple(guarded)
        )
        for root in find_wide_roots(roots, home.root, environ):
            log.warning("%s", WIDE_ROOT.format(root=root))
        try:
            make_workspace(roots, forbidden)
        except OSError as error:
            raise ConfigError(f"tools.roots: {error.filename}: {error.strerror}; name a folder") from None
        self.shell = self._make_shell()
        self._tools = self._make_tools()
        self._named = {MAIN: settings.main} | dict(settings.agents)
        self._agents = {name: self._agent(name, ()) for name in self._named}

    @property
    def models(self) -> list[str]:
        """The names of the models that a session can choose; the default comes first."""
        return list(self._models)

    @property
    def names(self) -> frozenset[str]:
        """The names of all agents."""
        return frozenset(self._agents)

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of the gateway's own tools that an agent may have; tool servers and plugins add further tools."""
        return frozenset({*(tool.name for tool in (*self._tools, *self._demo.tools)), *TURN_TOOLS})

    @property
    def model_description(self) -> str:
        """The name of the default model, for people."""
        name = self._models[DEFAULT_MODEL].name
        return f"{name} (built in: no key, no network)" if self._settings.model.provider == DEMO else name

    @property
    def main(self) -> Agent:
        """Return the agent that answers if no route names another agent."""
        return self._agents[MAIN]

    async def warm_models(self) -> None:
        """Prepare the models for their first answers, in a tenth of a second."""
        for model in self._models.values():
            if warm := getattr(model, "warm", None):
                await warm()

    def choose(self, message: Message, session: Session, rules: Mapping[RuleName, ChatRule], named: str = "") -> Agent:
        """Return the named agent or the agent of the chat's rules.

        Its model is the one of the job, of the session or of these rules.
        """
        agent = self._agents.get(named or message.agent) or self.find(rules["agent"].value)
        of_job = message.extra.get(JOB_MODEL) if message.is_job else None
        model = self._models.get(of_job or session.model) or self._models.get(rules["model"].value)
        agent = replace(agent, model=model) if model else agent
        if language := rules["language"].value:
            agent = replace(agent, instructions=f"{agent.instructions}\n\n{LANGUAGE.format(language)}".strip())
        return agent

    def find(self, *names: str) -> Agent:
        """Return the first of these agents that exists, or the main agent: a rule may name an agent that is gone."""
        return next((self._agents[name] for name in names if name in self._agents), self._agents[MAIN])

    def find_shell(self, *names: str) -> Tool | None:
        """Return the shell tool of the first of these agents that exists, whatever its model; None if it has none."""
        wanted = self._named[self.find(*names).name].tools
        return find_tool(select_by_name(self._tools, wanted), SHELL)

    def _agent(self, name: str, callers: tuple[str, ...]) -> Agent:
        """Make an agent and the agents that it may call, without its own callers: the recursion would never end."""
        wanted = self._named[name]
        model = wanted.model or DEFAULT_MODEL
        below = tuple(self._agent(one, (*callers, name)) for one in wanted.agents if one not in (*callers, name))
        tools, skills, agents, sources = self._tools, self.skills, below, choose_sources(self._sources, wanted.tools)
        if self._settings_of(model).provider == DEMO:  # the demo model knows only its own tools
            tools, skills, agents = self._demo.tools, (*self._demo.skills, *skills), below or self._demo.agents
            if self._settings_of(model).script:
                tools = (*tools, *(tool for tool in self._tools if find_tool(tools, tool.name) is None))
            else:
                sources = ()
        roots = [self._home.path(root) for root in self._settings.tools.roots[:1]]
        return Agent(
            name,
            self._models[model],
            instructions=wanted.instructions,
            description=wanted.description,
            context_files=tuple(root / one for root in roots for one in wanted.context_files),
            kept_files=self._surroundings.context_files,
            tools=select_by_name(tools, wanted.tools),
            sources=sources,
            skills=select_by_name(skills, wanted.skills),
            agents=agents,
            limits=TurnLimits(wanted.max_hops, wanted.max_tokens, wanted.max_time),
            context_window=self._settings_of(model).context_window,
            transfers=wanted.transfers,
            picture_turns=wanted.picture_turns,
            vision=self._models[wanted.vision] if wanted.vision else None,
        )

    def _settings_of(self, model: str) -> ModelSettings:
        return self._settings.model if model == DEFAULT_MODEL else self._settings.models[model]

    def _model(self, name: str, model: ModelSettings) -> Model:
        if model.provider == DEMO and model.script:
            return read_script(self._home.path(model.script))
        chosen = {name: model, **{other: self._settings.models[other] for other in model.fallbacks}}
        specs = [
            replace(model_spec_of(one, settings, self._environ), prices=list_prices(self._settings, settings))
            for one, settings in chosen.items()
        ]
        patience = RetryPolicy(tries=model.retries + 1)
        return lazy_model(tuple(specs), self._registry.run, self._registry.wants, patience)

    def _make_tools(self) -> tuple[Tool, ...]:
        """Make the gateway's own tools; they cannot reach the files that control the gateway."""
        settings = self._settings.tools
        found = [
            *make_file_tools(self.reach.find_workspace, settings.output_limit),
            *make_memory_tools(self._surroundings.memory),
            *make_chat_tools(self.shell),
        ]
        found.append(
            make_web_tool(WebOptions(frozenset(settings.fetch_hosts), settings.output_limit, self._surroundings.parser))
        )
        if (found_by := settings.search).provider != "off":
            take, limit = self._surroundings.take_search, settings.output_limit
            found.append(
                make_search_tool(SearchOptions(found_by.provider, limit, take, found_by.url, found_by.key.reveal()))
            )
        if self.shell:
            found.append(make_shell_tool(self.shell))
        return tuple(found)

    def _make_shell(self) -> ShellOptions | None:
        settings, around = self._settings.tools, self._surroundings
        if settings.shell == "off":
            return None
        env = {name: self._environ[name] for name in SHELL_VARIABLES if name in self._environ}
        watch = partial(around.context_files.watch, self.reach.instructions)
        return ShellOptions(settings, self._find_places, env, around.run_command, self._make_sandbox(), watch)

    def _find_places(self, facts: Mapping[str, Any]) -> ShellPlaces:
        """Return the places where commands run and write, and the places hidden from commands, such as keys."""
        workspace = self.reach.find_workspace(facts)
        own = map(self._home.path, self._settings.tools.sandbox.hide)
        others = [root for root in self.reach.roots if root not in workspace.roots and root.parent != root]
        hidden = (self._home.root, *workspace.forbidden, *others, *list_key_homes(self._environ), *own)
        skills = self._surroundings.list_skills(str(facts.get("session_id", "")))
        closed = [place for place in hidden if place not in others]
        granted = [one for one in facts.get(READABLE, ()) if not any(is_one_inside(one, place) for place in closed)]
        path, kept = self._environ.get("PATH", ""), list_startup_files(self._environ)
        return ShellPlaces(workspace.roots[0], workspace.roots, hidden, path, (*skills, *granted), kept)

    def _make_sandbox(self) -> ShellSandbox:
        wanted = self._settings.tools.sandbox
        readable = tuple(map(self._home.path, wanted.read))
        found = ShellSandbox(wanted, find_support(), readable, tuple(map(self._home.path, wanted.write)))
        if self._settings.tools.shell == "sandboxed" and not found.is_held:
            log.warning("tools.shell is `sandboxed`, and this machine has no sandbox that holds: every command asks")
        return found

    def _list_protected(self) -> list[Path]:
        """List the places that control the gateway: hooks (a skill may contain hooks), settings, secrets, state."""
        home = self._home
        hooks = [home.hooks, home.plugins, *(home.path(one) for one in self._settings.hooks.dirs)]
        adapters = [home.path(one) for one in self._settings.adapters.dirs]
        skills = [home.skills, *(skill.folder for skill in self.skills)]  # a skill may be a link to another place
        settings = [home.env, home.boot_md, home.heartbeat_md, home.hermes_config]
        databases = [Path(f"{file}{end}") for file in (home.journal, home.search) for end in DATABASE_SUFFIXES]
        return [*hooks, *adapters, *skills, *settings, *databases, *home.own_places]


def is_one_inside(one: Path, other: Path) -> bool:
    """Return True if one of the places holds the other."""
    first, second = Path(os.path.realpath(one)), Path(os.path.realpath(other))
    return first.is_relative_to(second) or second.is_relative_to(first)


def _is_inner(root: Path, own_folder: Path, protected: Sequence[Path]) -> bool:
    """Return True if the root is in the gateway's own folder and not protected, such as the workspace."""
    real, own = Path(os.path.realpath(root)), Path(os.path.realpath(own_folder))
    is_taken = any(real.is_relative_to(os.path.realpath(place)) for place in protected)
    return own in real.parents and not is_taken


def model_spec_of(name: str, model: ModelSettings, environ: Mapping[str, str]) -> ModelSpec:
    """Return the factory's description of a model."""
    if model.provider == DEMO:
        return ModelSpec(name, DEMO, DEMO)
    offer = PROVIDERS[model.provider]
    headers = {header: value for header, variable in offer.payer_headers.items() if (value := environ.get(variable))}
    kwargs: dict[str, Any] = {
        "base_url": model.base_url or offer.base_url,
        "stall": model.timeout,
        "extra": model.options,
        **({} if model.pictures else {"pictures": False}),
        **({"headers": headers} if headers else {}),
    }
    return ModelSpec(name, offer.language, model.name, model.api_key.reveal(), kwargs, find_price(model))


def list_missing_libraries(settings: Settings) -> list[str]:
    """List the missing libraries that the configuration needs; the rest of the gateway runs without them."""
    named = [name for name, server in settings.mcp_servers.items() if server.enabled]
    if not named or is_installed("mcp"):
        return []
    return [f"mcp_servers.{named[0]} needs a package that is not installed: {describe_install('mcp')}"]


def select_by_name(found: "tuple[Any, ...]", names: tuple[str, ...] | None) -> "tuple[Any, ...]":
    """Return the items with these names, or all items if `names` is None."""
    return found if names is None else tuple(one for one in found if one.name in names)
