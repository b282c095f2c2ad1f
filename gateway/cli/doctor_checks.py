"""What `doctor` looks at: one table of checks, each a function from the patient to what it found wrong.

A check changes nothing, works with and without a running gateway, and says of each fault the place and what helps.
"""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from gateway import __version__
from gateway.agent.models.script import read_script
from gateway.cli.hooks.check import check_folder
from gateway.cli.model_probe import probe_model
from gateway.config.agent_settings import ModelSettings
from gateway.config.home import Home
from gateway.config.loading import Configuration, read_configuration
from gateway.config.permissions import check_home
from gateway.control.client import ControlClient
from gateway.daemon.platforms import why_not_served
from gateway.engine.sqlite.backup import verify_journal
from gateway.errors import GatewayError, NotRunning
from gateway.hooks.folders.sources import Source, list_hook_folders
from gateway.yaml_source import Finding, SourceLocation

MIN_FREE_BYTES = 200_000_000  # bytes that should be free on the disk
JOURNAL_FULL_SHARE = 0.9  # of the journal's bound
PATIENCE = 10.0
GATEWAY_PLACE = SourceLocation("the running gateway")


@dataclass(frozen=True, slots=True)
class DoctorTarget:
    """A home, what its configuration says (None: it is wrong), and what the gateway says, if one answers."""

    home: Home
    configuration: Configuration | None
    findings: tuple[Finding, ...]
    facts: Mapping[str, Any] | None = None
    trouble: str = ""  # why a gateway that runs gives no answer


DoctorCheck: TypeAlias = Callable[[DoctorTarget], Iterable[Finding]]


def read_target(home: Home, environ: Mapping[str, str]) -> DoctorTarget:
    configuration, findings = read_configuration(home, environ)
    try:
        with ControlClient(home.socket, PATIENCE) as client:
            return DoctorTarget(home, configuration, tuple(findings), client.call("status"))
    except NotRunning:
        return DoctorTarget(home, configuration, tuple(findings))
    except (GatewayError, OSError, ValueError) as error:
        return DoctorTarget(home, configuration, tuple(findings), trouble=str(error) or type(error).__name__)


def check_home_folder(found: DoctorTarget) -> Iterator[Finding]:
    """Whose it is, and who else could change or read what is in it."""
    yield from check_home(found.home)
    for path in (found.home.root, found.home.own_folder):
        if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
            yield Finding(
                SourceLocation(str(path)), "it cannot be written", "make it writable for the user of the gateway"
            )


def check_configuration(found: DoctorTarget) -> Iterator[Finding]:
    """What `config check` says."""
    of_the_home = set(map(str, check_home(found.home)))
    yield from (finding for finding in found.findings if str(finding) not in of_the_home)


def check_process(found: DoctorTarget) -> Iterator[Finding]:
    """Whether the gateway that holds the home answers, and what it wants somebody to look at."""
    if found.facts is None:
        if holder := lock_holder_of(found.home.lock):
            what = f"{holder} holds this home and does not answer" + (f": {found.trouble}" if found.trouble else "")
            yield Finding(
                SourceLocation(str(found.home.socket)), what, "look at: hermes-gateway logs; then end that process"
            )
        return
    if found.facts["version"] != __version__:
        what = f"it runs version {found.facts['version']}, installed is {__version__}"
        yield Finding(GATEWAY_PLACE, what, "start it again", "warning")
    for said in found.facts["attention"]:
        if not said.startswith("hook "):
            yield Finding(GATEWAY_PLACE, said, "see: hermes-gateway status, hermes-gateway logs")


def check_journal(found: DoctorTarget) -> Iterator[Finding]:
    """The file from end to end, and what was set aside beside it."""
    path = found.home.journal
    if path.exists():
        try:
            verify_journal(path)
        except GatewayError as error:
            what, _, remedy = str(error).partition("\n")
            yield Finding(
                SourceLocation(str(path)), what, remedy or "stop the gateway and restore a backup: backup restore FILE"
            )
    for kept in sorted(path.parent.glob(f"{path.name}.damaged-*")):
        if not kept.name.endswith(("-wal", "-shm")):
            remedy = "restore a backup, or save what is in it with `sqlite3 FILE .recover`; then move it away"
            yield Finding(SourceLocation(str(kept)), "a damaged journal was set aside", remedy, "warning")


