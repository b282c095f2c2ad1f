"""Dialects: how the folder of a hook is read, how the hook is called, and what its answers mean.

`Dialect` has the rules of most programs; the dialect of a program is a subclass with the differences. `OURS` is this
gateway's own dialect. `gateway/daemon/dialects.py` is the table of the dialects that each place of hooks has.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gateway.events import Event
from gateway.hooks.manifests.manifest import HANDLER_FILE, MANIFEST_FILE, Guard, Manifest, ParsedManifest, read_manifest
from gateway.hooks.manifests.own_guards import add_own_guards, check_guard
from gateway.hooks.remote import can_send
from gateway.hooks.services import MatchPattern
from gateway.hooks.wires.oneshot_answer import ProgramFormat
from gateway.worker.protocol import LoadedHandlers, PluginContents
from gateway.yaml_source.tree import Finding

ASKED_FOR = "`written_for` says so"


class FolderClaim(NamedTuple):
    """A dialect's answer whether a folder is in its format, with the reason; the reason may be ""."""

    is_owner: bool
    reason: str = ""


class Turn(msgspec.Struct, frozen=True):
    """The rules by which the hooks of a dialect decide together about these events, within so many seconds.

    `can_change`: the hooks may change the event. After a change, the gateway asks the later hooks again.
    """

    events: tuple[str, ...] = ()
    seconds: float = math.inf
    can_change: bool = False


