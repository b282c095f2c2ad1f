"""A hook's manifest, `HOOK.yaml`, as a value: the hook's events, its handler, command or URL, and its needs.

Binding checks the types of the values, and the `_check` functions check the rest. Each function gets the tree, so that
its findings name the line and column of the wrong word. Reading a manifest runs no code, and finds all errors at once;
oddities are warnings. A manifest for Hermes, without any key of this gateway, is read as Hermes reads it, except that
mistakes which Hermes ignores are shown here.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from gateway.config.fields import VARIABLE_PATTERN
from gateway.config.webhooks import WEBHOOK_NAME
from gateway.errors import HookError
from gateway.events.catalogue import EVENT_SPECS, get_event_spec, suggest_event
from gateway.events.fields import EventSpec
from gateway.hooks.durable.dead_letters import can_be_durable
from gateway.hooks.manifests.manifest_keys import (
    CALLED_BY,
    DECIDE_TIMEOUT,
    EVENT_PATTERN,
    FOREIGN_KEYS,
    IGNORED_KEYS,
    MEANT_BESIDE,
    OBSERVE_TIMEOUT,
    OWN_KEYS,
    REACH_KEYS,
    REMOTE_TIMEOUT,
    SHARED_KEYS,
    WHOLE_PATH_PATTERN,
    DeliveryMode,
    ManifestKeys,
    PluginRight,
)
from gateway.hooks.manifests.requirement import parse_requirement
from gateway.hooks.nats_transport import is_nats_url, parse_nats_url
from gateway.hooks.patterns import EventSelector
from gateway.hooks.wires import sherma
from gateway.yaml_source.binder import bind
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.timetable import parse_timetable
from gateway.yaml_source.tree import (
    Finding,
    SourceLocation,
    YamlDocument,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    as_bool,
    as_float,
    is_null,
    to_plain,
    to_printable,
)

BEFORE_TOOLS = ("tool:before", "tools:before")  # a hook before a tool guards it, unless it says otherwise
MANIFEST_FILE = "HOOK.yaml"
FORMER_PACKAGES = frozenset({"anthropic", "mcp", "openai"})  # came with earlier versions of the gateway
HANDLER_FILE = "handler.py"
MAX_MANIFEST_BYTES = 64_000
MAX_NAME = 100

_NAME = re.compile(EVENT_PATTERN)
_ENV = re.compile(VARIABLE_PATTERN)
_WHOLE_PATH = re.compile(WHOLE_PATH_PATTERN)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a hook that its manifest does not have: the gateway and the dialect read them from its code."""

    found: tuple[str, ...] = ()  # entries of `env` and `uses` from a Hermes folder's source, not declared
    starts_programs: bool = False  # the hook was placed by hand, and its source starts programs
    files: tuple[str, ...] = ()  # names in the source of files that writers keep up to date for the hook
    left_out: frozenset[str] = frozenset()  # fields of events that the hook's source does not read
    guards: tuple[str, ...] = ()  # events of `intercepts` to deny when the hook fails, whatever `on_error` says
    shut: tuple[str, ...] = ()  # events of `intercepts` to deny only while the hook may not run
    rewords: bool = True  # as an interceptor, the hook may change text for people
    former: tuple[str, ...] = ()  # the packages of `FORMER_PACKAGES` that its source imports
    noted: dict[str, tuple[str, ...]] = {}  # notes that the dialect keeps


