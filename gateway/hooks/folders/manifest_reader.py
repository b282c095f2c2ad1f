"""From `HOOK.yaml` to a `ParsedManifest`: the types are checked by binding, and here what the types cannot say.

Every check gets the tree, so that its finding names the line and column of the very word that is wrong.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from gateway.cron import parse_timetable
from gateway.events.catalogue import EVENT_SPECS, get_event_spec, suggest_event
from gateway.events.fields import EventSpec
from gateway.hooks.folders.dead_letters import can_be_durable
from gateway.hooks.folders.manifest import (
    MANIFEST_FILE,
    MAX_MANIFEST_BYTES,
    Guard,
    Manifest,
    ManifestKeys,
    ParsedManifest,
    find_misnamed_manifest,
    label_of,
)
from gateway.hooks.folders.requirements import parse_requirement
from gateway.yaml_source import (
    Finding,
    SourceLocation,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    bind,
    read_yaml,
    to_plain,
)
from gateway.yaml_source.tree import as_bool, as_float, is_null, to_printable

T = TypeVar("T")

# What hooks written for Hermes carry; Hermes reads the first three and passes over the rest, and so do we.
HERMES_KEYS = frozenset({"name", "description", "events", "version", "enabled"})
IGNORED_KEYS = frozenset({"author", "authors", "license", "homepage", "repository", "tags", "category", "metadata"})
FOREIGN_KEYS = frozenset({"platforms", "capabilities", "requires_env", "priority"})

_NAME = re.compile(r"[^\s:]+(?::[^\s:]+)*\Z")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}\Z")


def read_manifest(folder: Path) -> ParsedManifest:
    """What the folder's manifest says; nothing is raised, and nothing of the folder is run."""
    if not (folder / MANIFEST_FILE).exists():
        return _report_missing_manifest(folder)
    tree = read_yaml(folder / MANIFEST_FILE, MAX_MANIFEST_BYTES, name=f"{label_of(folder.name)}/{MANIFEST_FILE}")
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(tree.root.place)
    is_hermes = frozenset(root) <= HERMES_KEYS | IGNORED_KEYS | FOREIGN_KEYS
    findings = list(tree.findings)
    findings += _check_foreign_keys(root, is_hermes)
    unread = IGNORED_KEYS | {"priority"} | (FOREIGN_KEYS if is_hermes else frozenset())
    kept = YamlMapping(root.place, tuple(pair for pair in root.pairs if pair[0].text not in unread))
    keys, bound = bind(kept if isinstance(tree.root, YamlMapping) else tree.root, ManifestKeys, unknown="warning")
    findings += bound
    if root.pairs or not tree.findings:
        findings += _check_keys(root, keys or _bind_valid_keys(kept))
    findings.sort(key=lambda finding: (finding.place.line, finding.place.column))
    failed = keys is None or any(finding.severity == "error" for finding in findings)
    manifest = None if failed or keys is None else _build_manifest(folder.name, keys, is_hermes)
    return ParsedManifest(manifest, tuple(findings), None if manifest else _read_guard(root))


def _report_missing_manifest(folder: Path) -> ParsedManifest:
    place = SourceLocation(f"{label_of(folder.name)}/{MANIFEST_FILE}")
    near = find_misnamed_manifest(folder)
    remedy = f"rename {near} to {MANIFEST_FILE}" if near else "write one; its least is: events: [agent:end]"
    return ParsedManifest(None, (Finding(place, "is missing", remedy),))


