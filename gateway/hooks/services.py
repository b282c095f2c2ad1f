"""The services for folder hooks: the settings, the environment, the parts of the gateway that serve hooks, and rights.

A hook may request only what its manifest `uses`. Each request has the cause and the rights of the event that the hook
handles.
"""

import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
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
from gateway.hooks.decisions import Decisions
from gateway.hooks.manifests.installed import HooksLock
from gateway.hooks.manifests.manifest import Manifest
from gateway.hooks.manifests.reach import CERTIFICATE_VARIABLES, DESKTOP_VARIABLES
from gateway.hooks.registry import HookRegistry
from gateway.hooks.stats import HookCall
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.output import HookOutput
from gateway.hooks.wires.wire import Capability, Wire
from gateway.logs.redaction import Redactor
from gateway.messages.roles import ROLES, Role, pick_low_role
from gateway.turn_marks import ToolTimes
from gateway.worker.sandbox import SandboxSupport, find_support

# The parameters: the hook, its request ("send", "store.get") with parameters, and the id of the event that it handles.
RequestServer = Callable[[str, str, dict[str, Any], str], Awaitable[Any]]


# Tells whether this regular expression matches one of these names as a whole. Raises AgentError.
MatchPattern: TypeAlias = Callable[[str, Sequence[str]], Awaitable[bool]]


class FileWriter(Protocol):
    """A writer of files that hooks expect; `files` are the files that a hook's source names."""

    async def keep_files(self, files: Collection[str]) -> None:
        """Write the files now: a hook is about to start."""

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        """Wait, not for long, until the files contain what this event reports."""


STORE_VERBS = "store."  # how requests to a hook's store begin
LOCK_FILE, DATA_FOLDER = "hooks.lock", "data"
TELLING_LIMIT = 5.0  # seconds that a decision waits for observers to get earlier events


class FileWriters:
    """Several writers, each of which knows its own files."""

    def __init__(self, *writers: FileWriter) -> None:
        self._writers = writers

    async def keep_files(self, files: Collection[str]) -> None:
        for writer in self._writers:
            await writer.keep_files(files)

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        for writer in self._writers:
            await writer.wait_for_files(files, event)


# Variables that every hook gets; its manifest must name all others.
_ALWAYS_VISIBLE = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"})
_ALWAYS_VISIBLE_PREFIXES = ("LC_", "XDG_")
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
# Variables that libraries for printing and paging ask for; the libraries work without the variables.
OF_A_TERMINAL = DESKTOP_VARIABLES | {
    *("BROWSER", "COLORTERM", "COLUMNS", "EDITOR", "FORCE_COLOR", "LANGUAGE"),
    *("LINES", "LOGNAME", "NO_COLOR", "PAGER", "SHELL", "TERM"),
}


def is_public_variable(name: str) -> bool:
    return name in _ALWAYS_VISIBLE or name.startswith(_ALWAYS_VISIBLE_PREFIXES) or name.lower() in _PROXY_VARIABLES