class Manifest(ManifestKeys, frozen=True, kw_only=True):
    """The complete manifest of a folder: `command` is split into words, and each name occurs once.

    A manifest may come from other files than `HOOK.yaml`; its texts may then have any length.
    """

    folder: str
    name: str
    description: str = ""
    version: str = ""
    max: int = 1
    uses: tuple[PluginRight, ...] = ()  # type: ignore[assignment]  # a plugin has further rights
    says_reach: bool = False  # the manifest has `reads`, `writes` or `net`
    says_on_error: bool = False  # `on_error` is in the manifest, or in the settings of the hook
    own_key: str = ""  # a key in HOOK.yaml that only this gateway has; if "", the source shows the hook's needs
    entry: str = HANDLER_FILE  # the file that the hook's worker runs
    decide_limit: float = DECIDE_TIMEOUT  # seconds to decide if the manifest has no `timeout`
    reading: Reading = Reading()

    def add_reading(self, **facts: Any) -> "Manifest":
        """Return this manifest, with these facts in its reading."""
        return msgspec.structs.replace(self, reading=msgspec.structs.replace(self.reading, **facts))

    @property
    def guard(self) -> "Guard | None":
        """Return the events to deny while the hook cannot answer; None if the hook guards nothing."""
        names = self.intercepts if self.on_error == "deny" else (*self.reading.guards, *self.reading.shut)
        return Guard(names, self.when, self.order) if names else None

    @property
    def is_guard(self) -> bool:
        """Tell whether an unclear end of the hook's program counts as a failure."""
        return self.on_error == "deny" or bool(self.reading.guards)

    def denies(self, event: str) -> bool:
        """Tell whether the gateway denies this event if the hook fails at it."""
        return self.on_error == "deny" or event in EventSelector(self.reading.guards)

    @property
    def wire(self) -> Literal["worker", "command", "url"]:
        return "command" if self.command else "url" if self.url else "worker"

    @property
    def subscriptions(self) -> tuple[str, ...]:
        return (*self.intercepts, *(name for name in self.events if name not in self.intercepts))

    @property
    def observe_timeout(self) -> float:
        return self.timeout or (REMOTE_TIMEOUT if self.url else OBSERVE_TIMEOUT)

    @property
    def decide_timeout(self) -> float:
        return self.timeout or (REMOTE_TIMEOUT if self.url else self.decide_limit)


class Guard(msgspec.Struct, frozen=True):
    """The events that are denied while a hook cannot answer."""

    intercepts: tuple[str, ...]
    when: dict[str, Any] = {}
    order: float = 0


class ParsedManifest(msgspec.Struct, frozen=True):
    """A manifest and its findings. If a finding is an error, `manifest` is None, and `guard` is the readable part."""

    manifest: Manifest | None
    findings: tuple[Finding, ...] = ()
    guard: Guard | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def required(self, folder: Path) -> Manifest:
        """Return the manifest, or raise a HookError with all findings."""
        if self.manifest is None:
            found = "\n".join(f"  {finding}" for finding in self.errors)
            raise HookError(f"the hook {folder.name} cannot be read:\n{found}")
        return self.manifest


def label_of(name: str) -> str:
    """Return a folder's name for one line: letters of every script stay, unprintable characters are escaped."""
    return to_printable(name if name.isprintable() else ascii(name)[1:-1], MAX_NAME)


def find_misnamed_manifest(path: Path) -> str:
    """Find a file that was probably meant as the manifest: `hook.yml` and the like."""
    try:
        with os.scandir(path) as entries:
            return next((entry.name for entry in entries if entry.name.lower() in ("hook.yaml", "hook.yml")), "")
    except OSError:
        return ""


def read_document(folder: Path) -> YamlDocument:
    """Read the manifest as a tree."""
    return read_yaml(folder / MANIFEST_FILE, MAX_MANIFEST_BYTES, name=f"{label_of(folder.name)}/{MANIFEST_FILE}")


