"""The program of the fork server, or of a single worker if forking is not safe.

It first limits `gateway` to the part that hooks may import: a hook that says `from gateway.hooks import on` gets it,
even if the daemon's own package is not installed, and a hook that imports the daemon's internals gets an error that
names the alternatives.
"""

import importlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
HERMES = HERE.parent / "hermes"
EVENTS = HERE.parent / "events"
PACKAGE = "gateway.worker"
MODULE_TABLE = "gateway.hermes.modules"
# The files of this program, and events. A name without a file is an empty package: the other files of `gateway.hermes`
# belong to the daemon.
OWN: Mapping[str, Path | None] = {
    "gateway": None,
    "gateway.events": EVENTS / "__init__.py",
    "gateway.events.event": EVENTS / "event.py",
    "gateway.files": None,
    "gateway.files.folders": HERE.parent / "files" / "folders.py",
    PACKAGE: HERE,
    "gateway.hermes": None,
    MODULE_TABLE: HERMES / "modules.py",
    "gateway.hermes.shim": HERMES / "shim",
    "gateway.hermes.plugin": HERMES / "plugin",
}
OWN_MODULES = tuple(f"{name}." for name in (PACKAGE, "gateway.hermes.shim", "gateway.hermes.plugin"))
# Modules of Hermes's gateway whose classes plugins patch.
PATCHED_MODULES = ("gateway.platforms.", "gateway.stream_consumer", "gateway.delivery", "gateway.slash_commands")


class HandlerModuleFinder(MetaPathFinder):
    """A finder for the modules that hooks may import, before anything that is installed."""

    def __init__(self, modules: Mapping[str, Path | None]) -> None:
        self._modules = dict(modules)
        self._path = frozenset(sys.path)
        self._offered: frozenset[str] = frozenset()

    def offer(self, names: Iterable[str], loader: Loader) -> None:
        """Offer these modules to hooks, made by this loader, and the modules that plugins patch."""
        self._offered = frozenset(names)
        self._loader = loader

    def add(self, modules: Mapping[str, Path | None]) -> None:
        self._modules |= modules

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's signature
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name in self._modules:
            return None if self._is_the_hooks_own(name) else _make_spec(name, self._modules[name])
        if name in self._offered or name.startswith(PATCHED_MODULES):
            return None if self._is_the_hooks_own(name) else ModuleSpec(name, self._loader, is_package=True)
        if name.startswith("gateway.") and not name.startswith(OWN_MODULES):
            raise ModuleNotFoundError(f"{name} is not there for hooks; {self._suggest(name)}")
        return None

    def _suggest(self, name: str) -> str:
        """Suggest the module or name that was probably meant."""
        offered = {"gateway.events", *(one for one in self._offered if one.startswith("gateway."))}
        home, _, wanted = name.rpartition(".")
        names = getattr(sys.modules.get(home), "__all__", ()) if home in offered else ()
        if near := get_close_matches(wanted, names, 1):
            return f"did you mean `from {home} import {near[0]}`?"
        return f"of the gateway they may import {', '.join(sorted(offered))}"

    def _is_the_hooks_own(self, name: str) -> bool:
        """Return True if the hook has its own module of this name (such as `tools`) on a path that it added."""
        top = name.partition(".")[0]
        added = (Path(entry) for entry in sys.path if entry not in self._path)
        return top != "gateway" and any((at / f"{top}.py").is_file() or (at / top).is_dir() for at in added)


def _make_spec(name: str, file: Path | None) -> ModuleSpec | None:
    if file is None or file.is_dir():
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [] if file is None else [str(file)]
        return spec
    places: list[str] | None = [] if file.name == "__init__.py" else None
    return spec_from_file_location(name, file, submodule_search_locations=places)


def main(arguments: Sequence[str]) -> None:
    """Run `fork_server` or `worker` with its start values in JSON."""
    role, start = arguments[0], json.loads(arguments[1])
    sys.path += [entry for entry in start.pop("path", ()) if entry not in sys.path]
    finder = HandlerModuleFinder(OWN)
    sys.meta_path.insert(0, finder)
    table = importlib.import_module(MODULE_TABLE)
    finder.offer(table.NAMES, table.LOADER)
    importlib.import_module(f"{PACKAGE}.{role}").main(start, finder.add)


if __name__ == "__main__":
    main(sys.argv[1:])
