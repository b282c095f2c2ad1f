"""The hooks that a plugin registers, as its text shows them before it runs, and the places of hidden registrations.

A call with a literal name shows that name. A plugin that registers in another way may register anything, a guard too:
until it has loaded, it counts as a guard.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from gateway.hooks.manifests.manifest import label_of
from gateway.yaml_source.tree import SourceLocation

_CALL = re.compile(rb"""\bregister_hook\(\s*(?:hook_name\s*=\s*)?(?:["'](\w+)["']\s*[,)])?""")
# Ways to register that a search for names misses: the method under another name, a name that is computed,
# text that is run, and the contents of an object.
_HIDDEN = (
    rb"""(?<!["'])\bregister_hook\b(?!\(|["'])|\bgetattr\(\s*\w+\s*,\s*(?!["']\w+["']\s*[,)])"""
    rb"""|\bgetattr\([^()]*["']register_hook["']|\b(?:exec|eval)\(|\.__dict__\b"""
)
_ENTRY = re.compile(rb"\bdef register\(\s*(\w+)")
_DEFINED = re.compile(rb"\b(?:def|class)\s+(\w+)")
_HARMLESS = frozenset(  # functions that register nothing by their arguments
    b"bool callable dir getattr hasattr id isinstance partial print repr str type"
    b" debug info warning error exception log".split()
)
_SPEAKS = re.compile(rb"\bregister")


class RegistrationSource(NamedTuple):
    """The `names` of the hooks that a plugin visibly registers, and the `place` of a hidden registration, or None.

    `is_name`: the call itself is visible, with its callback; only the name is not.
    """

    names: frozenset[str] = frozenset()
    place: SourceLocation | None = None
    is_name: bool = False


def read_registrations(folder: str, entry: str, files: Mapping[str, bytes]) -> RegistrationSource:
    """Read the registrations in `files`, the code that the plugin imports; of several hidden ones, return the worst."""
    text, sources = b"\n".join(files.values()), sorted({entry: b"", **files}.items())
    if not _SPEAKS.search(text):
        return RegistrationSource()
    calls = [(file, found) for file, source in sources for found in _CALL.finditer(source)]
    names = frozenset(found[1].decode() for _, found in calls if found[1])
    start, known = _ENTRY.search(text), b"|".join(_HARMLESS.union(_DEFINED.findall(text)))
    handed = rb"\b(?!(?:%s)\()\w+\([^()]*\b%s\b" % (known, start[1]) if start else rb"\A"  # its `register` is elsewhere
    hides = re.compile(rb"%s|%s" % (handed, _HIDDEN))
    hidden = [(file, found) for file, source in sources if (found := hides.search(source))]
    places = [_place_of(folder, *one) for one in hidden or [one for one in calls if not one[1][1]]]
    return RegistrationSource(names, next(iter(places), None), is_name=bool(places and not hidden))


def _place_of(folder: str, file: str, found: re.Match[bytes]) -> SourceLocation:
    line = found.string.count(b"\n", 0, found.start()) + 1
    column = found.start() - found.string.rfind(b"\n", 0, found.start())
    return SourceLocation(f"{label_of(folder)}/{file}", line, column)
