"""A tool: a function with a name, a description and a schema, from a typed signature or from elsewhere.

Arguments are checked before a tool is called: against the signature if it has one, else against the JSON schema that
came with the tool. The model gets an error with the parameters that exist.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_type_hints

import anyio
import msgspec

from gateway.agent.json_schema import check_value
from gateway.agent.model import ToolSpec
from gateway.errors import AgentError
from gateway.messages.parts import Location, MessagePart, Poll

AskPerson: TypeAlias = Callable[[str, str], Any]
ScheduleAction: TypeAlias = Literal["remove", "pause", "resume"]
JobQuestion: TypeAlias = Literal["list", "show", "history"]
RAW_ARGS = "__raw__"  # the argument that holds a model's text which was not a JSON object


class ScheduledWork(NamedTuple):
    """The work of a job: a text for the agent, or a command, which a person has allowed if `is_allowed`.

    The answer goes `to` a chat; "": to the conversation.
    """

    text: str
    command: str = ""
    is_allowed: bool = False
    to: str = ""


class ChatPort(Protocol):
    """The conversation, for tools that speak in it. `key` makes a word the same one when its turn runs again."""

    async def say(self, text: str, to: str, key: str) -> str:
        """Send a message here, or to another chat. Returns words about that for the model."""

    def bind(self, to: str) -> str:
        """Return a destination with the id of the chat that its name means now. Raises AgentError without one."""

    async def send_file(self, path: Path, caption: str, key: str) -> str:
        """Send a file here; its path is the real one. Returns words about that for the model."""

    async def send_part(self, part: Poll | Location, key: str) -> str:
        """Send it here, as what it is. Returns words about that for the model."""

    def can_show(self, kind: type[MessagePart]) -> bool:
        """Return True if the network shows such parts natively."""

    def check_shell(self) -> None:
        """Raise AgentError unless agent and person have the tool `shell`, which the command of a job needs."""

    async def schedule(self, work: ScheduledWork, when: str, key: str) -> str:
        """Schedule the work for that time, or for each of these times. Returns words about that."""

    async def list_scheduled(self, name: str) -> str:
        """List what is scheduled in this conversation; with a name, how its last times ended."""

    async def read_jobs(self, verb: JobQuestion, name: str) -> str:
        """Answer as `hermes-gateway jobs` would, about the jobs that the person of the turn may see."""

    async def change_scheduled(self, name: str, action: ScheduleAction) -> None:
        """Remove, pause or resume it. Raises AgentError if it does not exist."""


ShowPicture: TypeAlias = Callable[[bytes], Awaitable[str]]


class ToolContext(msgspec.Struct, frozen=True):
    """The turn that a tool runs in, as far as the tool may know it.

    `turn` and `session` are the bags that hooks see too; `facts` are the turn's common fields (platform, user_id, ...).
    `ask(prompt, name)` returns the person's answer, or pauses the turn until they answer; `answers` are those that this
    call has received, by name. `show` puts a picture beside the result, and returns words about it.
    """

    call_id: str = ""
    agent: str = ""
    turn: dict[str, Any] = msgspec.field(default_factory=dict)
    session: dict[str, Any] = msgspec.field(default_factory=dict)
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    ask: AskPerson | None = None
    chat: ChatPort | None = None
    answers: Mapping[str, Any] = msgspec.field(default_factory=dict)
    show: ShowPicture | None = None


# For the arguments, and the facts of the turn: who asks, with which role.
ApprovalRule: TypeAlias = bool | Callable[[dict[str, Any], Mapping[str, Any]], bool]
ToolCallable: TypeAlias = Callable[[dict[str, Any], ToolContext], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Tool:
    """An action that a model can request.

    `repeatable`: a second run does no harm, so that an interrupted call may be run again.
    `asks`: a person has to approve first, always or depending on arguments and people.
    `subject`: returns the scope of a lasting approval, None if there can be none (without it: every call of this tool).
    `bind`: puts ids in the place of names, before the question, so that a person approves what the call will do.
    `suspect`: it may have caused the death of the process in which it ran, and is not run again although it is
        repeatable.
    `is_trusted`: it needs no approval, and may be granted without being named.
    `sends`: it is for conversations where such a part can be shown.
    `narrow`: the variant for people who may not use every tool.
    `changes`: files of the machine, only things of the gateway (`messages`), or nothing, so that it need not wait while
        a call beside it awaits an approval.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    call: ToolCallable
    repeatable: bool = False
    asks: ApprovalRule = False
    subject: Callable[[dict[str, Any]], str | None] | None = None
    accept: Callable[[dict[str, Any]], None] | None = None
    bind: Callable[[dict[str, Any], ChatPort], dict[str, Any]] | None = None
    suspect: bool = False
    is_trusted: bool = False
    sends: type[MessagePart] | None = None
    narrow: "Tool | None" = None
    changes: Literal["files", "messages", "nothing"] = "files"
    spec: ToolSpec = field(init=False, repr=False, compare=False)  # as it is offered to a model

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", ToolSpec(self.name, self.description, self.schema))

    @property
    def may_change_files(self) -> bool:
        """Return True if the host's files may have changed after it has run."""
        return self.changes == "files" and not (self.is_trusted and self.repeatable)


