"""`hermes-gateway upgrade`: replace this version by another one, or return to this one if that fails.

The steps are in this order, and a crash may follow any of them: it says what changes and asks; puts the new program
beside the old one; stops the gateway; copies the home, and the journal that NATS servers keep; exchanges the two
programs; starts the new one, which checks itself before it accepts, sends or runs anything. Another run of the command,
or a start of the gateway, continues from there. All code is loaded before the programs are exchanged: this process
belongs to the old one.
"""

import argparse
import os
import shlex
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from gateway import __version__
from gateway.adapters.shared.folder import load_settings_schema
from gateway.backup.archive import write_archive
from gateway.backup.backup_folder import STAMP, open_backup_folder
from gateway.backup.contents import ENV
from gateway.backup.shared_journal import JournalServers, find_servers, load_shared_journal
from gateway.cli.output import ask_person, print_note, print_text, show_fields, show_progress
from gateway.cli.program import PROGRAM
from gateway.cli.service.systemd import SystemdService
from gateway.cli.service.units import ServiceError
from gateway.cli.upgrade.ending_signals import EndingSignals, keep_signals, say
from gateway.cli.upgrade.running_gateway import RunningGateway, ServedFacts
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.daemon.platforms import list_enabled
from gateway.engine.sqlite.journal_file import sync
from gateway.errors import ExitCode, GatewayError
from gateway.installation import PACKAGE, Installation, find_installation
from gateway.upgrade.environment import (
    check_place,
    describe_owner,
    exchange_folders,
    make_environment,
    make_install_command,
    move_scripts,
    run_installer,
)
from gateway.upgrade.plan import (
    MARK,
    UpgradeError,
    UpgradePlan,
    close_plan,
    find_other_place,
    read_plan,
    steer_upgrade,
    write_mark,
    write_plan,
)
from gateway.upgrade.program import find_requirement, list_trial_options, parse_changes, read_version
from gateway.upgrade.program_users import check_other_upgrades, list_other_gateways, lock_program
from gateway.upgrade.room import check_room
from gateway.upgrade.start import find_new_records
from gateway.upgrade.undo import undo_upgrade

UP_PATIENCE = 60.0
MOST_NAMED = 12  # packages


@dataclass(frozen=True, slots=True)
class NewProgram:
    """The program to install, and the packages that change with it, by the installer's report."""

    requirement: str
    changes: Mapping[str, str]

    @property
    def version(self) -> str:
        return self.changes.get(PACKAGE, "")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="source",
        default="",
        metavar="WHERE",
        help="a wheel, a folder or git+https://... (default: where this version came from)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, home: Home) -> int | None:
    installation = find_installation(Path(sys.prefix), Path(sys.base_prefix))
    environ = get_process_environment()
    check_owner(home, installation)
    with steer_upgrade(home), lock_program(installation.prefix):
        gateway, plan = RunningGateway(home, environ), read_plan(home)
        gateway.check_caller()
        check_service(home, installation, gateway)
        check_other_upgrades(home, installation.prefix)
        if plan and plan.has_new():
            with keep_signals(home):
                return try_program(home, gateway, plan)
        if plan:
            print_note(f"an upgrade to {plan.after} was cut off before it counted: this is {plan.before} still")
        check_place(installation)
        new = find_program(installation, args.source, environ)
        if new:
            describe_upgrade(home, installation, gateway, new)
        if new is None or not ask_person(f"Upgrade to {new.version}?", args.yes):
            resume_gateway(home, gateway, plan)
            return None
        check_networks(home, gateway, environ)
        servers = find_servers(load_configuration(load_settings_schema(), home, environ))
        check_room(home, installation.prefix, with_program=True)
        beside = prepare_program(home, installation, new, environ)
        with keep_signals(home) as signals:
            try:
                check_room(home, installation.prefix, with_program=False)
                plan = make_plan(home, installation, gateway, new.version, plan)
                write_mark(beside, plan.name, home)
            except (OSError, UpgradeError):
                shutil.rmtree(beside, ignore_errors=True)
                raise
            exchange_programs(home, gateway, plan, signals, servers)
            return try_program(home, gateway, plan)


