"""The comparison of a hook's versions: new requests, in keys of HOOK.yaml that grants do not hold, and lost guards.

The granted requests are in `hooks.lock`, and are compared with that. All other keys are compared with the installed
manifest; a key that is not listed here counts as a request, so that a new one is never installed unseen.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.hooks.manifests.manifest import Manifest, read_manifest
from gateway.hooks.manifests.manifest_keys import ManifestKeys
from gateway.hooks.patterns import EventSelector, is_exact

GRANTED = frozenset(
    {"events", "intercepts", "uses", "env", "secret_env", "schedule", "webhook", "reads", "writes", "net", "url"}
)
"""The keys that `list_missing_grants` compares, with the denials; `requires` has further variables, and packages."""
HARMLESS = frozenset({"name", "description", "version", "mode", "max", "keep", "requires", "options", "protocol"})
"""The keys without a request: texts for people, and how a hook uses its rights. Only its own code reads `options`."""


UNKNOWN = "what it asked for so far is not known, since its folder is not what was installed"


def list_manifest_changes(before: Path, now: Path, name: str) -> Iterator[str]:
    """Describe the permissions that the new version requests and the old one did not, by both folders."""
    installed, newer = (read_manifest(folder, name).manifest for folder in (before, now))
    if installed and newer:
        yield from _compare(installed, newer)
    else:
        yield UNKNOWN


def _compare(before: Manifest, now: Manifest) -> Iterator[str]:
    for key in ManifestKeys.__struct_fields__:
        then, there = getattr(before, key), getattr(now, key)
        if key in GRANTED | HARMLESS or then == there:
            continue
        if key not in _ASKS_NO_MORE or not _ASKS_NO_MORE[key](then, there):
            yield f"{key}: {describe_filter(there) or 'any' if key == 'when' else _describe(there)}"


def list_missing_guards(before: Path, now: Manifest, decided: tuple[str, ...]) -> Iterator[str]:
    """Describe the events on which it no longer decides, or less surely. `before`: the folder of the installed version.

    `decided`: all events on which that one decided; for a folder written for Hermes the code says so, and no key.
    """
    installed = read_manifest(before, now.folder).manifest
    if installed and decided and installed.enabled:
        yield from _compare_guards(msgspec.structs.replace(installed, intercepts=decided), now)


def _compare_guards(before: Manifest, now: Manifest) -> Iterator[str]:
    left = EventSelector(now.intercepts)
    kept = {event for event in before.intercepts if event in now.intercepts or (is_exact(event) and event in left)}
    if lost := [event for event in before.intercepts if event not in kept]:
        yield f"decides no more on {', '.join(lost)}"
    if not now.enabled:
        yield "is switched off: enabled: false"
    if not (kept and now.enabled):
        return
    if not _is_within(now.when, before.when):
        yield f"decides only when {describe_filter(now.when)}"
    if before.on_error not in ("skip", now.on_error):
        yield f"denies nothing where it fails: on_error: {now.on_error}"
    if now.on_error != "deny":
        yield from _compare_chances(before, now)


def _compare_chances(before: Manifest, now: Manifest) -> Iterator[str]:
    """Describe why a hook that denies nothing while it cannot answer may decide less often."""
    if now.decide_timeout < before.decide_timeout:
        yield f"is passed over after {now.decide_timeout:g} s: timeout"
    then, there = before.requires, now.requires
    if missed := [name for name in there.bins if name not in then.bins]:
        yield f"does not run without {', '.join(missed)}: requires.bins"
    if there.platforms and not (then.platforms and {*then.platforms} <= {*there.platforms}):
        yield f"does not run without {' or '.join(there.platforms)}: requires.platforms"


def describe_filter(when: Mapping[str, Any]) -> str:
    """Describe which of the subscribed events reach the hook."""
    return "; ".join(f"{field} is {' or '.join(map(str, _list_values(wanted)))}" for field, wanted in when.items())


def _is_within(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return True if each condition still holds, for no more values."""
    return all(
        field in now and all(value in _list_values(wanted) for value in _list_values(now[field]))
        for field, wanted in then.items()
    )


def _list_values(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _describe(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else "by default" if value is None else str(value)


# By key: True if the change of the value gives it no more than it had.
_ASKS_NO_MORE: Mapping[str, Callable[[Any, Any], bool]] = {
    "when": _is_within,
    "timeout": lambda then, now: bool(then and now and now <= then),
    "on_error": lambda _, now: now != "raise",
    "delivery": lambda _, now: now == "memory",
    "isolation": lambda _, now: now == "process",
    "command": lambda _, now: not now,
    "enabled": lambda _, now: not now,
}