class ArgumentError(AgentError):
    """The model's arguments do not fit the tool; `parameters` are the existing ones."""

    def __init__(self, message: str, parameters: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.parameters = parameters


def check_args(tool: Tool, args: Any) -> dict[str, Any]:
    """Return the arguments if they fit the tool.

    Raises:
        ArgumentError: they do not fit; the text tells the model how they would.
    """
    try:
        if not isinstance(args, dict):
            raise ValueError(f"the arguments must be an object, not {type(args).__name__}")
        if RAW_ARGS in args:
            raise ValueError(f"the arguments are not a JSON object: {str(args[RAW_ARGS])[:200]}")
        if tool.accept:
            tool.accept(args)
        else:
            check_value(args, tool.schema)
    except ValueError as error:
        text = f"{tool.name}: {error}. Parameters: {describe_parameters(tool.schema)}"
        raise ArgumentError(text, tool.schema.get("properties") or {}) from None
    return dict(args)


def describe_parameters(schema: Mapping[str, Any]) -> str:
    """Describe a schema in words for a small model too: `path (string, required), limit (integer)`."""
    required = schema.get("required") or ()
    words = [
        f"{name} ({_type_of(part)}{', required' if name in required else ''})"
        for name, part in (schema.get("properties") or {}).items()
    ]
    return ", ".join(words) or "none"


def tool(
    *,
    name: str = "",
    repeatable: bool = False,
    asks: ApprovalRule = False,
    subject: Callable[[dict[str, Any]], str | None] | None = None,
    read_only: bool = False,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of an async function: its docstring is the description, its typed parameters are the schema.

    A parameter named `context` gets the `ToolContext` and is hidden from the model.
    """

    return partial(tool_from, name=name, repeatable=repeatable, asks=asks, subject=subject, read_only=read_only)


def tool_from(
    function: Callable[..., Any],
    *,
    name: str = "",
    repeatable: bool = False,
    asks: ApprovalRule = False,
    subject: Callable[[dict[str, Any]], str | None] | None = None,
    read_only: bool = False,
) -> Tool:
    """Make a tool from a typed function."""
    name = name or getattr(function, "__name__", type(function).__name__)
    struct, wants_context = _parse_signature(function, name)

    def accept(args: dict[str, Any]) -> None:
        msgspec.convert(args, struct, strict=False)

    async def call(args: dict[str, Any], context: ToolContext) -> Any:
        given = msgspec.structs.asdict(msgspec.convert(args, struct, strict=False))
        return await function(**given, **({"context": context} if wants_context else {}))

    changes: Literal["files", "nothing"] = "nothing" if read_only else "files"
    schema = msgspec.json.schema(struct)
    schema = {**schema["$defs"].pop(name), **({"$defs": schema["$defs"]} if schema["$defs"] else {})}
    schema.pop("title", None)
    for parameter in schema.get("properties", {}).values():
        if parameter.get("default") == "":  # a parameter that is not required need not say so
            del parameter["default"]
    return Tool(name, inspect.getdoc(function) or "", schema, call, repeatable, asks, subject, accept, changes=changes)


def find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    return next(iter([tool for tool in tools if tool.name == name]), None)


def _parse_signature(function: Callable[..., Any], name: str) -> tuple[type[msgspec.Struct], bool]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.name == "context":
            continue
        if parameter.name not in hints:
            raise TypeError(f"the tool {name!r}: its parameter {parameter.name!r} needs a type")
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        fields.append((parameter.name, hints[parameter.name], *default))
    return msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True), "context" in parameters


def _type_of(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_type_of(part) for part in schema["anyOf"])
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


class ToolSource(Protocol):
    """A source of tools, whose names all start with `prefix` and an underscore."""

    @property
    def prefix(self) -> str: ...

    async def tools(self) -> Sequence[Tool]:
        """Return the present tools. Raises AgentError with the reason if they cannot be listed."""


class FilteredToolSource(msgspec.Struct, frozen=True):
    """Some of a source's tools, by name; the source's prefix selects all of them."""

    source: ToolSource
    names: tuple[str, ...]

    @property
    def prefix(self) -> str:
        return self.source.prefix

    async def tools(self) -> Sequence[Tool]:
        found = await self.source.tools()
        return found if self.prefix in self.names else [tool for tool in found if tool.name in self.names]


def choose_sources(sources: Sequence[ToolSource], names: tuple[str, ...] | None) -> tuple[ToolSource, ...]:
    """Return the sources that an agent with these tools needs; without a list, all. The others are not queried."""
    if names is None:
        return tuple(sources)
    wanted = [one for one in sources if any(name == one.prefix or name.startswith(f"{one.prefix}_") for name in names)]
    return tuple(FilteredToolSource(one, names) for one in wanted)


async def gather_tools(sources: Sequence[ToolSource]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
    """Ask all sources side by side. Return their tools in order, and why the other sources failed."""
    found: dict[int, Sequence[Tool]] = {}
    missing: dict[int, str] = {}

    async def ask(place: int, source: ToolSource) -> None:
        try:
            found[place] = await source.tools()
        except AgentError as error:
            missing[place] = str(error)

    if sources:
        async with anyio.create_task_group() as group:
            for place, source in enumerate(sources):
                group.start_soon(ask, place, source)
    tools = tuple(tool for place in sorted(found) for tool in found[place])
    return tools, tuple(missing[place] for place in sorted(missing))