def check_owner(home: Home, installation: Installation) -> None:
    """Raise UpgradeError if our files would not belong to the home's owner, who could then not go on with it."""
    if home.own_folder.is_dir() and home.own_folder.stat().st_uid != os.geteuid():
        owner = describe_owner(home.own_folder)
        raise UpgradeError(f"{home.root} belongs to {owner}\n{describe_steps(home, installation)}")


def check_service(home: Home, installation: Installation, gateway: RunningGateway) -> None:
    """Raise UpgradeError if only root can stop the gateway's service, and start it again."""
    if isinstance(gateway.service, SystemdService) and gateway.service.is_beyond_us:
        what = "the gateway is a service of the whole machine, which root alone stops and starts"
        raise UpgradeError(f"{what}\n{describe_steps(home, installation)}")


def describe_steps(home: Home, installation: Installation) -> str:
    """Describe the commands for the people who may run them: the home's owner, root, and the program's owner."""
    owner, place = describe_owner(home.own_folder), shlex.quote(str(home.root))
    ours = f"sudo -u {owner} HERMES_HOME={place} {installation.prefix / 'bin' / PROGRAM}"
    machine = SystemdService(home, {}, is_system=True)
    is_service = machine.is_installed and machine.find_home() == home.root
    stop, start = (f"systemctl {verb} {machine.unit.stem}" if is_service else "" for verb in ("stop", "start"))
    return (
        f"copy it: {ours} backup create\n"
        f"stop it: {f'sudo {stop}' if stop else f'{ours} stop'}\n"
        f"as {describe_owner(installation.prefix)}: {installation.describe_upgrade()}\n"
        f"start it: {f'sudo {start}' if start else f'{ours} run'}"
    )


def find_program(installation: Installation, source: str, environ: Mapping[str, str]) -> NewProgram | None:
    """Find a newer program; None if the newest is installed. Raises UpgradeError if it is not available."""
    requirement = find_requirement(source, distribution(PACKAGE), Path.cwd())
    command = make_install_command(installation, installation.python, environ)
    with show_progress("looking for it"):
        said = run_installer([*command, *list_trial_options(command), requirement], environ, installation.prefix)
        changes = parse_changes(said)
        if changes.get(PACKAGE) == "":
            with tempfile.TemporaryDirectory() as folder:
                run_installer([*command, "--no-deps", "--target", folder, requirement], environ, installation.prefix)
                changes[PACKAGE] = read_version(Path(folder))
    new = NewProgram(requirement, changes)
    if not new.version or (new.version == __version__ and "@" not in requirement):
        print_text(f"{PACKAGE} {__version__} is the newest that there is")
        return None
    return new


def describe_upgrade(home: Home, installation: Installation, gateway: RunningGateway, new: NewProgram) -> None:
    others = sorted(f"{name} {version}" for name, version in new.changes.items() if name != PACKAGE)
    more = f" and {len(others) - MOST_NAMED} more" if len(others) > MOST_NAMED else ""
    shared = describe_other_gateways(home, installation.prefix)
    show_fields(
        [
            ("version", f"{__version__} -> {new.version}"),
            ("from", new.requirement),
            ("with it", ", ".join(others[:MOST_NAMED]) + more if others else "nothing else changes"),
            ("program", f"{installation.prefix} ({installation.way})"),
            ("gateway", gateway.describe() + ("; it is stopped, and the new one starts" if gateway.pid else "")),
            ("home", f"{home.root}, which is copied first"),
        ]
        + [("also run by", f"{shared}; restart it after this")] * bool(shared)
    )


def describe_other_gateways(home: Home, prefix: Path) -> str:
    """Describe other gateways of this program; "": none runs, or the system does not show them."""
    return ", ".join(map(str, list_other_gateways(home, prefix)))


def check_networks(home: Home, gateway: RunningGateway, environ: Mapping[str, str]) -> None:
    """Raise UpgradeError if a gateway that we start would lack a token from the shell of its first start."""
    if not gateway.pid or gateway.service:
        return
    settings = load_configuration(load_settings_schema(), home, environ).settings
    enabled = {one.name for one in list_enabled(settings.platforms)}
    if lost := [name for name in gateway.read_facts().platforms if name not in enabled]:
        raise UpgradeError(
            f"{', '.join(lost)}: the gateway was started with a token that this shell does not have\n"
            f"write it into {home.env}, or run this where it is set; nothing was changed"
        )


