"""The tools, skills and commands of Hermes plugins, for the agent and for people, and the plugins' own requests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from uuid import uuid4

import anyio
import msgspec
from msgspec import structs

from gateway.access.access_control import INTERNAL
from gateway.agent import Agent, ModelRequest, Ports, Skill, Tool, ToolContext, run_tool
from gateway.agent.model_call import call_model
from gateway.agent.skills import read_skill
from gateway.agent.toolbox.file_reach import FOLDER, READABLE
from gateway.agent.tools import find_tool
from gateway.dispatcher.chat_commands import CommandCall, describe_unknown_command
from gateway.dispatcher.commands import Command, CommandResult, RunCommand
from gateway.dispatcher.message_events import build_place_fields
from gateway.errors import AgentError, BudgetRefusal, Conflict, HookError, ModelError
from gateway.events import Pause
from gateway.hermes.plugin.arguments import as_openai_messages
from gateway.hermes.plugin.plugin_context import OVERRIDE_OPTION
from gateway.hermes.plugin_manifest import ANY_TOOL, COMMANDS, OVERRIDES
from gateway.hermes.session_list import entry_of
from gateway.hermes.shim.tool_names import HERMES_TOOLS
from gateway.hermes.shim.tool_results import TOOL_RESULTS, Ending, read_override, show_result
from gateway.hooks import HookRegistry
from gateway.hooks.cause import PLACE, RIGHTS, find_person
from gateway.hooks.folders.folder_hooks import PluginTools
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.manifests.reach import HookLimits
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.services import RequestServer
from gateway.messages.roles import Role, pick_low_role, scope_of
from gateway.messages.transcript import Entry, ToolCall, Usage, as_message
from gateway.sessions.repository import SessionRepository
from gateway.sessions.transitions import begin_session
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.turn_usage import TurnUsage, UsageOrigin
from gateway.usage.usage_journal import UsageJournal
from gateway.worker.protocol import PluginItem

TOOL_TIMEOUT = COMMAND_TIMEOUT = 300.0
LLM_TIMEOUT = 120.0
START_PATIENCE = 10.0  # seconds that a typed command waits for its plugin to start

FitTool: TypeAlias = Callable[[Tool, Role], Tool | None]


class Plugins(msgspec.Struct, eq=False):
    """The offers of the running plugins, for the agent and the commands."""

    _offering: PluginTools

    def extend_agent(self, agent: Agent) -> Agent:
        """Return the agent with the plugins' tools and skills.

        Unless a plugin may override it, a name that is taken keeps its meaning.
        """
        has_offers = any(offers.tools or offers.skills for _, offers in self._offering.all())
        if not has_offers and not any(self._offering.missing()):
            return agent
        agent = self._override_tools(agent)
        own, skills = {tool.name: tool for tool in agent.tools}, list(agent.skills)
        brought: dict[str, Tool] = {}
        for hook, offers in self._offering.all():
            for tool in offers.tools:
                if tool.name not in brought or (tool.override and _may_override(hook.current)):
                    brought[tool.name] = self._tool(hook, tool)
            skills += (_skill_from(hook, one) for one in offers.skills)
        return replace(agent, tools=tuple({**brought, **own}.values()), skills=tuple(skills))

    def _override_tools(self, agent: Agent) -> Agent:
        """Return the agent with plugins' tools in place of ours, also for the agents that it may ask."""
        tools = list(agent.tools)
        for hook, offers in self._offering.all():
            for other in offers.tools if _may_override(hook.current) else ():
                if other.override:
                    tools = [self._tool(hook, other) if is_same_tool(one.name, other.name) else one for one in tools]
        for hook in self._offering.missing():
            if _may_override(hook.latest):
                names = _notes_of(hook).get(OVERRIDES, (ANY_TOOL,))
                tools = [
                    self._hold(hook, one) if any(is_same_tool(one.name, name) for name in names) else one
                    for one in tools
                ]
        below = tuple(self._override_tools(one) for one in agent.agents)
        return replace(agent, tools=tuple({one.name: one for one in tools}.values()), agents=below)

    def _hold(self, hook: FolderHook, tool: Tool) -> Tool:
        """Return our tool for the time until its replacing plugin runs: a call waits, and goes to the plugin.

        If the plugin does not replace the tool after all, our own tool is called.
        """

        async def call(args: dict[str, Any], context: ToolContext) -> Any:
            try:
                offers = await self._offering.wait_until_up(hook.name, START_PATIENCE)
            except HookError as error:
                what = f"the plugin {hook.called} takes the place of {tool.name} and is not up: {error}"
                helps = f"to see more: hermes-gateway hooks info {hook.called}; to go on without it"
                raise AgentError(f"{what}\n{helps}: hermes-gateway hooks disable {hook.called}") from None
            other = next((one for one in offers.tools if one.override and is_same_tool(tool.name, one.name)), None)
            if other is None:
                return await tool.call(args, context)
            _, told = HERMES_TOOLS.describe_call(tool.name, args)
            return _as_own(tool.name, await self._tool(hook, other).call(told, context))

        return replace(tool, call=call)

    def commands(self) -> Iterable[Command]:
        for hook, offers in self._offering.all():
            for one in offers.commands:
                yield Command(one.name, one.summary, self._runner(hook.name, one.name), one.usage, by_hooks=True)
        for hook in self._offering.missing():
            for name in _notes_of(hook).get(COMMANDS, ()):
                run = self._late_runner(hook, name)
                yield Command(name, f"of {hook.called}", run, hidden=True, by_hooks=True)

    async def wait_for_command(self, word: str) -> Command | None:
        """Wait for a command that no plugin's source names, since a starting plugin may bring it.

        If a plugin is still starting afterwards, return a command whose answer says so.
        """
        with anyio.move_on_after(START_PATIENCE):
            await self._offering.settled()
        slow = [hook for hook in self._offering.missing() if hook.process.state == "starting"]
        run = self._late_runner(slow[0], word, 0) if slow else None
        return Command(word, "", run, hidden=True, by_hooks=True) if run else None

    def _tool(self, hook: FolderHook, offered: PluginItem) -> Tool:
        async def call(args: dict[str, Any], context: ToolContext) -> Any:
            facts = {name: value for name, value in context.facts.items() if isinstance(value, str)}
            target, asked = f"tool:{offered.name}", {**facts, "agent": context.agent, "args": args}
            answers = dict(context.answers)
            try:
                while question := (
                    given := await self._offering.use(hook.name, target, asked, TOOL_TIMEOUT, answers)
                ).ask:
                    answer = context.ask(question.prompt, question.name) if context.ask else None
                    answers[question.name] = answer or False
            except HookError as error:
                raise AgentError(f"{offered.name} of the plugin {hook.called}: {error}") from None
            return _as_own(offered.name, given.result)

        return Tool(offered.name, offered.description, offered.schema, call)

    def _runner(self, hook: str, command: str) -> RunCommand:
        async def run(call: CommandCall) -> CommandResult:
            args = call.context.registry.withheld.cut(call.args)
            asked = build_place_fields(call.message, call.role, call.session) | {"args": args}
            try:
                said = (await self._offering.use(hook, f"command:{command}", asked, COMMAND_TIMEOUT)).result
            except HookError as error:
                return CommandResult(f"/{command} failed: {error}")
            return CommandResult(str(said or ""))

        return run

    def _late_runner(self, hook: FolderHook, command: str, patience: float = START_PATIENCE) -> RunCommand:
        """Return a runner that waits until the plugin runs."""

        async def run(call: CommandCall) -> CommandResult:
            try:
                offers = await self._offering.wait_until_up(hook.name, patience)
            except HookError as error:
                return CommandResult(f"{hook.called} is not up: {error}\nhermes-gateway hooks info {hook.called}")
            if command not in {one.name for one in offers.commands}:
                return CommandResult(describe_unknown_command(call.context, command))
            return await self._runner(hook.name, command)(call)

        return run