class FolderReader:
    """The first half of a dialect: how to find and read the hook folders of a program."""

    markers: Collection[str] = frozenset({MANIFEST_FILE, HANDLER_FILE})  # a folder with one of these is meant as a hook
    loads_any_name = False  # the program loads even folders whose names are ignored here
    mentions: re.Pattern[bytes] | None = None  # words in a folder of ours on which this dialect comments

    def is_place(self, folder: Path) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether a folder is not a hook itself, but contains hooks."""
        return False

    def is_hook(self, folder: Path, names: Collection[str]) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether a folder with these marker files is a hook."""
        return True

    def read_manifest(self, folder: Path, name: str) -> ParsedManifest:
        """Read the manifest of the folder; `name` is the hook's name."""
        return read_manifest(folder, name)

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:  # noqa: ARG002 - its files say it
        """Decide whether this dialect owns a folder with marker files that other dialects have, too."""
        return FolderClaim(is_owner=True)

    def find(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest the facts that the hook's files show."""
        return manifest

    def find_guard(self, name: str, files: Mapping[str, bytes]) -> Guard | None:  # noqa: ARG002 - for subclasses
        """Return the guard of a hook with a manifest that cannot be read."""
        return None

    def check(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield findings about the hook's files."""
        return ()

    def speaks_of(self, manifest: Manifest, files: Mapping[str, bytes]) -> bool:
        """Tell whether the dialect comments on a folder of ours, without our keys or with this dialect's words."""
        return not manifest.own_key or bool(self.mentions and any(map(self.mentions.search, files.values())))

    def find_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest the facts that this dialect finds in a folder of another dialect."""
        return manifest

    def check_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield findings about a folder of another dialect."""
        return ()

    def review(self, manifest: Manifest, folder: Path, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield findings that take too long for the usual check of a folder, for a person who asks for all."""
        return ()


class Dialect(FolderReader):
    """The rules for the hooks of one program.

    A method gets no more than a folder, its manifest, and its files by name.
    """

    name = "gateway"
    label = "this gateway"  # for people
    starts_early = False  # only a running hook knows its subscriptions
    needs_trust = False  # a person has to approve each change of the contents
    off_at_first = ""  # begins `why_disabled` until a person has switched the hook on
    is_told_first = False  # its hooks get earlier events before a hook with `waits_for_told` decides
    waits_for_told = False
    refuses: tuple[str, ...] = ()  # prefixes of events that its hooks may refuse, but do not refuse by failing
    turn = Turn()
    environ: Mapping[str, str] = {}  # the variables of every hook
    shapes = ""  # the worker's module that loads a hook, and converts its events

    @property
    def is_own(self) -> bool:
        """Tell whether hooks of this dialect get events in this gateway's own format."""
        return self.name == Dialect.name

    @property
    def switch_file(self) -> Path | None:
        """Return the program's own file that switches hooks on and off."""
        return None

    @property
    def trouble(self) -> str:
        """Say why a place may list too few hooks of this dialect; "" if the place lists all."""
        return ""

    def why_disabled(self, name: str, called: str, place: Path, manifest: Manifest | None) -> str:  # noqa: ARG002 - for subclasses
        """Say why the program has switched the hook off; "" if the hook is on."""
        return ""

    def options_of(self, name: str, manifest: Manifest | None) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return the options that the program's own configuration has for the hook."""
        return {}

    def facts_of(self, folder: Path, manifest: Manifest, place: Path) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return the facts that the worker's module needs to load the hook.

        `place` holds `folder`, or the original if `folder` is a copy.
        """
        return {}

    def widen(self, manifest: Manifest, known: Manifest | None = None, last: Manifest | None = None) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest all events that the hook may subscribe to, until the running hook names its events.

        `known` is the manifest of the hook's last run, if the hook has not changed since; `last` is the manifest of its
        last good load.
        """
        return manifest

    def describe_doubt(self, manifest: Manifest) -> str:  # noqa: ARG002 - for subclasses
        """Say why only a running hook knows which events it guards; "" if its files show the events."""
        return ""

    def complete(self, manifest: Manifest, loaded: LoadedHandlers) -> Manifest:  # noqa: ARG002 - for subclasses
        """Replace the facts from the files by facts that only the running hook knows."""
        return manifest

    def why_idle(self, manifest: Manifest, patches: Sequence[str] = (), remarks: Iterable[str] = ()) -> str:  # noqa: ARG002 - for subclasses
        """Say why the hook has no effect here, or return "". `patches` and `remarks` come from the running hook."""
        return ""

    def explain_failure(self, said: str, called: str, folder: Path, packages: Sequence[str]) -> str:  # noqa: ARG002 - for subclasses
        """Return the remedy for a failure, or ""; `packages` are the folders of the hook's interpreter."""
        return ""

    def check_contents(self, contents: PluginContents) -> Iterator[str]:  # noqa: ARG002 - for subclasses
        """Yield the offers of a hook that have no effect."""
        return iter(())

    async def guards(self, manifest: Manifest, event: Event, match: MatchPattern | None) -> bool:  # noqa: ARG002 - for subclasses
        """Tell whether a hook that cannot answer may guard this event."""
        return True

    def wants(self, manifest: Manifest, event: Event) -> bool:
        """Tell whether the hook gets this event, to which it subscribes. A URL gets only events that can be sent."""
        return not manifest.url or can_send(manifest.dialect, event.name, event)

    def read_answer(self, answer: Any) -> Any:
        """Translate a hook's decision into our words."""
        return answer

    def make_format(self, manifest: Manifest) -> ProgramFormat | None:  # noqa: ARG002 - for subclasses
        """Return the format of a program that runs for one event; None for the gateway's own format."""
        return None

    def show_fields(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002 - for subclasses
        """Return the fields in the shape for a handler in the gateway's own process; None if they stay unchanged."""
        return None


class OwnDialect(Dialect):
    """The dialect of this gateway's own hooks."""

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:  # noqa: ARG002 - its keys say it
        """Claim a folder that names this gateway, or has our keys and does not merely observe commands."""
        if manifest.written_for is not None:
            return FolderClaim(manifest.written_for == self.name, ASKED_FOR)
        hears_commands = any(name.startswith("command:") for name in manifest.events)
        is_own = bool(manifest.own_key) and (bool(manifest.intercepts) or not hears_commands)
        return FolderClaim(is_own, f"`{manifest.own_key}` in its HOOK.yaml is a key that Hermes does not have" * is_own)

    def find(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:
        return add_own_guards(manifest, files)

    def check(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:
        return check_guard(manifest, files)


OURS = OwnDialect()