def prepare_program(home: Home, installation: Installation, new: NewProgram, environ: Mapping[str, str]) -> Path:
    """Install the new program beside the old one, which keeps running.

    Raises UpgradeError if it cannot be installed, or refuses this home.
    """
    beside = find_other_place(installation.prefix)
    python = beside / "bin" / "python"
    try:
        with show_progress("putting the new program beside this one"):
            make_environment(installation.prefix, beside)
            command = make_install_command(installation, python, environ)
            run_installer([*command, new.requirement], environ, installation.prefix)
            move_scripts(beside, installation.prefix)
            for words in (["--version"], ["--home", str(home.root), "config", "check"]):
                run_installer([str(python), "-P", "-m", "gateway.cli", *words], environ, installation.prefix)
    except (OSError, UpgradeError):
        shutil.rmtree(beside, ignore_errors=True)
        raise
    except KeyboardInterrupt:
        shutil.rmtree(beside, ignore_errors=True)
        raise UpgradeError("nothing was changed: it was interrupted by SIGINT") from None
    return beside


def make_plan(
    home: Home, installation: Installation, gateway: RunningGateway, version: str, former: UpgradePlan | None
) -> UpgradePlan:
    """Make the plan, with the parts that are up now, or were up when an earlier upgrade was cut off."""
    facts = gateway.read_facts()
    was_up = former is not None and former.was_running and not gateway.pid
    plan = UpgradePlan(
        uuid.uuid4().hex,
        __version__,
        version,
        str(installation.prefix),
        str(find_other_place(installation.prefix)),
        was_up or bool(gateway.pid),
        former.platforms if former and was_up else facts.platforms,
        former.hooks if former and was_up else facts.hooks,
    )
    (installation.prefix / MARK).unlink(missing_ok=True)  # of an upgrade whose very last step was cut off
    sync(installation.prefix)
    write_plan(home, plan)
    return plan


def exchange_programs(
    home: Home, gateway: RunningGateway, plan: UpgradePlan, signals: EndingSignals, servers: JournalServers | None
) -> None:
    """Stop the gateway and exchange the programs; until one starts, nothing is accepted.

    Raises UpgradeError if the programs were not exchanged.
    """
    try:
        signals.check()
        with show_progress("the gateway to end what it has begun"), gateway.keep_stopped():
            signals.check()
            backup, last_seq = create_copy(home, servers)
            signals.check()
            plan.enter(home, "trying", backup, last_seq)
            exchange_folders(Path(plan.prefix), Path(plan.beside))
    except (GatewayError, OSError) as error:
        if plan.has_new():  # the new one is in place, and the next start tries it
            raise
        resume_gateway(home, gateway, plan)
        raise UpgradeError(f"nothing was changed: {error}") from error


def create_copy(home: Home, servers: JournalServers | None) -> tuple[str, int]:
    """Copy the home; return the copy's path and the last record in its journal. A home without a journal needs no copy.

    A journal on NATS servers is copied to a separate file: other gateways work on it, so the way back must not reset
    it.
    """
    if not servers and not home.journal.exists():
        return "", 0
    with open_backup_folder(home.backups) as folder:
        if servers:
            shared = folder / time.strftime(f"upgrade-{STAMP}.db")
            load_shared_journal(servers).create_backup(shared)
            say(f"the journal of the NATS servers copied to {shared}")
        made = write_archive(home, folder / time.strftime(f"upgrade-{STAMP}.tar.gz"), with_env=False)
    say(f"copied to {made.path}")
    for name, why in made.left_out.items():
        if name != ENV:  # no upgrade changes it
            say(f"left out: {name}: {why}")
    return str(made.path), made.journal.last_seq if made.journal else 0


