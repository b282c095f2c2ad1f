"""Dialects: how the folder of a hook is read, how the hook is called, and what its answers mean.

`Dialect` has the rules of most programs; the dialect of a program is a subclass with the differences.
`OURS` is this gateway's own. `gateway/daemon/dialects.py` is the table: it says which dialects each place of hooks has.
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
    """A dialect's answer to the question if a folder belongs to it, with the reason; "" if it does not know."""

    is_owner: bool
    reason: str = ""


class Turn(msgspec.Struct, frozen=True):
    """How the hooks of a dialect decide about these events: all at once, within so many seconds.

    `can_change`: they may change the event, so the gateway asks the hooks behind such a one again.
    """

    events: tuple[str, ...] = ()
    seconds: float = math.inf
    can_change: bool = False


class FolderReader:
    """How the folders of a program are found and read: the first half of its dialect."""

    markers: Collection[str] = frozenset({MANIFEST_FILE, HANDLER_FILE})  # a folder with one of these is meant as a hook
    loads_any_name = False  # the program loads even folders whose names are ignored here
    mentions: re.Pattern[bytes] | None = None  # the words at which it looks at a folder of ours, too

    def is_place(self, folder: Path) -> bool:  # noqa: ARG002 - for subclasses
        """Tell if a folder is no hook, but a further place of hooks."""
        return False

    def is_hook(self, folder: Path, names: Collection[str]) -> bool:  # noqa: ARG002 - for subclasses
        """Tell if a folder with these marked files is a hook."""
        return True

    def read_manifest(self, folder: Path, name: str) -> ParsedManifest:
        """Read what the folder says about itself; `name` is the hook's name."""
        return read_manifest(folder, name)

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:  # noqa: ARG002 - its files say it
        """Decide if this dialect owns a folder whose marked files other dialects have, too."""
        return FolderClaim(is_owner=True)

    def find(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest what the hook's files show."""
        return manifest

    def find_guard(self, name: str, files: Mapping[str, bytes]) -> Guard | None:  # noqa: ARG002 - for subclasses
        """Return the guard of a hook with a manifest that cannot be read."""
        return None

    def check(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield findings about the hook's files."""
        return ()

    def speaks_of(self, manifest: Manifest, files: Mapping[str, bytes]) -> bool:
        """Tell if the dialect comments on a folder of ours: one without a key of ours, or with one of its own words."""
        return not manifest.own_key or bool(self.mentions and any(map(self.mentions.search, files.values())))

    def find_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest what this dialect sees in a folder of another one."""
        return manifest

    def check_beside(self, manifest: Manifest, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield findings about a folder of another dialect."""
        return ()

    def review(self, manifest: Manifest, folder: Path, files: Mapping[str, bytes]) -> Iterable[Finding]:  # noqa: ARG002 - for subclasses
        """Yield the findings for a person who asks for all; they take longer than a look at every folder may."""
        return ()


class Dialect(FolderReader):
    """The rules for the hooks of one program.

    A method gets no more than a folder, its manifest, and its files by name.
    """

    name = "gateway"
    label = "this gateway"  # for people
    starts_early = False  # only a running hook knows its subscriptions
    needs_trust = False  # a person has to agree to each content
    off_at_first = ""  # begins `why_disabled` until a person has switched the hook on
    is_told_first = False  # a hook that waits for this decides after its hooks have got earlier events
    waits_for_told = False
    refuses: tuple[str, ...] = ()  # how the events begin that its hooks may refuse, though their failure does not
    turn = Turn()
    environ: Mapping[str, str] = {}  # the variables of every hook
    shapes = ""  # the module of the worker that loads a hook and shows it events

    @property
    def is_own(self) -> bool:
        """Tell if hooks of this dialect get events in our own words."""
        return self.name == Dialect.name

    @property
    def switch_file(self) -> Path | None:
        """Return the program's own file that switches hooks on and off."""
        return None

    @property
    def trouble(self) -> str:
        """Say why a place may list too few hooks of this dialect; "" if it lists all."""
        return ""

    def why_disabled(self, name: str, called: str, place: Path, manifest: Manifest | None) -> str:  # noqa: ARG002 - for subclasses
        """Say why the program has switched the hook off; "" if it is on."""
        return ""

    def options_of(self, name: str, manifest: Manifest | None) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return the options that the program's own configuration has for the hook."""
        return {}

    def facts_of(self, folder: Path, manifest: Manifest, place: Path) -> Mapping[str, Any]:  # noqa: ARG002 - for subclasses
        """Return the facts that the worker's module needs to load the hook.

        `place` holds the folder, or the folder of which it is a copy.
        """
        return {}

    def widen(self, manifest: Manifest, known: Manifest | None = None, last: Manifest | None = None) -> Manifest:  # noqa: ARG002 - for subclasses
        """Add to the manifest all that the hook may subscribe to, until it runs and says it itself.

        `known`: what it subscribed to when it last ran, if nothing has changed since; `last`: at its last good load.
        """
        return manifest

    def describe_doubt(self, manifest: Manifest) -> str:  # noqa: ARG002 - for subclasses
        """Say why only a running hook knows what it guards; "" if its files show it."""
        return ""

    def complete(self, manifest: Manifest, loaded: LoadedHandlers) -> Manifest:  # noqa: ARG002 - for subclasses
        """Replace what the files show by what only a running hook can say."""
        return manifest

    def why_idle(self, manifest: Manifest, patches: Sequence[str] = (), remarks: Iterable[str] = ()) -> str:  # noqa: ARG002 - for subclasses
        """Say why the hook has no effect here; "" if it acts. `patches` and `remarks` are those of the running hook."""
        return ""

    def explain_failure(self, said: str, called: str, folder: Path, packages: Sequence[str]) -> str:  # noqa: ARG002 - for subclasses
        """Return the remedy for a failure, often ""; `packages` is where the hook's interpreter looks."""
        return ""

    def check_contents(self, contents: PluginContents) -> Iterator[str]:  # noqa: ARG002 - for subclasses
        """Yield the offers of a hook that have no effect."""
        return iter(())

    async def guards(self, manifest: Manifest, event: Event, match: MatchPattern | None) -> bool:  # noqa: ARG002 - for subclasses
        """Tell if the hook may guard this event, while it cannot answer."""
        return True

    def wants(self, manifest: Manifest, event: Event) -> bool:
        """Tell if the hook gets this event, to which it subscribes. A URL gets only events that can be sent."""
        return not manifest.url or can_send(manifest.dialect, event.name, event)

    def read_answer(self, answer: Any) -> Any:
        """Translate a hook's decision into our words."""
        return answer

    def make_format(self, manifest: Manifest) -> ProgramFormat | None:  # noqa: ARG002 - for subclasses
        """Return the format of a program that runs for one event; None: our own."""
        return None

    def show_fields(self, event: str, fields: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG002 - for subclasses
        """Return the fields in the shape for a handler in the gateway's own process; None if they stay as they are."""
        return None


class OwnDialect(Dialect):
    """The dialect of this gateway's own hooks."""

    def claim(self, manifest: Manifest, files: Mapping[str, bytes]) -> FolderClaim:  # noqa: ARG002 - its keys say it
        """Own a folder that says so, or that has one of our keys; a folder that answers commands may be another's."""
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
