"""What every folder hook is given: the settings, its environment, the parts of the gateway that serve it, and rights.

What one hook may ask of the gateway is what its manifest `uses`, and it asks with the cause that it acts for.
"""

import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import anyio
import msgspec
from anyio.abc import TaskGroup

from gateway.config.secrets import is_public_value
from gateway.config.settings import HookOverrides, HooksSettings
from gateway.errors import HookError
from gateway.events import Event
from gateway.events.catalogue import get_event_spec
from gateway.hooks.cause import Cause, place_of_event, role_of_event, use_cause, use_rights
from gateway.hooks.folders.decisions import Decisions
from gateway.hooks.folders.installed import HooksLock
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.reach import CERTIFICATE_VARIABLES, DESKTOP_VARIABLES
from gateway.hooks.folders.stats import HookCall
from gateway.hooks.registry import HookRegistry
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.wire import Capability, Wire
from gateway.logs.redaction import Redactor
from gateway.messages.roles import ROLES, Role, pick_low_role
from gateway.turn_marks import ToolTimes
from gateway.worker.sandbox import SandboxSupport, find_support

# Which hook asks, for what ("send", "store.get"), its parameters, and the id of the event during which it asks.
RequestServer = Callable[[str, str, dict[str, Any], str], Awaitable[Any]]


# Whether the whole of one of these names is what this regular expression describes. Raises AgentError.
MatchPattern: TypeAlias = Callable[[str, Sequence[str]], Awaitable[bool]]


class FileWriter(Protocol):
    """Writes files for hooks that were made to read them; `files` are those that a hook's source names."""

    async def keep_files(self, files: Collection[str]) -> None:
        """They are there when this returns: a hook is about to start."""

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        """Until what this event tells of stands in them; not for long."""


STORE_VERBS = "store."  # how they begin
LOCK_FILE, DATA_FOLDER = "hooks.lock", "data"
TELLING_LIMIT = 5.0  # seconds that a decision waits for what hooks are being told


class FileWriters:
    """Several, each of which knows its own files."""

    def __init__(self, *writers: FileWriter) -> None:
        self._writers = writers

    async def keep_files(self, files: Collection[str]) -> None:
        for writer in self._writers:
            await writer.keep_files(files)

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        for writer in self._writers:
            await writer.wait_for_files(files, event)


# What of the environment every hook sees; all else must be named in its manifest.
_ALWAYS_VISIBLE = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"})
_ALWAYS_VISIBLE_PREFIXES = ("LC_", "XDG_")
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
# What a library asks for that prints or pages: it does without.
OF_A_TERMINAL = DESKTOP_VARIABLES | {
    *("BROWSER", "COLORTERM", "COLUMNS", "EDITOR", "FORCE_COLOR", "LANGUAGE"),
    *("LINES", "LOGNAME", "NO_COLOR", "PAGER", "SHELL", "TERM"),
}


def is_public_variable(name: str) -> bool:
    return name in _ALWAYS_VISIBLE or name.startswith(_ALWAYS_VISIBLE_PREFIXES) or name.lower() in _PROXY_VARIABLES


