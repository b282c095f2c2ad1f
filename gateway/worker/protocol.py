"""The protocol between the daemon and its workers: the messages at the start, beside a call, and at the end.

Both sides load this file: the daemon as a part of its package, a worker by the table in `boot.py`. It imports only
msgspec and the standard library.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from gateway.worker.kernel import IS_LINUX
from gateway.worker.sandbox import Sandbox

MAX_LINE_BYTES = 8 << 20  # bytes in a line of the wire

RAISED = -32000  # the JSON-RPC code of an exception in a hook
REQUEST_PREFIX = "gateway."  # starts the methods by which a hook asks the gateway

NETWORK_LEFT = "the network could not be forbidden"  # starts a log line of a worker that should have no network
NICE = 5  # lowers the priority of a hook's process
OOM_SCORE = "500"  # when memory is short, a hook goes before the daemon

# The exit codes that a worker chooses itself, and their texts for people.
IMPORT_FAILED, CANNOT_BEGIN, LOST_WIRE, BROKEN_WIRE, CANNOT_ANSWER, LOOP_BROKEN = 3, 70, 71, 72, 73, 74
CANNOT_RESTRICT = 76
START_EXITS = frozenset({IMPORT_FAILED, CANNOT_BEGIN, CANNOT_RESTRICT})  # later the hook may choose them
EXIT_REASONS: Mapping[int, str] = {
    IMPORT_FAILED: "its handler could not be imported",
    CANNOT_BEGIN: "it could not begin",
    LOST_WIRE: "its handler closed the wire to the gateway",
    BROKEN_WIRE: "the wire to the gateway broke",
    CANNOT_ANSWER: "it could not answer",
    LOOP_BROKEN: "its handler broke the event loop",
    CANNOT_RESTRICT: "it could not be restricted to what it may reach, so it did not begin; its log says why",
}


class ForkServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the fork server: its preloaded modules, and if it forks (otherwise it spawns)."""

    processes: int  # of all hooks together; root has no such limit
    preload: tuple[str, ...] = ("yaml",)
    mark: str = ""  # of the home, for its processes
    fork: bool = IS_LINUX


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The hook that a worker runs, and its environment."""

    name: str  # its module is called hermes_hook_<name>
    handler: str  # the file
    env: dict[str, str]  # its whole environment
    options: Mapping[str, Any]
    path: tuple[str, ...]  # the folders of its own dependencies
    modules: Mapping[str, str]  # modules offered to it, by name, each with its file; "" is an empty package
    memory: int | None  # bytes of data; None: no limit
    shapes: str = ""  # the module that loads it and shows it events; "": as this gateway does
    facts: Mapping[str, Any] = {}  # further facts for that module
    is_offline: bool = False  # it has no network, if the kernel can remove it
    label: str  # another name for the module, if the manifest gives the hook one
    data: str = ""  # the folder for its files, which may not exist yet
    sandbox: Sandbox | None = None  # its restrictions; None: those of its user
    is_compared: bool = False  # it may end while idle if its modules are then as after their import

    @property
    def folder(self) -> Path:
        return Path(self.handler).parent


class CommandSandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The restrictions of a command: it reads everything not hidden, and `read`; it writes `write`, and its own folder.

    It never writes to `kept` paths, wherever they are.
    """

    hidden: tuple[str, ...]
    read: tuple[str, ...]  # even inside hidden folders
    write: tuple[str, ...]
    kept: tuple[str, ...] = ()
    net: bool
    sockets: bool


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is not a hook, and runs once: a command of the agent's shell."""

    program: tuple[str, ...]  # its file, which is not searched for, and its arguments
    folder: str
    env: dict[str, str]  # its whole environment
    sandbox: CommandSandbox | None = None


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program for which the fork server makes a process: a hook, or one that hears and speaks."""

    command: tuple[str, ...]  # its file, which is not searched for, and its arguments
    folder: str
    env: dict[str, str]  # its whole environment
    sandbox: Sandbox | None = None  # its restrictions; None: those of its user


class CallMeta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Facts about a call, beside the event's fields."""

    event: str = ""  # the event's id; returns as `during` with every request that the hook makes in this call
    decides: bool = False  # an interceptor: result and changes count
    writable: tuple[str, ...] | None = None  # the fields whose changes count; None: all of them
    target: str = ""  # the function marked with `@on` that is called; "": `handle`
    turn: str = ""  # the turn's id, for data that the hook keeps for the turn
    answers: dict[str, Any] | None = None  # the person's answers so far, by question; None: must not ask
    turn_bag: dict[str, Any] = {}
    session_bag: dict[str, Any] = {}
    session: Mapping[str, str] = {}  # HERMES_SESSION_PLATFORM and so on, without the prefix
    servers: tuple[str, ...] = ()  # of tools, whose names are passed on as Hermes's


class BatchTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a batch: no event starts after so many seconds, nor after so many failures in a row."""

    seconds: float
    failures: int
    servers: tuple[str, ...] = ()  # as in a call


class BatchEvent(msgspec.Struct, frozen=True):
    """One event of a batch, as its record in the journal has it."""

    name: str
    fields: dict[str, Any]


class EventBatch(msgspec.Struct, frozen=True):
    """Events that a hook observes, each with the key of its first delivery."""

    events: list[BatchEvent]
    keys: list[int]


class BatchAnswer(msgspec.Struct):
    """The microseconds of each event that was started; the failures, by place; the answers without effect."""

    micros: list[int] = msgspec.field(default_factory=list)
    failed: dict[int, Any] = msgspec.field(default_factory=dict)
    answers: dict[int, Any] = msgspec.field(default_factory=dict)


class MarkedFunction(msgspec.Struct, frozen=True):
    """A function of the hook that is marked with `@on`; calls name it by `target`."""

    target: str
    names: tuple[str, ...]
    order: float
    when: Mapping[str, Any] | None
    on_error: str
    timeout: float | None


class PluginItem(msgspec.Struct, frozen=True):
    """A tool, command or skill of a plugin, as plain data."""

    name: str
    description: str = ""
    summary: str = ""
    usage: str = ""
    folder: str = ""
    schema: dict[str, Any] = {}
    override: bool = False


class PluginContents(msgspec.Struct, frozen=True):
    """The contents of a plugin beside its callbacks. `decides`: its targets whose answers count."""

    decides: tuple[str, ...] = ()
    tools: tuple[PluginItem, ...] = ()
    commands: tuple[PluginItem, ...] = ()
    skills: tuple[PluginItem, ...] = ()
    remarks: tuple[str, ...] = ()


class LoadedHandlers(msgspec.Struct, frozen=True):
    """The result of the hook's import: if it has a `handle`, and its marked functions."""

    handle: bool
    marks: tuple[MarkedFunction, ...]
    offers: PluginContents = PluginContents()
    patches: tuple[str, ...] = ()  # its changes to modules that stand for another program's


class WorkerRemark(msgspec.Struct, frozen=True):
    """A remark for the owner, `$remark`, about something that shows only at run time."""

    text: str


class AskedNames(msgspec.Struct, frozen=True):
    """The message `$asked`: environment variables that the hook looked up in vain."""

    names: list[str]


# The context variables of a Hermes hook, each with our field.
_SESSION_FIELDS: Mapping[str, str] = {
    "PLATFORM": "platform",
    "SOURCE": "platform",
    "CHAT_ID": "chat_id",
    "THREAD_ID": "thread_id",
    "USER_ID": "user_id",
    "USER_NAME": "user_name",
    "KEY": "session_key",
    "ID": "session_id",
    "MESSAGE_ID": "message_id",
    "CHAT_NAME": "chat_name",
    "CHAT_TYPE": "chat_type",
    "PROFILE": "profile",
}


def describe_session(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the conversation of an event or a call as context variables."""
    return {name: "" if (value := fields.get(field)) is None else str(value) for name, field in _SESSION_FIELDS.items()}


class EventSession(Mapping[str, str]):
    """The conversation of an event as context variables, which few handlers read."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    @cached_property
    def _variables(self) -> Mapping[str, str]:
        return describe_session(self._fields) if self._fields.get("session_key") else {}

    def __getitem__(self, name: str) -> str:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)
