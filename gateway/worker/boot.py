"""The program that becomes the fork server, or a worker where forking is not safe.

Before anything else is imported, `gateway` becomes what hooks may see of it: a handler that says
`from gateway.hooks import on` gets that, whether the daemon's own package is installed or not, and a handler that
reaches for the daemon's insides is told what it may import instead.
"""

import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
PACKAGE = "gateway.worker"
MODULES = HERE.parent / "hermes" / "modules"
EVENTS = HERE.parent / "events"
# What hooks may import. A name without a file is a package that holds nothing itself.
OFFERED: Mapping[str, Path | None] = {
    "gateway": None,
    "gateway.events": EVENTS / "__init__.py",
    "gateway.hooks": MODULES / "hooks.py",
    "gateway.session_context": MODULES / "session_context.py",
    "gateway.config": MODULES / "config.py",
    "gateway.platforms": None,
    "gateway.platforms.base": MODULES / "platforms_base.py",
    "gateway.run": MODULES / "run.py",
    "gateway.session": MODULES / "session.py",
    "gateway.whatsapp_identity": MODULES / "whatsapp_identity.py",
    "hermes_constants": MODULES / "hermes_constants.py",
    "hermes_cli": None,
    "hermes_cli.config": MODULES / "cli_config.py",
    "run_agent": MODULES / "run_agent.py",
    "tools": None,
    "tools.send_message_tool": MODULES / "send_message_tool.py",
}
# What this program itself is made of. `gateway.hermes` has no folder here: its other files belong to the daemon.
OWN: Mapping[str, Path | None] = {
    "gateway.events.event": EVENTS / "event.py",
    PACKAGE: HERE,
    "gateway.hermes": None,
    "gateway.hermes.shim": HERE.parent / "hermes" / "shim",
    "gateway.hermes.plugin": HERE.parent / "hermes" / "plugin",
}
OWN_MODULES = tuple(f"{name}." for name in (PACKAGE, "gateway.hermes.shim", "gateway.hermes.plugin"))
PACKAGES = frozenset({"gateway.hooks"})
# Modules of Hermes's gateway in which there are classes that people patch.
PATCHED_MODULES = ("gateway.platforms.", "gateway.stream_consumer", "gateway.delivery", "gateway.slash_commands")


class HandlerModuleFinder(MetaPathFinder):
    """Finds the modules that hooks are offered, ahead of everything that may be installed."""

    def __init__(self, modules: Mapping[str, Path | None]) -> None:
        self._modules = dict(modules)
        self._path = frozenset(sys.path)

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
        if name.startswith(PATCHED_MODULES):
            return _make_spec(name, MODULES / "placeholder.py")
        if name.startswith("gateway.") and not name.startswith(OWN_MODULES):
            offered = ", ".join(sorted(m for m in OFFERED if m.startswith("gateway.")))
            raise ModuleNotFoundError(f"{name} is not there for hooks; of the gateway they may import {offered}")
        return None

    def _is_the_hooks_own(self, name: str) -> bool:
        """A module called `tools` that lies where the hook itself has said to look is meant, not Hermes's."""
        top = name.partition(".")[0]
        added = (Path(entry) for entry in sys.path if entry not in self._path)
        return top != "gateway" and any((at / f"{top}.py").is_file() or (at / top).is_dir() for at in added)


def _make_spec(name: str, file: Path | None) -> ModuleSpec | None:
    if file is None or file.is_dir():
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [] if file is None else [str(file)]
        return spec
    places: list[str] | None = [] if name in PACKAGES or file.name == "__init__.py" else None
    return spec_from_file_location(name, file, submodule_search_locations=places)


def main(arguments: Sequence[str]) -> None:
    """`fork_server|worker` and its settings as JSON."""
    role, settings = arguments[0], json.loads(arguments[1])
    sys.path += [entry for entry in settings.pop("path", ()) if entry not in sys.path]
    offer = HandlerModuleFinder({**OFFERED, **OWN})
    sys.meta_path.insert(0, offer)
    importlib.import_module(f"{PACKAGE}.{role}").main(settings, offer.add)


if __name__ == "__main__":
    main(sys.argv[1:])