FindFiles: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""The fields of an event, with the files that they name where those lie here."""


class HookPorts(msgspec.Struct, frozen=True):
    """The parts of the gateway that hooks need besides the registry.

    `match` tests whether a pattern that is not ours means one of some names; without it nothing waits. `follow_call`
    notes each call of a hook when it is over. `find_files` names the files of an event where they lie here: a durable
    hook gets events of other gateways, too. `tools`: when tools were at work.
    """

    file_writer: FileWriter | None = None
    match: MatchPattern | None = None
    follow_call: Callable[[HookCall], None] | None = None
    find_files: FindFiles | None = None
    tools: ToolTimes | None = None


class HookEnvironment(msgspec.Struct, frozen=True):
    """What hooks find around them.

    `environ` is the gateway's own environment, of which a hook sees what it declares; `home` is HERMES_HOME; `state`
    holds what is kept of hooks, and beside it lie their data and `hooks.lock`; `modules` are offered to handlers by
    name; `packages` is where the interpreter of the workers looks. `retries` are the seconds between the deliveries of
    what a durable hook failed at. `redactor` takes secrets out of what hooks say of their failures and print: a hook
    may be given some, and an error of its own may hold one. `public` are variables that are known to hold no secret.
    `known_values`: what of ours can stand in the fields of events. `mark` is that of the home, by which processes are
    found that hooks leave behind. `is_offline`: they reach no network, where the kernel can forbid it.
    """

    environ: Mapping[str, str]
    home: Path
    logs: Path
    state: Path
    platforms: Collection[str] = ()
    modules: Mapping[str, str] = msgspec.field(default_factory=dict)
    packages: Sequence[str] = ()
    retries: tuple[float, ...] = (1.0, 5.0, 30.0, 300.0)
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    public: Collection[str] = ()
    known_values: Mapping[str, Collection[str]] = msgspec.field(default_factory=dict)
    mark: str = ""
    is_offline: bool = False
    ports: HookPorts = HookPorts()

    def environ_of(self, manifest: Manifest, is_placed: bool = True) -> dict[str, str]:
        """The environment that this hook's process has; all of it. `is_placed`: its owner put it there by hand.

        What a hook is given by name is a secret from then on, unless it plainly is none.
        """
        wanted = {*manifest.env, *_ALWAYS_VISIBLE, *CERTIFICATE_VARIABLES}
        if manifest.starts_programs:
            wanted |= DESKTOP_VARIABLES
        declared = {*manifest.env} - {*manifest.found}
        unwanted = set() if is_placed else DESKTOP_VARIABLES - declared
        seen = {name: value for name, value in self.environ.items() if name in wanted or is_public_variable(name)}
        private = {*manifest.env} - {*self.public, *_ALWAYS_VISIBLE, *CERTIFICATE_VARIABLES, *DESKTOP_VARIABLES}
        self.redactor.learn(seen[name] for name in private & seen.keys() if not is_public_value(seen[name]))
        given = {name: value for name, value in seen.items() if name not in unwanted}
        return {**given, "HERMES_HOME": str(self.home)}

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def data_of(self, name: str) -> Path:
        """A folder for the files of this hook alone."""
        return self.state.parent / DATA_FOLDER / name

    def places_of(self, name: str) -> tuple[str, ...]:
        """Where the interpreter of this hook looks for packages."""
        return (str(self.packages_of(name)), *self.packages)

    @property
    def copies(self) -> Path:
        """Where hooks that run only as they were trusted run."""
        return self.state / "trusted"

    def packages_of(self, name: str) -> Path:
        """Where `hooks deps` puts what this hook alone needs."""
        return self.state / "packages" / name


# Waits until this hook has been told of what has happened so far in the conversation of this key.
WaitUntilTold: TypeAlias = Callable[[Any], Awaitable[None]]


class ObserversFirst:
    """Who is told before others decide: in Hermes a callback or a handler has run before the next guard is asked."""

    def __init__(self) -> None:
        self._waits: dict[str, WaitUntilTold] = {}

    def join(self, name: str, wait: WaitUntilTold) -> None:
        self._waits[name] = wait

    def remove(self, name: str) -> None:
        self._waits.pop(name, None)

    async def wait(self, session: Any) -> str:
        """Until all of them know of what has happened so far. After five seconds the name of one that does not."""
        late = ""
        with anyio.move_on_after(TELLING_LIMIT):
            for late, wait in tuple(self._waits.items()):  # noqa: B007 - the last one is told of
                await wait(session)
            return ""
        return late


@dataclass(slots=True, eq=False)
class HookServices:
    """What a folder hook works with. Built once by the service, and shared by all its hooks.

    Nothing of it changes but the settings, when the configuration is read again.
    """

    settings: HooksSettings
    environment: HookEnvironment
    registry: HookRegistry
    fork_server: ForkServerClient
    serve_request: RequestServer
    tasks: TaskGroup
    support: SandboxSupport = field(default_factory=find_support)
    endings: "WireEndings" = field(init=False)
    lock: HooksLock = field(init=False)
    decisions: Decisions = field(init=False)
    observers_first: ObserversFirst = field(default_factory=ObserversFirst)

    def __post_init__(self) -> None:
        self.decisions = Decisions(self.registry, self.tasks)
        self.lock = HooksLock(self.environment.state.parent / LOCK_FILE)
        self.endings = WireEndings()

    def redact(self, said: str) -> str:
        """What a hook says of itself, as others may see it."""
        return self.environment.redactor.clean(said)

    def note(self, name: str, text: str) -> None:
        """Say something in the log of this hook, whoever else writes there."""
        output = HookOutput(self.environment.log_of(name), self.redact)
        output.note(text)
        output.close()

    def settings_of(self, name: str, short: str = "") -> HookOverrides:
        return self.settings.find_overrides(name, short)


class WireEndings:
    """The wires of hooks that are gone, as long as something of them may still act."""

    def __init__(self) -> None:
        self._ending: dict[Wire, anyio.Event] = {}

    @contextmanager
    def ending(self, wire: Wire) -> Iterator[None]:
        """It is being ended inside this block."""
        self._ending[wire] = anyio.Event()
        try:
            yield
        finally:
            self._ending.pop(wire).set()

    async def wait(self) -> None:
        """Until those that are ending now have ended."""
        for ended in tuple(self._ending.values()):
            await ended.wait()


ALWAYS_ALLOWED = "facts"  # how the gateway is set up: there is no secret in it
AFTERTHOUGHT = 5.0  # seconds after its answer in which what a program asks for is taken as caused by the event
MAX_CAUSES = 512  # events whose cause is known, for tasks that a hook goes on with after its answer


def check_request(manifest: Manifest, verb: str, params: Mapping[str, Any]) -> None:
    """Raises HookError where a hook with this manifest may not ask this of the gateway."""
    right = verb.partition(".")[0]
    if right not in manifest.uses and right != ALWAYS_ALLOWED:
        raise HookError(f"{manifest.folder} may not {right}: add `uses: [{right}]` to its HOOK.yaml")
    if verb != "emit":
        return
    name = params.get("name")
    if not isinstance(name, str) or not name or not isinstance(params.get("fields", {}), dict):
        raise HookError("emit takes the name of an event and its fields")
    if get_event_spec(name) is not None:
        raise HookError(f"{name[:100]} is told by the gateway alone; a hook emits events of names of its own")


class HookRights:
    def __init__(self, name: str, services: HookServices) -> None:
        self._name = name
        self._services = services
        self._causes: OrderedDict[str, tuple[Cause | None, Role, Mapping[str, str]]] = OrderedDict()
        self._handled: dict[str, None] = {}
        self._last, self._left = "", 0.0  # the event that it had last, and when it was done with it
        self._lowest: Role = "owner"  # of all events that it has heard: what it does by itself may be because of any

    @contextmanager
    def handling(self, event: Event) -> Iterator[None]:
        """It has this event inside; what it does because of that, then or later, has the same cause."""
        cause = self._services.registry.current_cause
        with self._having(str(event.get("id", "")), cause, role_of_event(event.name, event), event):
            yield

    @contextmanager
    def handling_all(self, events: Iterable[tuple[str, int, Mapping[str, Any]]]) -> Iterator[None]:
        """It has these events inside: of each its name, its depth and its fields, as far as they say whose it is."""
        had = list[str]()
        try:
            for name, depth, fields in events:
                had.append(known := str(fields.get("id", "")))
                self._enter(known, (known, depth), role_of_event(name, fields), fields)
            yield
        finally:
            self._leave(*had)

    @contextmanager
    def serving(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """It does what a person wants of it, by its own command or tool, with their rights; the name of this doing."""
        name = uuid.uuid4().hex
        role: Role = next((role for role in ROLES if role == fields.get("role")), "guest")
        with self._having(name, self._services.registry.current_cause, role, fields):
            yield name

    @contextmanager
    def _having(self, name: str, cause: Cause | None, role: Role, fields: Mapping[str, Any]) -> Iterator[None]:
        self._enter(name, cause, role, fields)
        try:
            yield
        finally:
            self._leave(name)

    def _enter(self, name: str, cause: Cause | None, role: Role, fields: Mapping[str, Any]) -> None:
        self._lowest = pick_low_role(self._lowest, role)
        self._causes[name] = (cause, role, place_of_event(fields))
        if len(self._causes) > MAX_CAUSES:
            self._causes.popitem(last=False)
        self._handled[name] = None

    def _leave(self, *names: str) -> None:
        for name in names:
            self._handled.pop(name, None)
            self._last, self._left = name, time.monotonic()

    def make_capability(self, manifest: Manifest, store_name: str, *, is_restricted: bool) -> Capability:
        """What answers the requests of a hook with this manifest, which keeps under this name what it keeps.

        A restricted one asks with at most the rights of a user.
        """

        async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
            check_request(manifest, verb, params)
            cause, role, place = self._find_cause(during)
            role = pick_low_role(role, "user") if is_restricted else role
            with use_cause(cause), use_rights(role, place):
                if verb == "emit":
                    told = self._emit(params, role)
                    await self._services.registry.recorders.settled()  # a hook is not told before that it is done
                    return told
                name = store_name if verb.startswith(STORE_VERBS) else self._name
                return await self._services.serve_request(name, verb, params, during)

        return serve

    def _find_cause(self, during: str) -> tuple[Cause | None, Role, Mapping[str, str]]:
        """Because of what this is asked for, with whose rights and where: guessed, with the least that it may be."""
        cause, role, place = self._causes.get(during or self._guess_event(), (None, self._lowest, {}))
        if during:
            return cause, role, place
        known = [self._causes[name][1] for name in self._handled if name in self._causes]
        return cause, pick_low_role(*known) if known else self._lowest, place

    def _guess_event(self) -> str:
        """A program does not say for which event it asks: for the newest of those that it has, or that it just had."""
        if self._handled:
            return next(reversed(self._handled))
        return self._last if time.monotonic() - self._left < AFTERTHOUGHT else ""

    def _emit(self, params: dict[str, Any], role: Role) -> int:
        """How many are told."""
        name, fields = params["name"], params.get("fields", {})
        registry = self._services.registry
        registry.emit(name, **{str(field): value for field, value in fields.items()} | {"rights": role})
        return len(registry.at(name))