def as_tuple(value: str | Iterable[T]) -> tuple[str | T, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _bind_valid_keys(root: YamlMapping) -> ManifestKeys:
    """What can be bound when not all can, so that the rest is checked in the same reading."""
    pairs = (pair for pair in root.pairs if bind(YamlMapping(root.place, (pair,)), ManifestKeys, unknown="warning")[0])
    return bind(YamlMapping(root.place, tuple(pairs)), ManifestKeys, unknown="warning")[0] or ManifestKeys()


def _build_manifest(folder: str, keys: ManifestKeys, is_hermes: bool) -> Manifest:
    schedule = keys.schedule.strip()
    events = dict.fromkeys((*as_tuple(keys.events), *([f"schedule:{folder}"] if schedule else [])))
    return Manifest(
        folder=folder,
        name=keys.name or folder,
        description=keys.description,
        version=keys.version,
        events=tuple(events),
        intercepts=tuple(dict.fromkeys(as_tuple(keys.intercepts))),
        when=keys.when,
        order=keys.order,
        mode=keys.mode,
        max=keys.max if keys.mode == "parallel" else 1,
        timeout=keys.timeout,
        on_error=keys.on_error,
        delivery=keys.delivery,
        isolated=keys.isolation == "process",
        needs_bins=as_tuple(keys.requires.bins),
        needs_env=as_tuple(keys.requires.env),
        needs_python=as_tuple(keys.requires.python),
        needs_platforms=as_tuple(keys.requires.platforms),
        env=tuple(dict.fromkeys((*as_tuple(keys.env), *as_tuple(keys.requires.env)))),
        uses=as_tuple(keys.uses),  # type: ignore[arg-type]  # the binding has checked the words
        schedule=schedule,
        options=keys.options,
        command=_command_of(keys),
        oneshot=keys.protocol == "oneshot",
        url=keys.url,
        dialect=keys.dialect,
        secret_env=keys.secret_env,
        enabled=keys.enabled,
        hermes=is_hermes,
    )


def _command_of(keys: ManifestKeys) -> tuple[str, ...]:
    return tuple(shlex.split(keys.command)) if isinstance(keys.command, str) else keys.command


def _read_guard(root: YamlMapping) -> Guard | None:
    """Read from the tree itself, so that a guard whose manifest is broken elsewhere still denies."""
    on_error, intercepts, when = (root.get(key) for key in ("on_error", "intercepts", "when"))
    if not isinstance(on_error, YamlScalar) or on_error.text != "deny" or intercepts is None:
        return None
    names = tuple(
        item.text for item in _items_of(intercepts) if isinstance(item, YamlScalar) and _NAME.match(item.text)
    )
    fields = to_plain(when) if isinstance(when, YamlMapping) else {}
    order = as_float(node.text) if isinstance(node := root.get("order"), YamlScalar) else None
    return Guard(names, fields, order or 0) if names else None


def _items_of(node: YamlNode | None) -> tuple[YamlNode, ...]:
    return node.items if isinstance(node, YamlSequence) else () if node is None or is_null(node) else (node,)


def _check_foreign_keys(root: YamlMapping, is_hermes: bool) -> Iterator[Finding]:
    """Keys of other systems that mean something else there, or nothing here."""
    if key := root.key("priority"):
        what = "`priority` means low first in some systems and high first in others"
        remedy = "write `order: <number>`; low goes first, the default is 0"
        yield Finding(key.place, what, remedy, "warning" if is_hermes else "error")
    if not is_hermes:
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
    yield from _check_conditions(root, keys)
    yield from _check_delivery(root, keys)
    yield from _check_wire(root, keys)
    yield from _check_environment(root)
    yield from _check_requirements(root)


def _place_of(root: YamlMapping, *path: str) -> SourceLocation:
    node: YamlNode = root
    for key in path:
        below = node.get(key) if isinstance(node, YamlMapping) else None
        if below is None:
            break
        node = below
    return node.place


def _check_subscriptions(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if not (_items_of(root.get("events")) or _items_of(root.get("intercepts")) or keys.schedule):
        place = _place_of(root, "events") if root.get("events") else root.place
        yield Finding(place, "no event is named", "write `events: [agent:end]` or `intercepts: [tool:before]`")
    for key in ("events", "intercepts"):
        for item in _items_of(root.get(key)):
            if isinstance(item, YamlScalar) and (finding := _check_subscription(key, item)):
                yield finding


def _check_subscription(key: str, item: YamlScalar) -> Finding | None:
    text = item.text
    if not item.quoted and (as_bool(text) is not None or as_float(text) is not None):
        kind = "true or false" if as_bool(text) is not None else "a number"
        return Finding(item.place, f"`{to_printable(text)}` is {kind}, not the name of an event", "write noun:verb")
    if not _NAME.match(text) or not text.isprintable():
        return Finding(
            item.place, f"`{to_printable(text)}` is not the name of an event", "write noun:verb, or a glob: tool:*"
        )
    if len(text) > 200:
        return Finding(item.place, "this name is too long for an event", "write noun:verb, in at most 200 characters")
    if near := suggest_event(text):
        return Finding(item.place, f"nobody emits `{to_printable(text)}`", f"did you mean `{near}`?", "warning")
    meant = _matching_points(text)
    if not meant:
        what = f"nobody of ours emits `{to_printable(text)}`"
        return Finding(item.place, what, "keep it if another hook emits it; `events list` names ours", "warning")
    if key == "intercepts" and not any(known.writable or known.outcomes for known in meant):
        what = f"nothing of `{to_printable(text)}` can be changed or stopped"
        return Finding(item.place, what, "observe it: move it to `events`", "warning")
    return None


def _matching_points(pattern: str) -> tuple[EventSpec, ...]:
    """The events of the catalogue that a subscription takes in."""
    if known := get_event_spec(pattern):
        return (known,)
    return tuple(known for name, known in EVENT_SPECS.items() if fnmatchcase(name, pattern)) if "*" in pattern else ()


def _check_conditions(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    for field, wanted in keys.when.items():
        values = wanted if isinstance(wanted, list) else [wanted]
        if not values or any(isinstance(value, dict | list) for value in values):
            remedy = f"write one value or a list of values: {{{to_printable(field)}: [one, two]}}"
            yield Finding(
                _place_of(root, "when", field), f"`when.{to_printable(field)}` is no value to compare with", remedy
            )
    meant = [_matching_points(name) for name in (*as_tuple(keys.events), *as_tuple(keys.intercepts))]
    if not all(meant):
        return
    known = {field.name for points in meant for found in points for field in found.all_fields}
    for field in keys.when:
        if known and field not in known:
            what = f"no event of this hook has a field `{to_printable(field)}`, so it would never be told"
            remedy = f"its events have: {', '.join(sorted(known))}"
            yield Finding(_place_of(root, "when", field), what, remedy, "warning")


def _check_delivery(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if keys.delivery != "durable":
        return
    if not _items_of(root.get("events")) and not keys.schedule:
        what = "`delivery: durable` is about what a hook observes, and it observes nothing"
        yield Finding(_place_of(root, "delivery"), what, "name events, or remove `delivery`; interceptors are awaited")
    for item in _items_of(root.get("events")):
        if isinstance(item, YamlScalar) and not can_be_durable(item.text):
            what = f"`{to_printable(item.text)}` cannot be delivered durably: `*` stands for whole segments there"
            yield Finding(item.place, what, "write whole segments, such as command:*")


def _check_wire(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    """How the hook is called: a handler, a command or a URL, and what belongs to each."""
    if keys.command and keys.url:
        yield Finding(_place_of(root, "url"), "`command` and `url` stand side by side", "keep the one that is meant")
    for key, of in (("protocol", "command"), ("dialect", "url"), ("secret_env", "url")):
        if root.get(key) and not root.get(of):
            yield Finding(_place_of(root, key), f"`{key}` means nothing without `{of}`", f"add `{of}` or remove it")
    if root.get("max") and keys.mode != "parallel":
        what = "`max` means nothing in the mode `queued`"
        yield Finding(_place_of(root, "max"), what, "add `mode: parallel`, or remove it", "warning")
    yield from _check_command(root, keys)
    if keys.url and (wrong := _describe_url_error(keys.url)):
        yield Finding(_place_of(root, "url"), wrong, "write http://host:port/path or https://...")
    if keys.schedule:
        try:
            parse_timetable(keys.schedule)
        except ValueError as error:
            remedy = 'write minute, hour, day, month and weekday, "0 9 * * 1-5"; or @daily; or every 15m'
            yield Finding(_place_of(root, "schedule"), f"`schedule` {error}", remedy)


def _check_command(root: YamlMapping, keys: ManifestKeys) -> Iterator[Finding]:
    if (node := root.get("command")) is None:
        return
    try:
        words = _command_of(keys)
    except ValueError as error:
        yield Finding(node.place, f"`command` cannot be split into words: {error}", 'write a list: ["./hook.sh", "-v"]')
        return
    if not words or not words[0].strip() or any("\0" in word for word in words):
        yield Finding(node.place, "`command` names no program", 'write `command: ["./hook.sh"]`')


def _describe_url_error(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return f"`url` cannot be understood: {error}"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not url.isprintable() or " " in url:
        return "`url` is no web address"
    if parts.username is not None or parts.password is not None:
        return "`url` holds a user name or a password"
    return ""


def _check_environment(root: YamlMapping) -> Iterator[Finding]:
    requires = root.get("requires")
    wanted = [("env", root.get("env")), ("secret_env", root.get("secret_env"))]
    if isinstance(requires, YamlMapping):
        wanted.append(("requires.env", requires.get("env")))
    for key, node in wanted:
        for item in _items_of(node):
            if isinstance(item, YamlScalar) and not _ENV.match(item.text):
                what = f"`{key}` holds what is no name of an environment variable"
                yield Finding(item.place, what, "write the name alone, such as API_KEY; its value belongs into .env")


def _check_requirements(root: YamlMapping) -> Iterator[Finding]:
    requires = root.get("requires")
    for item in _items_of(requires.get("python") if isinstance(requires, YamlMapping) else None):
        if not isinstance(item, YamlScalar):
            continue
        try:
            parse_requirement(item.text)
        except ValueError as error:
            yield Finding(
                item.place, f"`{to_printable(item.text)}`: {error}", 'write a name and versions: "httpx>=0.27,<1"'
            )
