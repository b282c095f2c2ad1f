"""The target of an audit, and the shapes of a check and of a fault."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from gateway.cli.doctor import DoctorTarget, read_target
from gateway.cli.service.units import OLD_UNIT, SYSTEM_UNITS, UNIT, find_own_unit, find_user_units
from gateway.config.home import Home
from gateway.config.settings import Settings
from gateway.daemon.hooks import list_sources
from gateway.engine.sqlite.backup import read_last_in
from gateway.errors import EngineError
from gateway.hooks.folders.readiness import why_not_enabled
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.switches import HookSwitches
from gateway.records import records, subjects
from gateway.yaml_source.tree import Finding, SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTarget:
    """The target: doctor's facts, paired people and owners, the enabled hooks, and the machine.

    person: the home of the user; units: files of systemd that may start the gateway; uid: the user of this process.
    """

    doctor: DoctorTarget
    person: Path
    people: records.PairingState = field(default_factory=records.PairingState)
    hooks: tuple[HookVersion, ...] = ()
    units: tuple[Path, ...] = ()
    uid: int
    python: tuple[int, int]
    today: date

    @property
    def home(self) -> Home:
        return self.doctor.home

    @property
    def settings(self) -> Settings:
        """The settings in force; the defaults if the configuration is wrong, which is a finding of its own."""
        return self.doctor.configuration.settings if self.doctor.configuration else Settings()

    def place_of(self, setting: str) -> SourceLocation:
        """Return the place where a setting, or the first one below it, was made."""
        known = self.doctor.configuration.origins if self.doctor.configuration else {}
        below = (place for name, place in known.items() if name.startswith(f"{setting}."))
        return known.get(setting) or next(below, self.doctor.place_of(setting))


class AuditFault(NamedTuple):
    """A fault at a place, and its remedy; `bits` are the rights to remove from `paths` for that."""

    place: SourceLocation
    what: str
    remedy: str
    paths: tuple[Path, ...] = ()
    bits: int = 0


FindFaults: TypeAlias = Callable[[AuditTarget], Iterable[AuditFault]]


class AuditCheck(NamedTuple):
    """One check: its lasting id, its severity, its meaning for people, and its function; a notice is not a fault."""

    id: str
    severity: Literal["error", "warning", "notice"]
    means: str
    find: FindFaults


def make_check(
    name: str, severity: Literal["error", "warning", "notice"], means: str
) -> Callable[[FindFaults], AuditCheck]:
    """Make a check of a function that finds faults."""
    return lambda find: AuditCheck(name, severity, means, find)


def read_audit_target(home: Home, environ: Mapping[str, str]) -> AuditTarget:
    """Read everything for an audit, with or without a running gateway; no code of a hook is run."""
    doctor = read_target(home, environ)
    person = Path(environ.get("HOME") or Path.home())
    folders = (SYSTEM_UNITS, find_user_units(environ))
    units = (find_own_unit(folder / UNIT, folder / OLD_UNIT) for folder in folders)
    return AuditTarget(
        doctor=doctor,
        person=person,
        people=_read_people(home),
        hooks=tuple(_list_hooks(doctor)),
        units=tuple(path for path in units if path.is_file()),
        uid=os.geteuid(),
        python=sys.version_info[:2],
        today=datetime.now(UTC).date(),
    )


def _read_people(home: Home) -> records.PairingState:
    """Read the people from the journal. `doctor` reports a journal that cannot be read."""
    kept = None
    with suppress(EngineError, ValueError):
        if found := read_last_in(home.journal, subjects.ACCESS_SUBJECT):
            kept = records.decode(found.data)
    return kept if isinstance(kept, records.PairingState) else records.PairingState()


def as_faults(findings: Iterable[Finding], *paths: Path, bits: int = 0) -> Iterator[AuditFault]:
    """Convert findings of another check; with `bits`, the remedy is to remove these rights from the paths."""
    for one in findings:
        yield AuditFault(one.place, one.what, one.remedy, paths, bits)


def _list_hooks(doctor: DoctorTarget) -> Iterator[HookVersion]:
    if doctor.configuration is None:
        return
    settings, switches = doctor.configuration.settings.hooks, HookSwitches(doctor.home.hook_state)
    for source in list_sources(doctor.home, doctor.configuration):
        for folder in source.list():
            version = source.inspect(folder)
            if not source.is_ours and not why_not_enabled(version, settings, switches):
                yield version
