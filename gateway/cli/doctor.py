"""`hermes-gateway doctor`: find faults and name their remedies; exit 1 if there are any."""

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from msgspec.structs import asdict

from gateway import __version__
from gateway.adapters.shared.folder import load_settings_schema
from gateway.agent.models.script import read_script
from gateway.agent.toolbox.key_homes import WIDE_ROOT, find_wide_roots
from gateway.backup.shared_journal import find_servers
from gateway.cli.desk_checks import check_codex, show_desk
from gateway.cli.hooks.check import check_folder, list_all, list_places
from gateway.cli.model_probe import address_of, probe_models, show_loading
from gateway.cli.output import (
    add_json_option,
    apply_style,
    format_duration,
    print_lines,
    print_note,
    print_text,
    show_json,
    show_progress,
)
from gateway.cli.service.hermes_units import check_own_units, find_hermes_units
from gateway.cluster.server_probe import check_servers
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, find_schema, load_configuration, read_configuration
from gateway.config.permissions import check_home, make_finding
from gateway.config.platform_settings import PlatformAccount, list_accounts
from gateway.config.providers import DEMO
from gateway.config.settings import HooksSettings, ModelSettings
from gateway.control.client import call_gateway
from gateway.daemon.agents import list_missing_libraries
from gateway.daemon.home_lock import lock_holder_of, read_waiting
from gateway.daemon.hooks import list_sources
from gateway.daemon.platforms import why_not_served
from gateway.daemon.unknown_names import find_unknown_hooks, find_unknown_prices
from gateway.daemon.webhooks import find_bad_secrets, find_missing_secrets
from gateway.desk.programs import PROGRAMS
from gateway.desk.settings_file import find_file
from gateway.engine.sqlite.backup import count_bytes, verify_journal
from gateway.engine.sqlite.journal_end import read_fault
from gateway.engine.sqlite.journal_file import COMPANION_SUFFIXES
from gateway.errors import ExitCode, GatewayError, HookError, NotRunning
from gateway.hermes.doctor import (
    BROKEN,
    DEGRADES,
    OFF,
    PENDING,
    WITHOUT_EFFECT,
    WORKS,
    CompatibilityRow,
    check_hermes_home,
)
from gateway.hermes.load_trial import LoadResult, describe_network, try_loads
from gateway.hooks.folders.readiness import why_not_enabled
from gateway.hooks.places.switches import HookSwitches
from gateway.installation import find_packages_to_compile
from gateway.logs.text import to_one_line
from gateway.worker import mounts
from gateway.worker.kernel import KernelSupport, find_kernel_support
from gateway.worker.sandbox import SandboxSupport, find_support
from gateway.yaml_source.tree import Finding, SourceLocation

VERDICT_COLOURS = {
    WORKS: "green",
    DEGRADES: "yellow",
    PENDING: "yellow",
    BROKEN: "red",
    OFF: "dim",
    WITHOUT_EFFECT: "red",
}


MIN_FREE_BYTES = 200_000_000  # bytes that should be free on the disk
KINDS = {
    **dict.fromkeys(("ev", "owed", "redo"), "events of durable hooks"),
    **dict.fromkeys(("out", "sent"), "replies"),
    "turn": "conversations",
    "in": "messages",
    "dead": "dead letters",
    "keep": "stores of hooks",
    "job": "histories of jobs",
}  # of records, by the second segment of their subjects
JOURNAL_FULL_SHARE = 0.9  # of the journal's bound
PATIENCE = 10.0
NOT_YET = "it was not connected yet"
GATEWAY_PLACE = SourceLocation("the running gateway")


@dataclass(frozen=True, slots=True)
class DoctorTarget:
    """A home, its configuration (None: it is wrong), and the facts of its gateway, if that answers."""

    home: Home
    configuration: Configuration | None
    findings: tuple[Finding, ...]
    facts: Mapping[str, Any] | None = None
    trouble: str = ""  # the reason why a running gateway does not answer
    support: SandboxSupport = field(default_factory=find_support)
    kernel: KernelSupport = field(default_factory=find_kernel_support)
    has_mounts: bool = field(default_factory=mounts.can_restrict)

    def place_of(self, setting: str) -> SourceLocation:
        """Return the place where a setting was made, or else the file where it could be."""
        known = self.configuration.origins if self.configuration else {}
        return known.get(setting) or SourceLocation(str(self.home.config))