def check_disk_space(found: DoctorTarget) -> Iterator[Finding]:
    """On the disk, and within the journal's own bound."""
    there = next(path for path in (found.home.own_folder, *found.home.own_folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        what = f"{free // 1_000_000} MB are free; on a full disk no message is taken"
        yield Finding(SourceLocation(str(there)), what, "make room on this disk")
    bound = found.configuration.settings.journal.max_size if found.configuration else 0
    with suppress(OSError):
        size = found.home.journal.stat().st_size
        if bound and size > JOURNAL_FULL_SHARE * bound:
            what = f"it has {size} bytes, and its bound is {bound}"
            yield Finding(SourceLocation(str(found.home.journal)), what, "raise journal.max_size", "warning")


def check_models(found: DoctorTarget) -> Iterator[Finding]:
    """Whether each can be reached, takes our key and has the model of that name."""
    if found.configuration is None:
        return
    settings = found.configuration.settings
    for name, model in {
        "model": settings.model,
        **{f"models.{key}": one for key, one in settings.models.items()},
    }.items():
        place = found.configuration.origins.get(f"{name}.name") or SourceLocation(str(found.home.config))
        yield from _check_model(place, name, model, found.home)


def _check_model(place: SourceLocation, name: str, model: ModelSettings, home: Home) -> Iterator[Finding]:
    try:
        if model.provider != "demo":
            fault = probe_model(model)
            if fault:
                yield Finding(place, f"{name}: {fault.what}", fault.remedy)
        elif model.script:
            read_script(home.path(model.script))
    except GatewayError as error:
        yield Finding(place, f"{name}: {error}", "mend the script, or leave `script` out")


def check_platforms(found: DoctorTarget) -> Iterator[Finding]:
    """Networks that are wanted and cannot be served, and those that are served and not well."""
    if found.configuration is not None:
        networks = found.configuration.settings.platforms
        for name in networks.__struct_fields__:
            network = getattr(networks, name)
            reason = why_not_served(name, network)
            if network.enabled and reason:
                place = found.configuration.origins.get(f"platforms.{name}.enabled") or SourceLocation(
                    str(found.home.config)
                )
                yield Finding(
                    place, f"{name} is switched on and not served: {reason}", "set it up, or say enabled: false"
                )
    for name, fares in (found.facts or {}).get("platforms", {}).items():
        if not fares["up"]:
            yield Finding(GATEWAY_PLACE, f"{name} is down: {fares['detail']}", "mend that; it is tried again by itself")
        yield from (
            Finding(GATEWAY_PLACE, f"{name}: {said}", "see above", "warning") for said in fares.get("complaints", ())
        )


def check_hooks(found: DoctorTarget) -> Iterator[Finding]:
    """Those that do not run, and why; without a gateway, those that could not."""
    if found.facts is not None:
        for said in found.facts["attention"]:
            if said.startswith("hook "):
                yield Finding(GATEWAY_PLACE, said, f"see: hermes-gateway hooks info {said.split()[1]}")
        return
    for folder in list_hook_folders(Source(found.home.hooks, "home")):
        one = check_folder(folder, found.home)
        yield from one.findings
        for lack in one.lacks:
            remedy = f"install it, or switch the hook off: hermes-gateway hooks disable {one.name}"
            yield Finding(SourceLocation(str(folder.path)), f"it cannot run here: {lack}", remedy)


CHECKS: Mapping[str, DoctorCheck] = MappingProxyType(
    {
        "home": check_home_folder,
        "configuration": check_configuration,
        "process": check_process,
        "journal": check_journal,
        "room": check_disk_space,
        "models": check_models,
        "platforms": check_platforms,
        "hooks": check_hooks,
    }
)


def lock_holder_of(lock: Path) -> str:
    """Who holds the home, in words; empty: nobody."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "an unknown process"
    finally:
        os.close(descriptor)
    return ""