def try_program(home: Home, gateway: RunningGateway, plan: UpgradePlan) -> int:
    """Start the new program, which is in place, and check that it works."""
    plan = read_plan(home) or plan
    if plan.state == "returning":
        undo_unused_upgrade(home, gateway, plan)
        return restore_program(gateway, plan, ["it was on the way back when that was cut off"])
    if not plan.was_running and not gateway.pid:
        print_text(f"{plan.after} is in place; no gateway ran, so it is tried when you start one: hermes-gateway run")
        return ExitCode.OK
    wrong = run_program(gateway, plan, plan.after)
    if not wrong:
        close_plan(home, plan)
        print_text(f"hermes-gateway {plan.before} -> {plan.after}: it runs, and what was up before is up")
        if shared := describe_other_gateways(home, Path(plan.prefix)):
            say(f"the former program is gone, and still runs here: {shared}; copy that home, and restart it")
        return ExitCode.OK
    try:
        deeds = undo_unused_upgrade(home, gateway, plan)
    except (UpgradeError, OSError) as error:
        raise UpgradeError(
            f"{plan.after} did not work: {'; '.join(wrong)}; and {error}\n"
            f"{retry_program(home, gateway, plan)}; when that is mended, run: hermes-gateway upgrade"
        ) from error
    if deeds:
        return keep_program(home, gateway, plan, wrong, deeds)
    return restore_program(gateway, plan, wrong)


def run_program(gateway: RunningGateway, plan: UpgradePlan, version: str) -> list[str]:
    """Start a program; return its faults once they are known, or none if all earlier parts are up."""
    try:
        with show_progress(f"{version} to start"):
            if not gateway.pid:
                gateway.start(Path(plan.prefix) / "bin" / PROGRAM)
            return gateway.wait_until_up(version, ServedFacts(platforms=plan.platforms, hooks=plan.hooks), UP_PATIENCE)
    except ServiceError as error:
        return [str(error)]


def undo_unused_upgrade(home: Home, gateway: RunningGateway, plan: UpgradePlan) -> str:
    """Go back if nothing is lost by it; return why not: the records that were written since."""
    is_known = plan.state == "returning"  # that no such record exists
    if not is_known and (deeds := find_new_records(home, plan)):
        return deeds
    with gateway.keep_stopped():
        deeds = "" if is_known else find_new_records(home, plan)
        if not deeds:
            undo_upgrade(home, plan)
        return deeds


def retry_program(home: Home, gateway: RunningGateway, plan: UpgradePlan) -> str:
    """Start the new program once more after a failed way back: it may work in part, if the home is unchanged."""
    if (read_plan(home) or plan).state == "returning":
        return "no gateway runs, since the home is halfway back"
    wrong = run_program(gateway, plan, plan.after)
    in_vain = f", in vain: {'; '.join(wrong)}" if wrong and not gateway.pid else ""
    return f"{plan.after} was started once more{in_vain}"


def keep_program(home: Home, gateway: RunningGateway, plan: UpgradePlan, wrong: Sequence[str], deeds: str) -> int:
    """Keep the new program: going back would lose records."""
    if not gateway.pid:
        wrong = run_program(gateway, plan, plan.after) or wrong
    close_plan(home, plan)
    say(f"{plan.after} stays, though not all is well: {'; '.join(wrong)}")
    say(f"it has been at work already ({deeds}), and going back would lose that")
    say(f"the home as it was before: {plan.backup}")
    return ExitCode.FAILED


def restore_program(gateway: RunningGateway, plan: UpgradePlan, wrong: Sequence[str]) -> int:
    say(f"{plan.after} did not work: {'; '.join(wrong)}")
    failed = run_program(gateway, plan, plan.before) if plan.was_running else []
    state = f"and does not run as before: {'; '.join(failed)}" if failed else "and runs" if plan.was_running else ""
    say(f"{plan.before} is in place again, with the home as it was, {state}".rstrip(", "))
    return ExitCode.FAILED


def resume_gateway(home: Home, gateway: RunningGateway, plan: UpgradePlan | None) -> None:
    """Keep the present program, and start it if it ran before."""
    if plan is None:
        return
    close_plan(home, plan)
    if plan.was_running and not gateway.pid:
        failed = run_program(gateway, plan, plan.before)
        say(f"{plan.before} runs again" + (f", not as before: {'; '.join(failed)}" if failed else ""))