DoctorCheck: TypeAlias = Callable[[DoctorTarget], Iterable[Finding]]


def read_target(home: Home, environ: Mapping[str, str]) -> DoctorTarget:
    configuration, findings = read_configuration(load_settings_schema(), home, environ)
    try:
        facts = call_gateway(home.socket, "status", PATIENCE)
        return DoctorTarget(home, configuration, tuple(findings), facts)
    except NotRunning:
        return DoctorTarget(home, configuration, tuple(findings))
    except (GatewayError, OSError, ValueError) as error:
        return DoctorTarget(home, configuration, tuple(findings), trouble=str(error) or type(error).__name__)


def check_home_folder(found: DoctorTarget) -> Iterator[Finding]:
    """Check who owns the home, and who else can change or read its content."""
    yield from check_home(found.home)
    for path in (found.home.root, found.home.own_folder):
        if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
            yield make_finding(path, "it cannot be written", "make it writable for the user of the gateway")


def check_configuration(found: DoctorTarget) -> Iterator[Finding]:
    """Report the findings of `config check`."""
    of_the_home = set(map(str, check_home(found.home)))
    yield from (finding for finding in found.findings if str(finding) not in of_the_home)
    if found.configuration:
        yield from find_unknown_hooks(found.configuration, list_sources(found.home, found.configuration))
        yield from find_unknown_prices(found.configuration)
        if found.facts is None:  # else the running gateway reports it, with the hooks'
            yield from find_missing_secrets(found.configuration)
            yield from find_bad_secrets(found.configuration)
            for said in list_missing_libraries(found.configuration.settings):
                what, _, remedy = said.partition(": ")
                yield Finding(found.place_of("mcp_servers"), what, remedy)


def check_process(found: DoctorTarget) -> Iterator[Finding]:
    """Check that the gateway which holds the home answers, and report what needs attention."""
    if found.facts is None:
        if read_waiting(found.home.lock):
            return
        if holder := lock_holder_of(found.home.lock):
            what = f"{holder} holds this home and does not answer" + (f": {found.trouble}" if found.trouble else "")
            yield make_finding(found.home.socket, what, "look at: hermes-gateway logs; then end that process")
        return
    yield from check_version(found)
    loss = read_fault(found.home.journal)  # `check_journal` reports it
    for said in found.facts["attention"]:
        if not said.startswith("hook ") and not (loss and loss in said):
            yield Finding(GATEWAY_PLACE, said, "see: hermes-gateway status, hermes-gateway logs")


def check_version(found: DoctorTarget) -> Iterator[Finding]:
    """Check that the running gateway has the installed version."""
    if found.facts and found.facts["version"] != __version__:
        what = f"it runs version {found.facts['version']}, installed is {__version__}"
        yield Finding(GATEWAY_PLACE, what, "start it again", "warning")


def check_journal(found: DoctorTarget) -> Iterator[Finding]:
    """Check the whole journal file, and files that were set aside beside it; or the servers that keep the journal."""
    path = found.home.journal
    if found.configuration and (servers := find_servers(found.configuration)):
        yield from check_servers(found.home, found.configuration, servers)
        return
    if path.exists():
        remedy = "stop the gateway and restore a backup: backup restore FILE"
        try:
            for damaged in verify_journal(path).damaged:
                yield make_finding(path, f"{damaged} is not as it was written: the disk has changed it", remedy)
        except GatewayError as error:
            what, _, own_remedy = str(error).partition("\n")
            yield make_finding(path, what, own_remedy or remedy)
    if loss := read_fault(path):
        what, _, remedy = loss.rpartition("; ")
        yield make_finding(path, what, remedy)
    for kept in sorted(path.parent.glob(f"{path.name}.damaged-*")):
        if not kept.name.endswith(COMPANION_SUFFIXES):
            remedy = "restore a backup, or save what is in it with `sqlite3 FILE .recover`; then move it away"
            yield make_finding(kept, "a damaged journal was set aside", remedy, "warning")


