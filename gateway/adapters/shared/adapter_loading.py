"""The modules of a network's folder, loaded on demand.

The code of other authors has a time limit, and its faults are reported with their place and the remedy: an adapter that
cannot be loaded must not hold up the gateway or the other networks.
"""

import re
import threading
import traceback
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from sys import modules
from typing import Any

from gateway.config.platform_settings import PlatformPlace, PlatformSettings, PlatformSpec
from gateway.config.schema import SettingsSchema
from gateway.errors import AdapterError, describe_error
from gateway.late_imports import load_modules

PATIENCE = 10.0  # seconds for one module
PACKAGE = "gateway_adapter"


def package_of(folder: Path) -> str:
    """Return the package name for a folder's code: two folders of one name are two packages."""
    return f"{PACKAGE}_{folder.name}_{zlib.crc32(str(folder).encode()):08x}"


def load_part(place: PlatformPlace, part: str) -> Any:
    """Load a module of the network's folder.

    Raises:
        AdapterError: code of another author cannot be loaded; with the place and the remedy.
    """
    if not place.origin:
        return load_modules(f"{place.package}.{part}")[0]
    try:
        return _load_in_time(lambda: _load_foreign(place, part))
    except TimeoutError:
        what = f"{part}.py is not loaded within {PATIENCE:.0f} s"
        raise AdapterError(f"{what}: {place.origin}; what takes long belongs into `serve`") from None
    except (Exception, SystemExit) as error:
        raise AdapterError(describe_fault(place, error)) from error


@cache
def load_spec(name: str, place: PlatformPlace) -> PlatformSpec | AdapterError:
    """Return an adapter's spec, or the error that prevents its use; loaded once in the life of a process."""
    try:
        spec: PlatformSpec = load_part(place, "settings").SPEC
        check_spec(name, spec)
    except AdapterError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever its author wrote
        return AdapterError(describe_fault(place, error))
    return spec


def check_spec(name: str, spec: PlatformSpec) -> None:
    """Check that a spec answers everything that the gateway asks of it.

    Raises:
        Exception: it does not; of any kind.
    """
    if not (isinstance(spec, PlatformSpec) and issubclass(spec.settings, PlatformSettings)):
        raise TypeError("SPEC is not a PlatformSpec whose settings are PlatformSettings")
    if strange := [one for one in spec.variables.values() if name not in one.split(".")]:
        raise ValueError(f"the variables of {name} may set what is its own, and not {strange[0]}")
    schema = SettingsSchema({name: spec})
    tuple(schema.hermes_variables)
    tuple(schema.list_platform_secrets(name))
    for pattern in (spec.user_id, spec.chat_id):
        re.compile(pattern)


def describe_fault(place: PlatformPlace, error: BaseException) -> str:
    """Describe a fault in another author's code, with its place and the remedy."""
    root = str(place.folder or place.package.partition(".")[0])
    frames = [one for one in traceback.extract_tb(error.__traceback__) if root in one.filename]
    at = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        at = f" ({error.filename}:{error.lineno})"
    remedy = "correct it, and restart the gateway"
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith(place.package):
        remedy = f"install what has {error.name} into the gateway's environment, and start it again"
    return f"{describe_error(error)}{at}, from {place.origin}; {remedy}"


def _load_foreign(place: PlatformPlace, part: str) -> Any:
    if place.folder is not None and place.package not in modules:
        _begin_package(place.package, place.folder)
    return import_module(f"{place.package}.{part}")


def _begin_package(name: str, folder: Path) -> None:
    """Make a folder a package of this name; its modules are found in it, and import each other relatively."""
    face = folder / "__init__.py"
    spec: ModuleSpec | None = ModuleSpec(name, None, is_package=True)
    if face.exists():
        spec = spec_from_file_location(name, face, submodule_search_locations=[str(folder)])
    assert spec is not None
    spec.submodule_search_locations = [str(folder)]
    modules[name] = module_from_spec(spec)
    try:
        if spec.loader is not None:
            spec.loader.exec_module(modules[name])
    except BaseException:
        del modules[name]
        raise


def _load_in_time(load: Callable[[], Any]) -> Any:
    """Load in a separate thread, which is abandoned if it takes too long, since no thread can be ended."""
    loaded = Future[Any]()

    def run() -> None:
        try:
            loaded.set_result(load())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            loaded.set_exception(error)

    threading.Thread(target=run, name="adapter loading", daemon=True).start()
    return loaded.result(PATIENCE)