def is_same_tool(tool: str, name: str) -> bool:
    """Tell if this name of a plugin means this tool of ours."""
    return name in (tool, ANY_TOOL, HERMES_TOOLS.describe_name(tool))


def _notes_of(hook: FolderHook) -> Mapping[str, Sequence[str]]:
    """Return what the plugin's dialect has noted of its source."""
    return hook.latest.manifest.reading.noted if hook.latest and hook.latest.manifest else {}


def _may_override(version: HookVersion | None) -> bool:
    return version is not None and version.options.get(OVERRIDE_OPTION) is True


def _as_own(tool: str, given: Any) -> Any:
    """Translate the result of a plugin's tool into that of our tool of this name. Raises AgentError for an error."""
    if tool not in TOOL_RESULTS or not isinstance(given, str):
        return given
    result = read_override(tool, given)
    if result.error:
        raise AgentError(result.text)
    return result.text


def _skill_from(hook: FolderHook, offered: PluginItem) -> Skill:
    """Return the skill `<plugin>:<name>`; without a description in its SKILL.md, it has that of its registration."""
    folder = Path(offered.folder)
    found = read_skill(folder, [])
    description = offered.description or (found.description if found else "")
    return Skill(f"{hook.label}:{offered.name}", description, folder, found.version if found else "")


class PluginLlmRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `llm`: a plugin calls the model."""

    messages: tuple[dict[str, Any], ...]
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3600)] = LLM_TIMEOUT


class PluginToolRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `tool`: a plugin uses a tool of the agent."""

    name: str
    args: dict[str, Any] = {}


class PluginSessionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request `session`: a conversation by its key.

    `begin` is the owner of the conversation if it has not begun yet.
    """

    key: str
    begin: dict[str, str] = {}


class PluginGrants:
    """The rights of all hooks, and the additional ones of plugins.

    `find_agent` returns the present agent of a place. `fit` returns a tool as a person of this role has it.
    `find_limits`: a restricted plugin's tools read only what the plugin may read.
    """

    def __init__(
        self,
        grants: RequestServer,
        find_agent: Callable[[Mapping[str, str]], Agent],
        registry: HookRegistry,
        sessions: SessionRepository,
        fit: FitTool,
        usage: UsageJournal,
        find_limits: Callable[[str], HookLimits],
    ) -> None:
        self._grants = grants
        self._find_agent = find_agent
        self._registry = registry
        self._sessions = sessions
        self._fit = fit
        self._usage = usage
        self._find_limits = find_limits
        self.verbs: Mapping[str, tuple[type, Callable[[str, Any], Awaitable[Any]]]] = {
            "llm": (PluginLlmRequest, self._llm),
            "tool": (PluginToolRequest, self._tool),
            "session": (PluginSessionRequest, self._session),
        }

    async def __call__(self, hook: str, verb: str, params: dict[str, Any], during: str) -> Any:
        """Answer a request of a hook. Raises HookError."""
        if verb not in self.verbs:
            return await self._grants(hook, verb, params, during)
        kind, answer = self.verbs[verb]
        try:
            return self._registry.withheld.cut(await answer(hook, msgspec.convert(params, kind)))
        except msgspec.ValidationError as error:
            raise HookError(f"{verb}: {error}") from None

    async def _llm(self, hook: str, asked: PluginLlmRequest) -> dict[str, Any]:
        model = self._find_agent({}).model
        entries = [Entry(_role_of(one), _content_of(one)) for one in asked.messages]
        options = {"temperature": asked.temperature, "max_tokens": asked.max_tokens}
        request = ModelRequest(
            messages=tuple(entry for entry in entries if entry.role != "system"),
            system="\n\n".join(entry.content for entry in entries if entry.role == "system"),
            options={name: value for name, value in options.items() if value is not None},
        )
        texts, used = list[str](), list[Usage]()
        try:
            with anyio.fail_after(asked.timeout):
                async with self._count(hook) as calls, aclosing(call_model(model, request, calls, used.append)) as said:
                    texts += [chunk.text async for chunk in said]
        except TimeoutError:
            raise HookError(f"llm: the model took more than {asked.timeout:g} s") from None
        except (ModelError, BudgetRefusal) as error:
            raise HookError(f"llm: {error}") from None
        return {"text": "".join(texts), "model": model.name, "usage": msgspec.structs.asdict(sum(used, Usage()))}

    @asynccontextmanager
    async def _count(self, hook: str) -> AsyncIterator[CallUsage]:
        """Count the usage of model calls that belong to no turn, and write it at the end."""
        counted, view = TurnUsage(UsageOrigin(find_person(hook), hook=hook)), self._registry.scope({})
        try:
            yield CallUsage(self._usage.totals, counted, BudgetPort(RIGHTS.get(), view.run, view.emit))
        finally:
            await self._usage.write(counted)

    async def _session(self, _hook: str, asked: PluginSessionRequest) -> dict[str, Any]:
        session = await self._sessions.open(asked.key)
        if asked.begin and not session.session_id:
            opened = begin_session(session, self._sessions.now())
            platform, user = asked.begin.get("platform", ""), asked.begin.get("user_id", "")
            try:
                session = await self._sessions.append(
                    session, msgspec.structs.replace(opened, platform=platform, user_id=user)
                )
            except Conflict:  # another writer has begun it meanwhile
                session = await self._sessions.open(asked.key)
        said = as_openai_messages(map(as_message, session.entries))
        return {"entry": entry_of(session, None, {}), "messages": said, "model": session.model}

    async def _tool(self, hook: str, asked: PluginToolRequest) -> str:
        """Use a tool as the model would, with the same events, checks and refusals, but without asking a person.

        It reaches what the person may reach for whom the plugin acts, and the agent that acts for them: a message gives
        a plugin no more rights. The result has the shape of Hermes's tools.
        """
        role = RIGHTS.get()
        facts: dict[str, Any] = {"platform": INTERNAL, "user_id": f"hook:{hook}", "session_id": "", "turn_id": ""}
        facts |= {"role": role, "scope": scope_of(role)}
        limits = self._find_limits(hook)
        if limits.is_restricted and limits.own:
            facts |= {FOLDER: limits.own[-1], READABLE: limits.reads}
        low = pick_low_role(role, "user")
        less = {**facts, "role": low, "scope": scope_of(low), READABLE: ()}  # a restricted hook changed the call
        view = self._registry.scope(facts)
        agent, name, args = self._find_agent(PLACE.get()), asked.name, asked.args
        if find_tool(agent.tools, name) is None:
            name, args = HERMES_TOOLS.resolve_call(name, args)
        call = ToolCall(f"{hook}-{uuid4().hex[:12]}", name, args)
        _, told = HERMES_TOOLS.describe_call(name, args)
        try:
            async with self._count(hook) as calls:
                ports = Ports(
                    run=view.run,
                    emit=view.emit,
                    wants=view.wants,
                    grant=lambda tool: self._fit(tool, role),
                    facts=facts,
                    authors=view.bags.authors,
                    limit=lambda ports, _hooks: structs.replace(
                        ports, facts=less, grant=lambda tool: self._fit(tool, low)
                    ),
                    usage=calls,
                )
                entry = await run_tool(agent, call, ports)
        except Pause as pause:
            return show_result(name, told, f"a person would have to answer: {pause}", "refused").json
        ending: Ending = "failed" if entry.error else "done"
        return show_result(name, told, entry.content, ending).json


def _role_of(message: Mapping[str, Any]) -> Any:
    role = message.get("role", "user")
    if role not in ("system", "user", "assistant"):
        raise HookError(f"llm: a message is of system, user or assistant, not of {role!r}")
    return role


def _content_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts: Sequence[Any] = content if isinstance(content, list) else (content,)
    texts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise HookError("llm: the model takes only texts here, no images")
    return "\n".join(texts)