def read_manifest(folder: Path, name: str = "") -> ParsedManifest:
    """Read the folder's manifest; errors become findings, and nothing in the folder is run.

    `name` is the hook's name if it differs from the name of the folder.
    """
    name = name or folder.name
    if not (folder / MANIFEST_FILE).exists():
        return _report_missing_manifest(folder)
    tree = read_document(folder)
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(tree.root.place)
    own_key = min((key for key in root if key in OWN_KEYS), key=SHARED_KEYS.__contains__, default="")
    is_foreign = not own_key or own_key in SHARED_KEYS
    findings = list(tree.findings)
    findings += _check_foreign_keys(root, is_foreign)
    unread = IGNORED_KEYS | {"priority"} | (FOREIGN_KEYS if is_foreign else frozenset())
    kept = YamlMapping(root.place, tuple(pair for pair in root.pairs if pair[0].text not in unread))
    keys, bound = bind(kept if isinstance(tree.root, YamlMapping) else tree.root, ManifestKeys, unknown="warning")
    findings += bound
    if root.pairs or not tree.findings:
        findings += _check_keys(root, keys or _bind_valid_keys(kept))
        findings += _check_webhook(name, root)
    findings.sort(key=lambda finding: (finding.place.line, finding.place.column))
    failed = keys is None or any(finding.severity == "error" for finding in findings)
    manifest = None if failed or keys is None else _build_manifest(name, root, keys, own_key)
    return ParsedManifest(manifest, tuple(findings), None if manifest else _read_guard(root))


def _report_missing_manifest(folder: Path) -> ParsedManifest:
    place = SourceLocation(f"{label_of(folder.name)}/{MANIFEST_FILE}")
    near = find_misnamed_manifest(folder)
    remedy = f"rename {near} to {MANIFEST_FILE}" if near else "write one; its least is: events: [agent:end]"
    return ParsedManifest(None, (Finding(place, "is missing", remedy),))


def _bind_valid_keys(root: YamlMapping) -> ManifestKeys:
    """Bind only the valid keys, so that the checks run even if other keys are invalid."""
    pairs = (pair for pair in root.pairs if bind(YamlMapping(root.place, (pair,)), ManifestKeys, unknown="warning")[0])
    return bind(YamlMapping(root.place, tuple(pairs)), ManifestKeys, unknown="warning")[0] or ManifestKeys()


def _build_manifest(folder: str, root: YamlMapping, keys: ManifestKeys, own_key: str) -> Manifest:
    schedule = keys.schedule.strip()
    called = [f"{kind}:{folder}" for kind, said in (("schedule", schedule), ("webhook", keys.webhook)) if said]
    made_whole = {
        "folder": folder,
        "name": keys.name or folder,
        "events": tuple(dict.fromkeys((*_names_said(keys, keys.events), *called))),
        "intercepts": tuple(dict.fromkeys(_names_said(keys, keys.intercepts))),
        "max": keys.max if keys.mode == "parallel" else 1,
        "env": tuple(dict.fromkeys((*keys.env, *keys.requires.env))),
        "schedule": schedule,
        "delivery": _delivery_of(root, keys),
        "command": _command_of(root, keys),
        "says_reach": any(root.key(key) for key in REACH_KEYS),
        "says_on_error": root.key("on_error") is not None,
        "own_key": own_key,
    }
    return Manifest(**{**msgspec.structs.asdict(keys), **made_whole})


def _delivery_of(root: YamlMapping, keys: ManifestKeys) -> DeliveryMode:
    """Return the delivery mode; a webhook's default is durable, since the caller got a confirmation."""
    return "durable" if keys.webhook and not root.get("delivery") else keys.delivery


def _names_said(keys: ManifestKeys, names: Sequence[str]) -> Sequence[str]:
    """Return the hook's subscriptions; in another dialect, a glob means the events that this dialect has words for."""
    if keys.dialect == "gateway":
        return names
    return [point for name in names for point in sherma.POINTS if point in EventSelector([name])]


def _command_of(root: YamlMapping, keys: ManifestKeys) -> tuple[str, ...]:
    """Return the words of the command. Raises ValueError if a command that is one text cannot be split."""
    return tuple(shlex.split(" ".join(keys.command))) if isinstance(root.get("command"), YamlScalar) else keys.command