def check_disk_space(found: DoctorTarget) -> Iterator[Finding]:
    """Check the free space on the disk, and within the journal's own limit."""
    there = next(path for path in (found.home.own_folder, *found.home.own_folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        what = f"{free // 1_000_000} MB are free; on a full disk no message is taken"
        yield make_finding(there, what, "make room on this disk")
    bound = found.configuration.settings.journal.max_size if found.configuration else 0
    with suppress(OSError):
        size = found.home.journal.stat().st_size
        if bound and size > JOURNAL_FULL_SHARE * bound:
            what = f"it has {size} bytes, and its bound is {bound}; most of it: {describe_contents(found.home.journal)}"
            yield make_finding(found.home.journal, what, "raise journal.max_size", "warning")


def describe_contents(journal: Path) -> str:
    """Return the three kinds of records that fill a journal, with their shares."""
    sizes = Counter[str]()
    with suppress(GatewayError):  # another check reports its faults
        for segment, size in count_bytes(journal).items():
            sizes[KINDS.get(segment, "others")] += size
    return ", ".join(f"{kind} {size / sizes.total():.0%}" for kind, size in sizes.most_common(3))


def check_models(found: DoctorTarget) -> Iterator[Finding]:
    """Report each model that does not answer; equal ones are called once, and all at the same time."""
    if found.configuration is None:
        return
    settings = found.configuration.settings
    models = {"model": settings.model, **{f"models.{key}": one for key, one in settings.models.items()}}
    calls = {name: _describe_call(one) for name, one in models.items() if one.provider != DEMO}
    asked = {call: models[name] for name, call in calls.items()}
    with show_loading():
        faults = dict(zip(asked, probe_models(asked.values(), found.configuration.environ), strict=True))
    for name, model in models.items():
        place = found.place_of(f"{name}.name")
        if name in calls and (fault := faults[calls[name]]):
            yield Finding(place, f"{name}: {fault.what}", fault.remedy)
        elif name not in calls and model.script:
            yield from _check_script(place, name, found.home.path(model.script))


def _describe_call(model: ModelSettings) -> tuple[str, ...]:
    return model.provider, address_of(model), model.api_key.reveal(), model.name


def _check_script(place: SourceLocation, name: str, script: Path) -> Iterator[Finding]:
    try:
        read_script(script)
    except GatewayError as error:
        yield Finding(place, f"{name}: {error}", "mend the script, or leave `script` out")


def check_platforms(found: DoctorTarget) -> Iterator[Finding]:
    """Report networks that are enabled and cannot be served, and served ones with problems."""
    if found.configuration is not None:
        for one in list_accounts(found.configuration.settings.platforms):
            reason = why_not_served(one.settings)
            if one.settings.enabled and reason:
                what = f"{one.name} is switched on and not served: {reason}"
                place = found.place_of(".".join((*one.path, "enabled")))
                yield Finding(place, what, "set it up, or say enabled: false")
    for name, fares in (found.facts or {}).get("platforms", {}).items():
        if not fares["up"] and not fares.get("served_by"):
            what = f"{name} is down: {fares['detail'] or NOT_YET}"
            yield Finding(GATEWAY_PLACE, what, "correct that; the gateway tries again automatically")
        yield from (
            Finding(GATEWAY_PLACE, f"{name}: {said}", "see above", "warning") for said in fares.get("complaints", ())
        )


def check_sandbox(found: DoctorTarget) -> Iterator[Finding]:
    """Check that this kernel can enforce all limits of restricted hooks and tools."""
    for what in found.support.missing:
        remedy = "run it on a newer kernel; until then restricted hooks and tools reach more than they say"
        yield Finding(SourceLocation("this kernel"), what, remedy, "warning")
    tools = found.configuration.settings.tools if found.configuration else None
    if tools and tools.shell != "off" and tools.sandbox.mode == "auto" and not found.has_mounts:
        what = "commands of the agent can change modes, owners and times of files elsewhere: no user namespaces here"
        remedy = "allow them for this user, or in the container; else let commands ask: tools: {shell: ask}"
        yield Finding(found.place_of("tools.shell"), what, remedy, "warning")


def check_roots(found: DoctorTarget) -> Iterator[Finding]:
    """Find folders of the agent that hold the gateway's home, or keys."""
    if found.configuration is None:
        return
    roots = {found.home.path(written): written for written in found.configuration.settings.tools.roots}
    for root in find_wide_roots(roots, found.home.root, found.configuration.environ):
        remedy = "name the folders that it works in: tools: {roots: [hermes-gateway/workspace]}"
        yield Finding(found.place_of("tools.roots"), WIDE_ROOT.format(root=roots[root]), remedy, "warning")


def check_kernel(found: DoctorTarget) -> Iterator[Finding]:
    """Report an untested system, and what it lacks."""
    place = SourceLocation("this system")
    if not found.kernel.was_tried:
        what = f"the gateway is expected to work on {found.kernel.system}, and has not been tested there"
        yield Finding(place, what, "see docs/systems.md in the sources, and tell us how it went", "warning")
    for what in found.kernel.missing:
        yield Finding(place, what, "see docs/systems.md in the sources", "warning")


def check_byte_code(_found: DoctorTarget) -> Iterator[Finding]:
    """Find packages without byte code among those that this program imported."""
    if folders := find_packages_to_compile(Path(sys.prefix)):
        what = f"{folders[0]} has no byte code: each start of the gateway takes up to three times as long"
        more = ", and unset PYTHONDONTWRITEBYTECODE" if sys.dont_write_bytecode else " (its owner can)"
        remedy = f"{sys.executable} -m compileall -q {' '.join(map(str, folders))}{more}"
        yield Finding(SourceLocation("this installation"), what, remedy, "warning")


def check_hooks(found: DoctorTarget) -> Iterator[Finding]:
    """Report the hooks that do not run, with the reason; without a gateway, the ones that could not run."""
    if found.facts is not None:
        for said in found.facts["attention"]:
            if said.startswith("hook "):
                yield Finding(GATEWAY_PLACE, said, f"see: hermes-gateway hooks info {said.split()[1]}")
        return
    settings = found.configuration.settings.hooks if found.configuration else HooksSettings()
    switches = HookSwitches(found.home.hook_state)
    for folder in list_all(list_places(found.home)):
        one, lacks = check_folder(folder, found.home, found.configuration)
        if one.source.prefix and why_not_enabled(one, settings, switches):
            continue  # unwanted plugins are common there
        yield from one.findings
        for lack in lacks:
            remedy = f"install it, or switch the hook off: hermes-gateway hooks disable {one.name}"
            yield make_finding(folder.path, f"it cannot run here: {lack}", remedy)


CHECKS: Mapping[str, DoctorCheck] = {
    "home": check_home_folder,
    "configuration": check_configuration,
    "process": check_process,
    "journal": check_journal,
    "room": check_disk_space,
    "models": check_models,
    "platforms": check_platforms,
    "hooks": check_hooks,
    "desk": lambda _found: check_codex(find_file(PROGRAMS["codex"], get_process_environment())),
    "roots": check_roots,
    "byte code": check_byte_code,
    "service": lambda _found: check_own_units(get_process_environment()),
    "kernel": check_kernel,
    "sandbox": check_sandbox,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hermes", action="store_true", help="check what of a home of Hermes works here, and why the rest does not"
    )
    says = "with --hermes: start each enabled hook and plugin once, without secrets and network"
    parser.add_argument("--load", action="store_true", help=says)
    parser.add_argument(
        "--desk", action="store_true", help="show when a coding agent on this host runs a tool without asking"
    )
    parser.add_argument("--offline", action="store_true", help="do not call a model")
    add_json_option(parser)


def run(args: argparse.Namespace, home: Home) -> int:
    if args.load and not args.hermes:
        raise HookError("--load goes with --hermes: hermes-gateway doctor --hermes --load")
    if args.desk:
        return show_desk(home, as_json=args.json)
    if args.hermes:
        environ = get_process_environment()
        schema = find_schema(load_settings_schema(), home, environ)
        configuration, _ = read_configuration(schema, home, environ)
        loads = None
        if args.load:
            configuration = load_configuration(schema, home, environ)
            sources = [source for source in list_sources(home, configuration) if not source.is_ours]
            with show_progress("loading what is switched on"):
                loads = anyio.run(try_loads, home, configuration, sources)
        settings = configuration.settings.hooks if configuration else HooksSettings()
        rows = [*check_hermes_home(schema, home, environ, settings, loads)]
        for unit, why in find_hermes_units(environ):
            verdict = WITHOUT_EFFECT if why else OFF
            rows.append(CompatibilityRow("service", unit.name, verdict, (why or "it does not run",)))
        if args.json:
            show_json({"home": str(home.root), "hermes": [row._asdict() for row in rows]})
        else:
            show_compatibility(home, rows, loads)
        return ExitCode.OK
    target = read_target(home, get_process_environment())
    left_out = {"models"} if args.offline else set()
    found = {name: [] if name in left_out else list(check(target)) for name, check in CHECKS.items()}
    if args.json:
        shown = {
            name: [{**asdict(one), "place": str(one.place)} for one in findings] for name, findings in found.items()
        }
        facts = {"running": target.facts is not None, "unattended": _list_unattended(target)}
        facts["origins"] = {one.name: origin for one, origin in list_origins(target)}
        show_json({"ok": not any(found.values()), **facts, "checks": shown})
    else:
        show_findings(found, list_unknown(target, is_offline=args.offline), is_running=target.facts is not None)
        _show_unattended(target)
        for one, origin in list_origins(target):
            print_lines(to_one_line(f"{one.name} runs inside the gateway, from {origin}; it sees all that it sees"), "")
    return ExitCode.FAILED if any(found.values()) else ExitCode.OK


def list_unknown(target: DoctorTarget, *, is_offline: bool) -> dict[str, str]:
    """Return the reasons why some checks report nothing: only a right configuration names the journal's servers."""
    unasked = {"models": "not asked (--offline)"} if is_offline else {}
    if target.configuration:
        return unasked
    names = ["models", "platforms", *([] if target.home.journal.exists() else ["journal"])]
    return dict.fromkeys(names, "not looked at, before the configuration is mended") | unasked


def show_findings(found: dict[str, list[Finding]], unknown: Mapping[str, str], *, is_running: bool) -> None:
    for name, findings in found.items():
        fine = unknown.get(name) or apply_style("fine", "green")
        words = "disk space" if name == "room" else name  # its key in --json is older than these words
        print_text(f"{words}: {'' if findings else fine}".rstrip())
        for finding in findings:
            print_lines(to_one_line(f"{finding.place}: {finding.what}"), "  ")
            print_lines(to_one_line(finding.remedy), "    ")
    if not is_running:
        print_text("the gateway does not run; what only it knows was not looked at. Start it: hermes-gateway run")


def list_origins(target: DoctorTarget) -> Iterator[tuple[PlatformAccount, str]]:
    """List the enabled bots that run code of other authors, and the origin of that code."""
    if known := target.configuration:
        for one in list_accounts(known.settings.platforms):
            if one.settings.enabled and (origin := known.schema.places[one.platform].origin):
                yield one, origin


def _list_unattended(target: DoctorTarget) -> list[str]:
    """List the tools that ask first in unattended work; empty if no gateway reports them."""
    return list((target.facts or {}).get("unattended", ()))


def _show_unattended(target: DoctorTarget) -> None:
    """Print what unattended work cannot do alone: no fault, but good to know before BOOT.md or a schedule stops."""
    if target.configuration and (found := _list_unattended(target)):
        limit = format_duration(target.configuration.settings.tools.unattended)
        tools = to_one_line(", ".join(found))
        print_lines(f"work in the background (BOOT.md, schedules, submit) needs an approver for: {tools}", "")
        print_text(f"  after {limit} it goes on without (tools.unattended)")


def show_compatibility(home: Home, rows: list[CompatibilityRow], loads: Mapping[str, LoadResult] | None) -> None:
    """Print a line for each thing with its verdict, and each reason below it."""
    widths = [max(map(len, column)) for column in zip(*((row.what, row.name) for row in rows), strict=True)]
    for row in rows:
        named = "  ".join(to_one_line(text).ljust(width) for text, width in zip(row[:2], widths, strict=True))
        print(f"{named}  {apply_style(row.verdict, VERDICT_COLOURS[row.verdict])}")
        for why in row.why:
            print_lines(to_one_line(why, 2000), "    ")
    if not rows:
        print_text(f"{home.root} has no files of Hermes")
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICT_COLOURS}
    what = "nothing was changed or run" if loads is None else f"{len(loads)} were loaded, nothing was changed"
    counted = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    print_note(f"{counted}; {what}{describe_network(loads or {})}")
