"""The trials of `doctor --hermes --load`: each hook and plugin is started once, in a process that is thrown away.

The process has a copy of its folder, a home of its own, no secrets and, if the kernel can forbid it, no network. It
gets no event. Its requests at the start are answered as if they had been carried out.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import msgspec

from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.dispatcher.context import GatewayFacts
from gateway.errors import HookError
from gateway.hermes.patches import describe_patches
from gateway.hermes.plugin_manifest import join_python_files
from gateway.hermes.sources import add_hermes_variables, create_hermes_folders
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_set import SourceSet
from gateway.hooks.folders.trial import make_answer
from gateway.hooks.places.hook_files import IGNORED, NODE_PACKAGES
from gateway.hooks.places.inspection import read_code
from gateway.hooks.places.sources import HookVersion, Source
from gateway.hooks.services import HookEnvironment, HookServices
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import NETWORK_LEFT, ForkServerSettings

LOAD_TIMEOUT = 10.0
STOP_TIMEOUT = 1.0
PLACEHOLDER = "placeholder"  # replaces the value of a variable
_KEPT_VARIABLES = re.compile(r"PATH|LANG|TZ|LC_\w+|SSL_CERT_\w+|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE")
_HARMLESS_VALUE = re.compile(r"\d{1,6}|true|false|yes|no|on|off", re.IGNORECASE)


class LoadResult(NamedTuple):
    """The result of one trial.

    `error`: why the hook does not start, with the remedy. `remarks`: its parts without effect here. `is_idle`: it only
    changes or registers things that do not exist here.
    """

    error: str = ""
    remarks: tuple[str, ...] = ()
    is_idle: bool = False
    had_network: bool = False


async def try_loads(home: Home, configuration: Configuration, sources: Sequence[Source]) -> dict[str, LoadResult]:
    """Try the hooks one after the other, and return the results by name.

    It tries those that are switched on and trusted, and that run in a process of ours.
    """
    settings = configuration.settings.hooks
    around = HookEnvironment(
        environ=add_hermes_variables(configuration),
        home=home.root,
        logs=home.hook_logs,
        state=home.hook_state,
        packages=[place for place in sys.path if place],
        redactor=configuration.redactor,
    )
    results: dict[str, LoadResult] = {}
    async with (
        HookRegistry() as registry,
        ForkServerClient(ForkServerSettings(processes=settings.processes), configuration.redactor.clean) as fork_server,
        anyio.create_task_group() as tasks,
    ):
        services = HookServices(settings, around, registry, fork_server, _answer_request, tasks)
        found = SourceSet(sources, services)
        for name in found.list():
            version = found.check(name)
            if version and version.is_ready and version.manifest and version.manifest.wire == "worker":
                results[name] = await _try_load(version, services)
        tasks.cancel_scope.cancel()
    return results


async def _answer_request(_hook: str, verb: str, params: dict[str, Any], _during: str) -> Any:
    match verb:
        case "facts":
            return msgspec.to_builtins(GatewayFacts())
        case "store.get":
            return params.get("default")
        case "store.keys":
            return []
    return make_answer(verb, params)


async def _try_load(version: HookVersion, services: HookServices) -> LoadResult:
    with tempfile.TemporaryDirectory(prefix="hermes-gateway-") as directory:
        root, log = Path(directory), Path(directory) / "hook.log"
        try:
            copy = _copy_folder(version, root)
        except (OSError, shutil.Error) as error:
            return LoadResult(f"its folder cannot be copied: {error}")
        trial = replace(services, settings=msgspec.structs.replace(services.settings, each={}))
        trial.environment = _make_environment(services.environment, root)
        try:
            with anyio.fail_after(LOAD_TIMEOUT):
                wire = await version.source.open_wire(copy, trial, partial(_answer_request, version.name), log)
        except TimeoutError:
            return LoadResult(f"its import was not done after {LOAD_TIMEOUT:g} s")
        except HookError as error:
            said, places = str(error), services.environment.places_of(version.name)
            helps = version.source.describe_failure(version, said, places)
            return LoadResult(services.redact(f"{said}; {helps}" if helps else said), had_network=_had_network(log))
        loaded = wire.loaded if isinstance(wire, WorkerHandle) else None
        await wire.stop(STOP_TIMEOUT)
        remarks, patches = (loaded.offers.remarks, loaded.patches) if loaded else ((), ())
        manifest = version.manifest and loaded and version.dialect.complete(version.manifest, loaded)
        idle = manifest and version.dialect.why_idle(manifest, patches, remarks)
        patched = (f"without effect: {describe_patches((patch,))}" for patch in patches)
        told = tuple(map(services.redact, (*remarks, *patched)))
        return LoadResult("", told, bool(idle), _had_network(log))


def _copy_folder(version: HookVersion, root: Path) -> HookVersion:
    """Copy the hook for its trial; a package stays in its place."""
    create_hermes_folders(Home(root))
    for name in ("hooks", "plugins", "state", "tmp"):
        (root / name).mkdir()
    if not version.source.is_placed:
        return version
    place, ignored = root / version.source.path.name, shutil.ignore_patterns(*IGNORED, NODE_PACKAGES)
    for folder in (version.path, *_find_helpers(version)):
        copy = place / folder.name
        shutil.copytree(folder, copy, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    return msgspec.structs.replace(version, path=place / version.path.name)


def _find_helpers(version: HookVersion) -> Iterator[Path]:
    """Yield the folders beside the hook that its code names and that are no hooks: several may share them."""
    source = join_python_files(read_code(version).files)
    for folder in version.source.path.iterdir():
        is_hook = version.source.find(version.source.prefix + folder.name) is not None
        if folder.is_dir() and not is_hook and re.search(rf"\b{re.escape(folder.name)}\b".encode(), source):
            yield folder


def _make_environment(real: HookEnvironment, root: Path) -> HookEnvironment:
    (root / "state" / "packages").symlink_to(real.state / "packages")
    environ = {name: _mask(name, value, root) for name, value in real.environ.items()}
    environ |= {"HOME": str(root), "TMPDIR": str(root / "tmp")}
    return msgspec.structs.replace(real, environ=environ, home=root, logs=root, state=root / "state", is_offline=True)


def _mask(name: str, value: str, root: Path) -> str:
    """Replace the value by a harmless one of the same kind, for code that only looks at it."""
    if _KEPT_VARIABLES.fullmatch(name) or _HARMLESS_VALUE.fullmatch(value) or not value:
        return value
    if value.startswith(("http://", "https://")):
        return "http://localhost/"
    return str(root) if value.startswith(("/", "~")) else PLACEHOLDER


def _had_network(log: Path) -> bool:
    return NETWORK_LEFT in _read_log(log)


def _read_log(log: Path) -> str:
    try:
        return log.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def describe_network(results: Mapping[str, LoadResult]) -> str:
    """Name, for people, the hooks whose network the kernel could not forbid."""
    reached = [name for name, result in results.items() if result.had_network]
    return f"; this kernel could not forbid the network to {', '.join(reached)}" if reached else ""
