"""What the daemon and the program of the workers must agree on: what is said at the start, beside a call, at the end.

Both sides load this one file: the daemon as a part of its package, a worker by the table in `boot.py`. It imports
msgspec and the standard library alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.worker.kernel import IS_LINUX
from gateway.worker.sandbox import Sandbox

MAX_LINE_BYTES = 8 << 20  # bytes in a line of the wire

RAISED = -32000  # the JSON-RPC code of whatever a handler raised
REQUEST_PREFIX = "gateway."  # begins the methods by which a hook asks the gateway

NETWORK_LEFT = "the network could not be forbidden"  # begins a line of the log of a worker that is to have none
NICE = 5  # how much a hook's process stands back behind others
OOM_SCORE = "500"  # when memory is short, a hook goes before the daemon

# The exit codes that a worker chooses itself, and what people are told of them.
IMPORT_FAILED, CANNOT_BEGIN, LOST_WIRE, BROKEN_WIRE, CANNOT_ANSWER, LOOP_BROKEN = 3, 70, 71, 72, 73, 74
CANNOT_RESTRICT = 76
START_EXITS = frozenset({IMPORT_FAILED, CANNOT_BEGIN, CANNOT_RESTRICT})  # later it is the handler that chooses them
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
    """How the fork server is run: what it imports for all, and whether it forks (where that is not safe, it spawns)."""

    processes: int  # that all hooks together may have; root has no such limit
    preload: tuple[str, ...] = ("yaml",)
    mark: str = ""  # of the home, for whatever is made of it
    fork: bool = IS_LINUX


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Which hook a worker becomes, and what it finds around it."""

    name: str  # its module is called hermes_hook_<name>
    handler: str  # the file
    env: dict[str, str]  # all of it: nothing else is there
    options: Mapping[str, Any]
    path: tuple[str, ...]  # where its own dependencies were installed
    modules: Mapping[str, str]  # modules offered to it, by name, each with its file; "" is an empty package
    memory: int | None  # bytes of data; None: no limit
    plugin: Mapping[str, Any] | None  # what a Hermes plugin finds as its manifest; None: it is a hook
    is_offline: bool = False  # no network is there for it, where the kernel can forbid that
    label: str  # another name for the module, where the manifest gives the hook one
    hermes: bool = False  # its handler is shown events as Hermes would tell them
    data: str = ""  # the folder for its files, which need not be there
    sandbox: Sandbox | None = None  # what it reaches; None: all that its user does
    is_compared: bool = False  # it may end while nobody calls it if its modules are then as after their import

    @property
    def folder(self) -> Path:
        return Path(self.handler).parent


class CommandSandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a command may reach: it reads what is not hidden, and `read`; it writes `write`, and a folder of its own.

    It does not write what is `kept`, wherever that is.
    """

    hidden: tuple[str, ...]
    read: tuple[str, ...]  # though it lies in what is hidden
    write: tuple[str, ...]
    kept: tuple[str, ...] = ()
    net: bool
    sockets: bool


class CommandSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A program that is no hook, and is run once: what the agent's shell is asked to do."""

    program: tuple[str, ...]  # its file, which is not looked for, and its arguments
    folder: str
    env: dict[str, str]  # all of it: nothing else is there
    sandbox: CommandSandbox | None = None


class ProgramRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A program that the fork server makes a process for: a hook, or what hears and speaks."""

    command: tuple[str, ...]  # its file, which is not looked for, and its arguments
    folder: str
    env: dict[str, str]  # all of it: nothing else is there
    sandbox: Sandbox | None = None  # what it reaches; None: whatever its user does


class CallMeta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a hook may know of a call beside the event's fields."""

    event: str = ""  # the event's id; comes back as `during` with every request that the hook makes because of it
    decides: bool = False  # an interceptor: result and changes count
    writable: tuple[str, ...] | None = None  # the fields whose change counts; None: all of them
    target: str = ""  # the function marked with `@on` that is called; "": `handle`
    turn: str = ""  # the turn's id: what a hook keeps for the turn is kept under it
    answers: dict[str, Any] | None = None  # what the person has answered so far, by question; None: must not ask
    turn_bag: dict[str, Any] = {}
    session_bag: dict[str, Any] = {}
    session: dict[str, str] = {}  # HERMES_SESSION_PLATFORM and so on, without the prefix
    servers: tuple[str, ...] = ()  # of tools, where their names are told as Hermes's


class BatchTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a batch: no event begins after so many seconds, nor after so many failures in a row."""

    seconds: float
    failures: int
    servers: tuple[str, ...] = ()  # as of a call


class BatchEvent(msgspec.Struct, frozen=True):
    """One event of a batch, as its record in the journal has it."""

    name: str
    fields: dict[str, Any]


class EventBatch(msgspec.Struct, frozen=True):
    """Events that a hook observes, each with the key of its delivery, which is the first."""

    events: list[BatchEvent]
    keys: list[int]


class BatchAnswer(msgspec.Struct):
    """How long each took that was begun; which of these failed, by their places; what some answered in vain."""

    seconds: list[float] = msgspec.field(default_factory=list)
    failed: dict[int, Any] = msgspec.field(default_factory=dict)
    answers: dict[int, Any] = msgspec.field(default_factory=dict)


class MarkedFunction(msgspec.Struct, frozen=True):
    """A function of the handler that is marked with `@on`; `target` is what a call names it by."""

    target: str
    names: tuple[str, ...]
    order: float
    when: Mapping[str, Any] | None
    on_error: str
    timeout: float | None


class PluginItem(msgspec.Struct, frozen=True):
    """A tool, command or skill of a plugin, as far as it is data."""

    name: str
    description: str = ""
    summary: str = ""
    usage: str = ""
    folder: str = ""
    schema: dict[str, Any] = {}
    override: bool = False


class PluginContents(msgspec.Struct, frozen=True):
    """What a plugin has beside its callbacks. `decides`: those of its targets whose answers count."""

    decides: tuple[str, ...] = ()
    tools: tuple[PluginItem, ...] = ()
    commands: tuple[PluginItem, ...] = ()
    skills: tuple[PluginItem, ...] = ()
    remarks: tuple[str, ...] = ()


class LoadedHandlers(msgspec.Struct, frozen=True):
    """What the handler's import has brought: is there a `handle`, and which functions are marked?"""

    handle: bool
    marks: tuple[MarkedFunction, ...]
    offers: PluginContents = PluginContents()
    patches: tuple[str, ...] = ()  # what it has changed of modules that stand for another program's


class WorkerRemark(msgspec.Struct, frozen=True):
    """`$remark`: what its owner should know of it, which only shows while it runs."""

    text: str


# The context variables that a handler written for Hermes finds, each with our field.
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
    """The conversation of an event or a call, as its context variables say it."""
    return {name: "" if (value := fields.get(field)) is None else str(value) for name, field in _SESSION_FIELDS.items()}