def _read_guard(root: YamlMapping) -> Guard | None:
    """Read the guard from the tree itself, so that the guard denies even if the manifest has errors elsewhere."""
    names = tuple(item.text for item in _scalars_at(root, "intercepts") if _NAME.fullmatch(item.text))
    if root.key("on_error") is None:  # the events that the hook would guard by default
        selector = EventSelector(names)
        names = tuple(name for name in BEFORE_TOOLS if name in selector)
    elif "deny" not in [item.text for item in _scalars_at(root, "on_error")]:
        return None
    fields = to_plain(when) if isinstance(when := root.get("when"), YamlMapping) else {}
    order = as_float(node.text) if isinstance(node := root.get("order"), YamlScalar) else None
    return Guard(names, fields, order or 0) if names else None


def _items_of(node: YamlNode | None) -> tuple[YamlNode, ...]:
    return node.items if isinstance(node, YamlSequence) else () if node is None or is_null(node) else (node,)


def _check_foreign_keys(root: YamlMapping, is_foreign: bool) -> Iterator[Finding]:
    """Yield a finding for each key of other systems that means something else there, or nothing here."""
    if key := root.key("priority"):
        what = "`priority` means low first in some systems and high first in others"
        remedy = "write `order: <number>`; low goes first, the default is 0"
        remedy = f"Hermes passes over it; if it is meant, {remedy}" if is_foreign else remedy
        yield Finding(key.place, what, remedy, "warning" if is_foreign else "error")
    if not is_foreign:
        return
    for name, remedy in (
        ("platforms", "write `when: {platform: [...]}` to see these platforms' events only"),
        ("capabilities", "write `uses: [...]` for what the hook may do"),
        ("requires_env", "write `requires: {env: [...]}`"),
    ):
        if key := root.key(name):
            yield Finding(key.place, f"`{name}` is passed over, as Hermes does", remedy, "warning")