FindFiles: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Return the fields of an event, with the paths of its files that exist on this machine."""


class HookPorts(msgspec.Struct, frozen=True):
    """The further parts of the gateway that hooks need, in addition to the registry.

    `match` tests whether a pattern of another program matches one of some names; without `match`, the event loop tests
    the pattern itself. `follow_call` notes each call of a hook when the call is over. `find_files` finds the files of
    an event on this machine: a durable hook gets events of other gateways, too. `tools` knows when tools were at work.
    """

    file_writer: FileWriter | None = None
    match: MatchPattern | None = None
    follow_call: Callable[[HookCall], None] | None = None
    find_files: FindFiles | None = None
    tools: ToolTimes | None = None


class HookEnvironment(msgspec.Struct, frozen=True):
    """The surroundings of all hooks.

    `environ` is the gateway's own environment, of which a hook gets the variables that it declares; `home` is
    HERMES_HOME; `state` is the folder for the gateway's records about hooks, next to the hooks' data and `hooks.lock`;
    `modules` are offered to handlers by name; `packages` are the folders in which the workers' interpreter looks for
    packages. `retries` are the seconds between the deliveries of an event at which a durable hook failed. `redactor`
    removes secrets from the failures and the output of hooks: a hook may have secrets, and its errors may contain them.
    `public` are variables that are known to hold no secret. `known_values` are the gateway's own values for the fields
    of events. `mark` identifies the home: with the mark, the gateway finds processes that hooks left behind.
    `is_offline`: hooks reach no network, if the kernel can block the network.
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
        """Return the whole environment of this hook's process.

        `is_placed`: the owner placed the hook by hand. The redactor learns the values of the variables that the
        manifest names as secrets, except values that are plainly public.
        """
        wanted = {*manifest.env, *_ALWAYS_VISIBLE, *CERTIFICATE_VARIABLES}
        if manifest.reading.starts_programs:
            wanted |= DESKTOP_VARIABLES
        declared = {*manifest.env} - {*manifest.reading.found}
        unwanted = set() if is_placed else DESKTOP_VARIABLES - declared
        seen = {name: value for name, value in self.environ.items() if name in wanted or is_public_variable(name)}
        private = {*manifest.env} - {*self.public, *_ALWAYS_VISIBLE, *CERTIFICATE_VARIABLES, *DESKTOP_VARIABLES}
        self.redactor.learn(seen[name] for name in private & seen.keys() if not is_public_value(seen[name]))
        given = {name: value for name, value in seen.items() if name not in unwanted}
        return {**given, "HERMES_HOME": str(self.home)}

    def log_of(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def data_of(self, name: str) -> Path:
        """Return the folder for the files of this hook alone."""
        return self.state.parent / DATA_FOLDER / name

    def places_of(self, name: str) -> tuple[str, ...]:
        """Return the folders in which this hook's interpreter looks for packages."""
        return (str(self.packages_of(name)), *self.packages)

    @property
    def copies(self) -> Path:
        """Return the folder of the trusted copies: a hook that may run only as it was trusted runs from its copy."""
        return self.state / "trusted"

    def packages_of(self, name: str) -> Path:
        """Return the folder into which `hooks deps` installs packages for this hook alone."""
        return self.state / "packages" / name


# Waits until this hook has received the events so far of the conversation with this key.
WaitUntilTold: TypeAlias = Callable[[Any], Awaitable[None]]


class ObserversFirst(msgspec.Struct, eq=False):
    """The observers that get an event before a guard decides about the next event, as callbacks do in Hermes."""

    _waits: dict[str, WaitUntilTold] = {}

    def join(self, name: str, wait: WaitUntilTold) -> None:
        self._waits[name] = wait

    def remove(self, name: str) -> None:
        self._waits.pop(name, None)

    async def wait(self, session: Any) -> str:
        """Wait until all observers have received the earlier events; return "".

        After five seconds, return the name of a hook that has not received them.
        """
        late = ""
        with anyio.move_on_after(TELLING_LIMIT):
            for late, wait in tuple(self._waits.items()):  # noqa: B007 - the last name is returned
                await wait(session)
            return ""
        return late


class WireEndings(msgspec.Struct, eq=False):
    """The wires of removed hooks that may still act."""

    _ending: dict[Wire, anyio.Event] = {}

    @contextmanager
    def ending(self, wire: Wire) -> Iterator[None]:
        """Note, within the context, that this wire is being ended."""
        self._ending[wire] = anyio.Event()
        try:
            yield
        finally:
            self._ending.pop(wire).set()

    async def wait(self) -> None:
        """Wait until the wires that are ending now have ended."""
        for ended in tuple(self._ending.values()):
            await ended.wait()


@dataclass(slots=True, eq=False)
class HookServices:
    """The services that a folder hook works with, built once and shared by all hooks.

    Only the settings change, when the configuration is read again.
    """

    settings: HooksSettings
    environment: HookEnvironment
    registry: HookRegistry
    fork_server: ForkServerClient
    serve_request: RequestServer
    tasks: TaskGroup
    support: SandboxSupport = field(default_factory=find_support)
    endings: WireEndings = field(default_factory=WireEndings)
    lock: HooksLock = field(init=False)
    decisions: Decisions = field(init=False)
    observers_first: ObserversFirst = field(default_factory=ObserversFirst)

    def __post_init__(self) -> None:
        self.decisions = Decisions(self.registry, self.tasks)
        self.lock = HooksLock(self.environment.state.parent / LOCK_FILE)

    def redact(self, said: str) -> str:
        """Remove the secrets from the words of a hook."""
        return self.environment.redactor.clean(said)

    def note(self, name: str, text: str) -> None:
        """Write a line into the log of this hook."""
        output = HookOutput(self.environment.log_of(name), self.redact)
        output.note(text)
        output.close()

    def settings_of(self, name: str, short: str = "") -> HookOverrides:
        return self.settings.find_overrides(name, short)


ALWAYS_ALLOWED = "facts"  # how the gateway is set up, without secrets
AFTERTHOUGHT = 5.0  # seconds after an answer in which its event counts as the cause of a program's requests
MAX_CAUSES = 512  # events whose cause is remembered, for tasks that a hook continues after its answer


def check_request(manifest: Manifest, verb: str, params: Mapping[str, Any]) -> None:
    """Raise HookError if a hook with this manifest may not send this request to the gateway."""
    right = verb.partition(".")[0]
    if right not in manifest.uses and right != ALWAYS_ALLOWED:
        raise HookError(f"{manifest.folder} may not {right}: add `uses: [{right}]` to its HOOK.yaml")
    if verb != "emit":
        return
    name = params.get("name")
    if not isinstance(name, str) or not name or not isinstance(params.get("fields", {}), dict):
        raise HookError("emit takes the name of an event and its fields")
    if get_event_spec(name) is not None:
        raise HookError(f"{name[:100]} is an event of the gateway alone; a hook emits events with names of its own")


class HookRights:
    def __init__(self, name: str, services: HookServices) -> None:
        self._name = name
        self._services = services
        self._causes: OrderedDict[str, tuple[Cause | None, Role, Mapping[str, Any]]] = OrderedDict()
        self._handled: dict[str, None] = {}
        self._last, self._left = "", 0.0  # the event that the hook handled last, and when
        self._lowest: Role = "owner"  # of all its events: any may be the cause of requests outside of events

    def handling(self, event: Event) -> AbstractContextManager[str]:
        """Let the hook handle this event within the context: its requests meanwhile have the event as their cause."""
        cause, role = self._services.registry.current_cause, role_of_event(event.name, event)
        return self._having((str(event.get("id", "")), cause, role, place_of_event(event)))

    def handling_all(self, events: Iterable[tuple[str, int, Mapping[str, Any]]]) -> AbstractContextManager[str]:
        """Let the hook handle these events within the context.

        Each event consists of its name, its depth, and the fields that identify its owner.
        """
        known = [
            (name := str(fields.get("id", "")), (name, depth), role_of_event(event, fields), fields)
            for event, depth, fields in events
        ]
        return self._having(*known)

    def serving(self, fields: Mapping[str, Any]) -> AbstractContextManager[str]:
        """Let the hook serve a person by a command or tool, with the person's rights; yield an id for this service."""
        role: Role = next((role for role in ROLES if role == fields.get("role")), "guest")
        return self._having((uuid.uuid4().hex, self._services.registry.current_cause, role, place_of_event(fields)))

    @contextmanager
    def _having(self, *events: tuple[str, Cause | None, Role, Mapping[str, Any]]) -> Iterator[str]:
        for name, cause, role, fields in events:
            if role != self._lowest:
                self._lowest = pick_low_role(self._lowest, role)
            self._causes[name] = (cause, role, fields)
            self._handled[name] = None
        while len(self._causes) > MAX_CAUSES:
            self._causes.popitem(last=False)
        try:
            yield events[0][0]
        finally:
            for name, *_ in events:
                self._handled.pop(name, None)
                self._last = name
            self._left = time.monotonic()

    def make_capability(self, manifest: Manifest, store_name: str, *, is_restricted: bool) -> Capability:
        """Return the function that answers requests of a hook with this manifest and this store.

        A restricted hook has at most the rights of a user.
        """

        async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
            check_request(manifest, verb, params)
            cause, role, place = self._find_cause(during)
            role = pick_low_role(role, "user") if is_restricted else role
            with use_cause(cause), use_rights(role, place):
                if verb == "emit":
                    told = self._emit(params, role)
                    await self._services.registry.recorders.settled()  # before the hook gets its answer
                    return told
                name = store_name if verb.startswith(STORE_VERBS) else self._name
                return await self._services.serve_request(name, verb, params, during)

        return serve

    def _find_cause(self, during: str) -> tuple[Cause | None, Role, Mapping[str, str]]:
        """Return the cause of a request, with its rights and place; a guessed cause has the least rights."""
        cause, role, fields = self._causes.get(during or self._guess_event(), (None, self._lowest, {}))
        place = place_of_event(fields) if fields else {}
        if during:
            return cause, role, place
        known = [self._causes[name][1] for name in self._handled if name in self._causes]
        return cause, pick_low_role(*known) if known else self._lowest, place

    def _guess_event(self) -> str:
        """Return the newest event that the hook handles, or has just handled: a program's request names no event."""
        if self._handled:
            return next(reversed(self._handled))
        return self._last if time.monotonic() - self._left < AFTERTHOUGHT else ""

    def _emit(self, params: dict[str, Any], role: Role) -> int:
        """Emit the event; return how many hooks get it."""
        name, fields = params["name"], params.get("fields", {})
        registry = self._services.registry
        registry.emit(name, **{str(field): value for field, value in fields.items()} | {"rights": role})
        return len(registry.at(name))
