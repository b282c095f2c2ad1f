"""The guards of a hook in our own dialect, if its manifest does not say `on_error`.

A hook before a tool guards the tool, so a failure of the hook denies the call. A hook before a message or a turn is a
guard only if the hook can deny: one of its files has the word "deny", or the hook is a program or a URL. Hooks of
Hermes and of sherma fail as the documents of Hermes and sherma promise.
"""

import re
from collections.abc import Iterator, Mapping

from gateway.hooks.manifests.manifest import BEFORE_TOOLS, MANIFEST_FILE, Manifest, label_of
from gateway.hooks.patterns import EventSelector
from gateway.yaml_source.tree import Finding, SourceLocation

BEFORE_WORK = ("message:received", "agent:start")
DECIDES = re.compile(rb"\b(deny|end|ask|exit)\b", re.IGNORECASE)
NEVER_DENIES = "this guard can never deny: none of its files has the word deny, end or ask"
DENIES = re.compile(rb"deny", re.IGNORECASE)


def check_guard(manifest: Manifest, files: Mapping[str, bytes]) -> Iterator[Finding]:
    """Warn of a guard of tools whose code has no word that decides."""
    code = _select_code(files)
    if manifest.wire == "url" or not code or any(map(DECIDES.search, code.values())):
        return
    selector = EventSelector(manifest.intercepts)
    if any(name in selector and manifest.denies(name) for name in BEFORE_TOOLS):
        place = SourceLocation(f"{label_of(manifest.folder)}/{MANIFEST_FILE}")
        remedy = "raise Deny or End, or ask; if it only changes things, write `on_error: skip`"
        yield Finding(place, NEVER_DENIES, remedy, "warning")


def describe_new_guards(hooks: Mapping[str, Manifest]) -> str:
    """Name the hooks of ours that deny now, and did not in an earlier version; "" if no hook does."""
    names = ", ".join(
        name for name, one in hooks.items() if one.reading.guards and one.on_error == "skip" and not one.says_on_error
    )
    what = "a hook that fails before a tool, or where it can deny a message or a turn, now denies it"
    return f"{what}: {names}; to keep one as it was, write `on_error: skip` into its HOOK.yaml" if names else ""


def add_own_guards(manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
    """Add the events to deny when the hook fails; `files` is the code of the hook, as far as it was read."""
    if manifest.says_on_error or manifest.dialect != "gateway":
        return manifest
    can_deny = manifest.wire != "worker" or any(map(DENIES.search, _select_code(files).values()))
    intercepted = EventSelector(manifest.intercepts)
    names = (*BEFORE_TOOLS, *(BEFORE_WORK if can_deny else ()))
    return manifest.add_reading(guards=tuple(name for name in names if name in intercepted))


def _select_code(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return {name: data for name, data in files.items() if name != MANIFEST_FILE}