def _check_keys(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    yield from _check_subscriptions(root, keys)
    if keys.when:
        yield from _check_conditions(root, keys)
    written = {key.text for key, _ in root.pairs}
    for of, check in _CHECKS:
        if written & of:
            yield from check(root, keys)


def _place_of(root: YamlMapping, *path: str) -> SourceLocation:
    return YamlDocument(root).place(*path)


def _scalars_at(root: YamlMapping, *path: str) -> Iterator[YamlScalar]:
    """Return the words under these keys, whether the value is one word or a list."""
    node: YamlNode | None = root
    for key in path:
        node = node.get(key) if isinstance(node, YamlMapping) else None
    return (item for item in _items_of(node) if isinstance(item, YamlScalar))


def _check_subscriptions(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    named = (_items_of(root.get(key)) for key in CALLED_BY if key != "schedule")
    if not (keys.schedule or any(named)):
        place = _place_of(root, "events") if root.get("events") else root.place
        yield Finding(place, "no event is named", "write `events: [agent:end]` or `intercepts: [tool:before]`")
    for key in ("events", "intercepts"):
        for item in _scalars_at(root, key):
            if finding := _check_subscription(key, item):
                yield finding


def _check_subscription(key: str, item: YamlScalar) -> Finding | None:
    text = item.text
    if not item.quoted and (as_bool(text) is not None or as_float(text) is not None):
        kind = "true or false" if as_bool(text) is not None else "a number"
        return Finding(item.place, f"`{to_printable(text)}` is {kind}, not the name of an event", "write noun:verb")
    if not _NAME.fullmatch(text) or not text.isprintable():
        return Finding(
            item.place, f"`{to_printable(text)}` is not the name of an event", "write noun:verb, or a glob: tool:*"
        )
    if len(text) > 200:
        return Finding(item.place, "this name is too long for an event", "write noun:verb, in at most 200 characters")
    if near := suggest_event(text):
        return Finding(item.place, f"unknown event `{to_printable(text)}`", f"did you mean `{near}`?", "warning")
    meant = _matching_points(text)
    if not meant:
        what = f"the gateway does not emit `{to_printable(text)}`"
        return Finding(item.place, what, "keep it if another hook emits it; `events list` names ours", "warning")
    if key == "intercepts" and not any(known.writable or known.outcomes for known in meant):
        what = f"nothing of `{to_printable(text)}` can be changed or stopped"
        return Finding(item.place, what, "observe it: move it to `events`", "warning")
    return None


def _matching_points(pattern: str) -> tuple[EventSpec, ...]:
    """Return the events of the catalogue that a subscription matches."""
    if known := get_event_spec(pattern):
        return (known,)
    return tuple(known for name, known in EVENT_SPECS.items() if fnmatchcase(name, pattern)) if "*" in pattern else ()


def _check_conditions(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    for field, wanted in keys.when.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not values or any(isinstance(value, dict | list) for value in values):
            remedy = f"write one value or a list of values: {{{to_printable(field)}: [one, two]}}"
            yield Finding(
                _place_of(root, "when", field), f"`when.{to_printable(field)}` is not a value to compare with", remedy
            )
    meant = [_matching_points(name) for name in (*keys.events, *keys.intercepts)]
    if not all(meant):
        return
    known = {field.name for points in meant for found in points for field in found.all_fields}
    for field in keys.when:
        if known and field not in known:
            what = f"no event of this hook has a field `{to_printable(field)}`, so none is ever passed on"
            near = get_close_matches(field[:64], sorted(known), 1)
            remedy = f"did you mean `{near[0]}`?" if near else f"its events have: {', '.join(sorted(known))}"
            yield Finding(_place_of(root, "when", field), what, remedy, "warning")


def _check_delivery(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if _delivery_of(root, keys) != "durable":
        return
    if not (_items_of(root.get("events")) or keys.schedule or keys.webhook):
        what = "`delivery: durable` is about what a hook observes, and it observes nothing"
        yield Finding(_place_of(root, "delivery"), what, "name events, or remove `delivery`; interceptors are awaited")
    for item in _scalars_at(root, "events"):
        if not can_be_durable(item.text):
            what = f"`{to_printable(item.text)}` cannot be delivered durably: `*` matches whole segments there"
            yield Finding(item.place, what, "write whole segments, such as command:*")


def _check_webhook(folder: str, root: YamlMapping) -> Iterator[Finding]:
    if _items_of(root.get("webhook")) and not WEBHOOK_NAME.fullmatch(folder):
        what = f"the folder's name `{label_of(folder)}` cannot be part of the address of a webhook"
        yield Finding(_place_of(root, "webhook"), what, "name it by letters, digits, - and _, 64 at the most")


def _check_wire(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    """Check how the hook is called: by a handler, a command or a URL, with the keys that belong to each."""
    if keys.command and keys.url:
        yield Finding(_place_of(root, "url"), "`command` and `url` are both set", "keep the one that is meant")
    for key, of in MEANT_BESIDE:
        if root.get(key) and not root.get(of):
            yield Finding(_place_of(root, key), f"`{key}` means nothing without `{of}`", f"add `{of}` or remove it")
    if root.get("max") and keys.mode != "parallel":
        what = "`max` means nothing in the mode `queued`"
        yield Finding(_place_of(root, "max"), what, "add `mode: parallel`, or remove it", "warning")
    yield from _check_command(root, keys)
    yield from _check_dialect(root, keys)
    yield from _check_url(root, keys)
    if keys.schedule:
        try:
            parse_timetable(keys.schedule)
        except ValueError as error:
            remedy = 'write minute, hour, day, month and weekday, "0 9 * * 1-5"; or @daily; or every 15m'
            yield Finding(_place_of(root, "schedule"), f"`schedule` {error}", remedy)


def _check_dialect(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    """Yield a warning about events that the hook subscribes to, but that its dialect has no word for."""
    if keys.dialect == "gateway":
        return
    for item in (*_scalars_at(root, "events"), *_scalars_at(root, "intercepts")):
        points = (known.name for known in _matching_points(item.text) if known.name not in sherma.POINTS)
        missing = list(dict.fromkeys(item.text if "*" in point else point for point in points))
        if missing:
            listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if missing[3:] else "")
            what = f"sherma has no word for {listed}: the hook is not told of that"
            yield Finding(item.place, what, "name the events that are meant, without these", "warning")


def _check_command(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if (node := root.get("command")) is None:
        return
    try:
        words = _command_of(root, keys)
    except ValueError as error:
        yield Finding(node.place, f"`command` cannot be split into words: {error}", 'write a list: ["./hook.sh", "-v"]')
        return
    if not words or not words[0].strip() or any("\0" in word for word in words):
        yield Finding(node.place, "`command` names no program", 'write `command: ["./hook.sh"]`')


def _check_url(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if not keys.url:
        return
    if not is_nats_url(keys.url):
        if wrong := _describe_url_error(keys.url):
            remedy = "write http://host:port/path or https://..., or nats://user@host:port/subject"
            yield Finding(_place_of(root, "url"), wrong, remedy)
        return
    try:
        user = parse_nats_url(keys.url).user
    except ValueError as error:
        yield Finding(
            _place_of(root, "url"), str(error), "write nats://user@host:port/subject, as nats://one:4222/hooks.x"
        )
        return
    if user and not keys.secret_env:
        what = f"`url` names the user {user}, and nothing its password"
        yield Finding(_place_of(root, "url"), what, "name the variable that holds it: `secret_env: HOOK_PASSWORD`")
    if keys.secret_env and not user:
        what = "`secret_env` is the password of a NATS user, and `url` names none"
        yield Finding(_place_of(root, "secret_env"), what, "write nats://USER@host:port/subject, or remove it")


def _describe_url_error(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"`url` cannot be understood: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        return "`url` is not a web address"
    if parts.username is not None or parts.password is not None:
        return "`url` holds a user name or a password"
    return ""


def _check_environment(root: YamlMapping, _keys: ManifestKeys) -> Iterator[Finding]:
    for path in (("env",), ("secret_env",), ("requires", "env")):
        for item in _scalars_at(root, *path):
            if not _ENV.fullmatch(item.text):
                what = f"`{'.'.join(path)}` holds what is not the name of an environment variable"
                yield Finding(item.place, what, "write the name alone, such as API_KEY; its value belongs into .env")


def check_reach(root: YamlMapping) -> Iterator[Finding]:
    """Yield findings about paths that are not absolute, and keys that mean nothing beside `url`."""
    for key in ("reads", "writes"):
        for item in _scalars_at(root, key):
            if not _WHOLE_PATH.match(item.text):
                what = f"`{key}` holds `{to_printable(item.text)}`, which is not a whole path"
                yield Finding(item.place, what, "write it from / on, or from ~/ on")
    for key in REACH_KEYS if root.get("url") else ():
        if written := root.key(key):
            what = f"`{key}` means nothing beside `url`: the hook runs elsewhere"
            yield Finding(written.place, what, "remove it")


def expand_path(path: str) -> str:
    """Return a path from a manifest as an absolute path."""
    return os.path.normpath(os.path.expanduser(path))  # noqa: PTH111 - it need not be there, and links stay links


def _check_requirements(root: YamlMapping, _keys: ManifestKeys) -> Iterator[Finding]:
    for item in _scalars_at(root, "requires", "python"):
        try:
            parse_requirement(item.text)
        except ValueError as error:
            yield Finding(
                item.place, f"`{to_printable(item.text)}`: {error}", 'write a name and versions: "httpx>=0.27,<1"'
            )


# The checks, each with the keys that it is about.
_CHECKS: tuple[tuple[frozenset[str], Callable[[YamlMapping, ManifestKeys], Iterator[Finding]]], ...] = (
    (frozenset({"delivery", "webhook"}), _check_delivery),
    (frozenset({"command", "url", "max", "dialect", "schedule", *(key for key, _ in MEANT_BESIDE)}), _check_wire),
    (frozenset({"env", "secret_env", "requires"}), _check_environment),
    (frozenset(REACH_KEYS), lambda root, _keys: check_reach(root)),
    (frozenset({"requires"}), _check_requirements),
)
