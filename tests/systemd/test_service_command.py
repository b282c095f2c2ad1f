"""`hermes-gateway service` under a real systemd in private namespaces: of the whole machine, and of one person."""

import os
import plistlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.service.launchd import LaunchdService
from gateway.cli.service.program import check_reach, find_program
from gateway.cli.service.systemd import SystemdService
from gateway.cli.service.units import OLD_UNIT, UNIT, ServiceError, is_own_unit
from gateway.config.home import Home
from gateway.daemon.home_lock import reserve_home
from gateway.errors import ConfigError
from tests.systemd.private import (
    HOST_RUNS_SYSTEMD,
    INIT,
    PROGRAM,
    ROOT,
    System,
    comes_about,
    lay_out,
    need_systemd,
    private_system,
    shipped,
)
from tests.upgrade.programs import Program, make_wheel

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
PERSON = "/var/lib/person"


@pytest.fixture
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[System]:
    """Without a unit of ours; what is written to /etc is gone with the namespace."""
    need_systemd(request)
    units, etc = tmp_path / "units", tmp_path / "etc"
    (tmp_path / "words").touch()
    lay_out(units, tmp_path / "words")
    (units / UNIT).unlink()
    shutil.copytree("/etc", etc, symlinks=True, ignore=lambda _, names: {"systemd"} & {*names})
    (etc / "systemd" / "system").mkdir(parents=True)
    tmp_path.chmod(0o755)
    with private_system(units, tmp_path / "words", tmp_path / "console") as running:
        inside(running, "mount", "--bind", str(etc), "/etc")
        inside(running, "mount", "--bind", str(units), "/etc/systemd/system")
        yield running


def inside(system: System, *command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    entered = ["nsenter", "-t", str(system.init), "-m", "-p", "-u", "-i", "-C", *command]
    told = {"PATH": os.environ["PATH"], "HOME": "/root", **environ}
    return subprocess.run(entered, env=told, capture_output=True, text=True)


def service(system: System, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return inside(system, str(PROGRAM), "service", *words, **environ)


def test_it_is_installed_for_the_machine_seen_and_removed(system: System) -> None:
    missing = service(system, "status", "--system")
    assert (missing.returncode, "not installed" in missing.stdout) == (3, True), missing.stderr
    made = service(system, "install", "--system")
    assert made.returncode == 0, made.stderr + system.words.read_text()
    assert system.show("ActiveState") == "active"
    assert system.path(f"/etc/systemd/system/multi-user.target.wants/{UNIT}").is_symlink(), "it starts at boot"
    assert "hermes-gateway:" in system.path("/etc/passwd").read_text()
    assert system.path(f"/etc/systemd/system/{UNIT}").read_text() == shipped("system")
    again = service(system, "install", "--system")
    assert (again.returncode, "it runs" in again.stdout) == (0, True), again.stderr
    seen = service(system, "status", "--system")
    assert (seen.returncode, "active (running)" in seen.stdout) == (0, True)
    gone = service(system, "uninstall", "--system")
    assert gone.returncode == 0, gone.stderr
    assert not system.path(f"/etc/systemd/system/{UNIT}").exists()
    assert not system.path(f"/etc/systemd/system/multi-user.target.wants/{UNIT}").is_symlink()
    assert system.path("/var/lib/hermes-gateway/hermes-gateway/journal.db").exists(), "the home stays"
    assert service(system, "uninstall", "--system").returncode == 1


@pytest.fixture
def person(system: System) -> Iterator[dict[str, str]]:
    """The environment of somebody for whom a systemd of their own runs."""
    environ = {"HOME": PERSON, "XDG_RUNTIME_DIR": "/run/user/0", "HERMES_HOME": f"{PERSON}/my home"}
    inside(system, "mkdir", "-p", "-m", "700", PERSON, "/run/user/0")
    entered = ["nsenter", "-t", str(system.init), "-m", "-p", "-u", "-i", "-C", str(INIT), "--user"]
    with subprocess.Popen(
        entered,
        env={"PATH": os.environ["PATH"], **environ, "GATEWAY_WEB_LISTEN": "127.0.0.1:0"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as manager:
        assert comes_about(
            lambda: inside(system, "systemctl", "--user", "is-system-running", **environ).stdout.strip() == "running"
        )
        yield environ
        manager.kill()


def test_it_is_installed_for_a_person_with_their_home(system: System, person: dict[str, str]) -> None:
    made = service(system, "install", **person, OPENAI_API_KEY="here alone")
    assert made.returncode == 0, made.stderr + made.stdout
    assert "OPENAI_API_KEY is set in this shell alone" in made.stderr
    assert "it ends when you log out, until you run: loginctl enable-linger" in made.stdout, "nobody can linger here"
    unit = system.path(f"{PERSON}/.config/systemd/user/{UNIT}").read_text()
    assert f"ExecStart={PROGRAM} run\n" in unit
    status = inside(system, str(PROGRAM), "status", "--json", **person)
    assert f'"home": "{PERSON}/my home"' in status.stdout, status.stderr
    seen = service(system, "status", **person)
    assert (seen.returncode, "active (running)" in seen.stdout) == (0, True)
    gone = service(system, "uninstall", **person)
    assert gone.returncode == 0, gone.stderr
    assert inside(system, str(PROGRAM), "status", **person).returncode == 3


def test_what_somebody_changed_of_it_counts_is_named_and_stays(system: System, person: dict[str, str]) -> None:
    changes = system.path(f"{PERSON}/.config/systemd/user/{UNIT}.d/override.conf")
    changes.parent.mkdir(parents=True)
    changes.write_text(f"[Service]\nEnvironment=HERMES_HOME={PERSON}/other\n")
    named = f"{PERSON}/.config/systemd/user/{UNIT}.d/override.conf"
    made = service(system, "install", **person)
    assert f"what you changed counts over it: {named}" in made.stdout, made.stderr + made.stdout
    assert named in service(system, "status", **person).stdout
    told = inside(system, str(PROGRAM), "uninstall", **{**person, "HERMES_HOME": f"{PERSON}/other"})
    assert f"{UNIT} goes" in told.stdout, "it serves that home"
    assert "this home has none" in inside(system, str(PROGRAM), "uninstall", **person).stdout
    gone = service(system, "uninstall", **person)
    assert f"what you changed of it stays, and counts again when it is installed: {named}" in gone.stdout
    assert changes.exists()


def test_its_words_come_from_its_own_log_where_systemd_keeps_none(system: System, person: dict[str, str]) -> None:
    nothing = service(system, "logs", **person)
    assert (nothing.returncode, "not found" in nothing.stderr) == (1, True), nothing.stderr
    assert service(system, "install", **person).returncode == 0
    said = service(system, "logs", "-n", "400", **person)
    assert (said.returncode, "hermes-gateway" in said.stdout, f"serves {PERSON}/my home" in said.stdout) == (
        0,
        True,
        True,
    )


def test_an_upgrade_has_the_service_run_the_new_program(system: System, person: dict[str, str], tmp_path: Path) -> None:
    program, newer = Program(tmp_path, make_wheel(tmp_path, "0.1.0")), make_wheel(tmp_path, "0.2.0")
    words = {**person, **program.environ}
    made = inside(system, str(program.path), "service", "install", **words)
    assert made.returncode == 0, made.stderr + made.stdout
    done = inside(system, str(program.path), "upgrade", "--yes", "--from", str(newer), **words)
    assert (done.returncode, "it runs, as a service" in done.stdout) == (0, True), done.stderr + done.stdout
    assert '"version": "0.2.0"' in inside(system, str(program.path), "status", "--json", **words).stdout
    assert "active (running)" in inside(system, str(program.path), "service", "status", **words).stdout
    gone = inside(system, str(program.path), "uninstall", "--yes", **words)
    assert gone.returncode == 0, gone.stderr
    assert not system.path(f"{PERSON}/.config/systemd/user/{UNIT}").exists()
    assert not program.path.exists()


def test_one_that_was_started_by_hand_is_in_the_way_and_named(system: System, person: dict[str, str]) -> None:
    entered = ["nsenter", "-t", str(system.init), "-m", "-p", "-u", "-i", "-C", str(PROGRAM), "run"]
    environ = {"PATH": os.environ["PATH"], **person, "GATEWAY_WEB_LISTEN": "127.0.0.1:0"}
    with subprocess.Popen(entered, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as by_hand:
        assert comes_about(lambda: inside(system, str(PROGRAM), "status", **person).returncode == 0)
        refused = service(system, "install", **person)
        by_hand.kill()
    assert (refused.returncode, "hermes-gateway stop" in refused.stderr) == (1, True)
    assert not system.path(f"{PERSON}/.config/systemd/user/{UNIT}").exists()


def test_a_start_that_fails_says_so_and_where_to_look(system: System, person: dict[str, str]) -> None:
    config = system.path(f"{PERSON}/my home/hermes-gateway/config.yaml")
    config.parent.mkdir(parents=True, mode=0o700)
    config.parent.parent.chmod(0o700)
    config.write_text("gateway: [this is not a mapping")
    failed = service(system, "install", **person)
    assert (failed.returncode, "hermes-gateway service logs" in failed.stderr) == (1, True), failed.stderr
    assert service(system, "status", **person).returncode == 3


HERMES_UNIT = """[Unit]
Description=Hermes Agent Gateway - Messaging Platform Integration
DefaultDependencies=no
[Service]
ExecStart=/bin/sh -c "exec sleep 1000" -m hermes_cli.main gateway run
[Install]
WantedBy=default.target
"""


@pytest.mark.parametrize("of_machine", [True, False], ids=["machine", "person"])
def test_hermes_own_unit_is_neither_written_over_nor_removed(
    system: System, person: dict[str, str], of_machine: bool
) -> None:
    folder, words = ("/etc/systemd/system", ["--system"]) if of_machine else (f"{PERSON}/.config/systemd/user", [])
    manager = ["systemctl", *([] if of_machine else ["--user"])]
    theirs, ours = system.path(f"{folder}/{OLD_UNIT}"), system.path(f"{folder}/{UNIT}")
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text(HERMES_UNIT)
    inside(system, *manager, "daemon-reload", **person)
    inside(system, *manager, "start", OLD_UNIT, **person)
    made = service(system, "install", *words, **person)
    assert (made.returncode, is_own_unit(ours)) == (0, True), made.stderr + made.stdout
    told = inside(system, str(PROGRAM), "doctor", "--hermes", **person)
    assert "it runs; where both have the token of one bot" in told.stdout, told.stderr
    assert f"disable --now {OLD_UNIT.removesuffix('.service')}" in told.stdout
    assert service(system, "uninstall", *words, **person).returncode == 0
    assert service(system, "uninstall", *words, **person).returncode == 1, "the other one is not ours"
    assert (theirs.read_text(), ours.exists()) == (HERMES_UNIT, False)
    assert inside(system, *manager, "is-active", OLD_UNIT, **person).stdout.strip() == "active"
    ours.write_text(HERMES_UNIT)
    refused = service(system, "install", *words, **person)
    assert (refused.returncode, "was not written by hermes-gateway" in refused.stderr) == (1, True)
    assert ours.read_text() == HERMES_UNIT


def test_a_unit_of_ours_under_the_older_name_is_moved_with_what_was_changed_of_it(
    system: System, person: dict[str, str]
) -> None:
    assert service(system, "install", **person).returncode == 0
    folder = system.path(f"{PERSON}/.config/systemd/user")
    inside(system, "systemctl", "--user", "disable", "--now", UNIT, **person)
    (folder / UNIT).rename(folder / OLD_UNIT)
    (folder / f"{OLD_UNIT}.d").mkdir()
    (folder / f"{OLD_UNIT}.d" / "override.conf").write_text("[Service]\nEnvironment=KEPT=1\n")
    inside(system, "systemctl", "--user", "daemon-reload", **person)
    inside(system, "systemctl", "--user", "enable", "--now", OLD_UNIT, **person)
    seen = service(system, "status", **person)
    assert (seen.returncode, "service install" in seen.stdout) == (0, True), "it is served still, and says what helps"
    moved = service(system, "install", **person)
    assert (moved.returncode, "a name that Hermes uses too" in moved.stdout) == (0, True), moved.stderr
    assert not any((folder / name).exists() for name in (OLD_UNIT, f"{OLD_UNIT}.d"))
    assert not (folder / "default.target.wants" / OLD_UNIT).is_symlink()
    assert inside(system, "systemctl", "--user", "show", UNIT, "-p", "Environment", **person).stdout.count("KEPT=1")
    assert "active (running)" in service(system, "status", **person).stdout


def test_without_a_systemd_it_says_what_helps(tmp_path: Path) -> None:
    """A gateway that runs is in nobody's way, and need not be stopped."""
    other = "does not answer" if HOST_RUNS_SYSTEMD else "was not started by systemd"
    home = Home(tmp_path / ".hermes")
    home.own_folder.mkdir(parents=True)
    with reserve_home(home.lock, 0):
        check_refusals(tmp_path, other)


def check_refusals(tmp_path: Path, other: str) -> None:
    for path, complaint in ((str(tmp_path), "this machine has no systemd"), (os.environ["PATH"], other)):
        environ = {"PATH": path, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
        for words in (["install"], ["uninstall"], ["install", "--system"]):
            command = [str(PROGRAM), "service", *words]
            done = subprocess.run(command, env=environ, capture_output=True, text=True)
            assert (done.returncode, complaint in done.stderr, "\\n" in done.stderr) == (1, True, False), done.stderr
            assert HOST_RUNS_SYSTEMD or done.stderr.splitlines()[1].endswith("hermes-gateway run")
        if not HOST_RUNS_SYSTEMD:
            told = subprocess.run([str(PROGRAM), "service", "status"], env=environ, capture_output=True, text=True)
            assert (told.returncode, complaint in told.stdout) == (3, True), told.stdout
        assert not (tmp_path / ".config").exists()


def test_without_a_systemd_its_words_come_from_its_own_log(tmp_path: Path) -> None:
    (tmp_path / "tail").symlink_to(shutil.which("tail") or "/usr/bin/tail")
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    log = Home(tmp_path / ".hermes").log
    command = [str(PROGRAM), "service", "logs", "-n", "1"]
    none = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert (none.returncode, f"{log} not found" in none.stderr) == (1, True)
    log.parent.mkdir(parents=True)
    log.write_text("first\nlast\n")
    assert subprocess.run(command, env=environ, capture_output=True, text=True).stdout == "last\n"


def test_the_program_that_stays_is_named(tmp_path: Path) -> None:
    """`uv tool` and pipx keep a link to the program, which outlives the environment that it leads to."""
    environment, path = tmp_path / "environment", tmp_path / "bin"
    for folder in (environment, path):
        folder.mkdir()
    (environment / "hermes-gateway").write_text("#!/bin/sh\n")
    (environment / "hermes-gateway").chmod(0o755)
    python = str(environment / "python")
    assert find_program({"PATH": str(path)}, "anything", python) == environment / "hermes-gateway"
    (path / "hermes-gateway").symlink_to(environment / "hermes-gateway")
    assert find_program({"PATH": str(path)}, "anything", python) == path / "hermes-gateway"
    with pytest.raises(ConfigError, match=r"program .* not found"):
        find_program({"PATH": str(path)}, "/x/__main__.py", str(tmp_path / "python"))
    environment.chmod(0o700)
    with pytest.raises(ConfigError, match="is closed for others"):
        check_reach(path / "hermes-gateway", "hermes-gateway")


@pytest.mark.parametrize("home", ["/home/ann/.hermes", '/home/ann/a "home" of 100%'])
def test_a_unit_holds_any_path(home: str, tmp_path: Path) -> None:
    text = SystemdService(Home(Path(home)), {"HOME": "/home/ann"}, is_system=False).render(
        Path("/opt/my tools/hermes-gateway")
    )
    assert 'ExecStart="/opt/my tools/hermes-gateway" run\n' in text
    said = re.findall("^Environment=(.*)$", text, re.MULTILINE)
    assert said == ([] if home.endswith(".hermes") else ['"HERMES_HOME=/home/ann/a \\"home\\" of 100%%"'])
    (tmp_path / UNIT).write_text(text.replace('"/opt/my tools/hermes-gateway"', str(PROGRAM)))
    if analyze := shutil.which("systemd-analyze"):
        told = {"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
        done = subprocess.run(
            [analyze, "--user", "verify", str(tmp_path / UNIT)], env=told, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_the_agent_for_macos_starts_the_same_home_and_stays_down_when_it_was_stopped(tmp_path: Path) -> None:
    service = LaunchdService(Home(tmp_path / "home"), {"HOME": "/Users/ann", "PATH": "/opt/bin:/bin"})
    said = plistlib.loads(service.render(Path("/opt/bin/hermes-gateway")))
    assert said["ProgramArguments"] == ["/opt/bin/hermes-gateway", "--home", str(tmp_path / "home"), "run"]
    assert (said["RunAtLoad"], said["KeepAlive"], said["Umask"]) == (True, {"SuccessfulExit": False}, 0o077)
    assert said["EnvironmentVariables"] == {"PATH": "/opt/bin:/bin"}
    assert service.unit == Path("/Users/ann/Library/LaunchAgents/chat-gateway.plist")
    assert service.describe()["service"].startswith("not installed")


def test_an_agent_of_another_program_stays_and_ours_is_known_under_both_names(tmp_path: Path) -> None:
    service = LaunchdService(Home(tmp_path / "home"), {"HOME": str(tmp_path)})
    service.unit.parent.mkdir(parents=True)
    older = service.unit.with_name("hermes-gateway.plist")
    older.write_bytes(service.render(Path("/opt/bin/hermes-gateway")).replace(b"chat-gateway", b"hermes-gateway"))
    assert (service.unit, service.is_installed_for_home()) == (older, True)
    older.write_bytes(plistlib.dumps({"Label": "hermes-gateway", "ProgramArguments": ["hermes", "gateway", "run"]}))
    assert not service.unit.exists()
    theirs = service.unit
    theirs.write_bytes(older.read_bytes())
    for change in (service.install(Path("/opt/bin/hermes-gateway")), service.uninstall()):
        with pytest.raises(ServiceError, match="was not written by hermes-gateway"):
            list(change)
    assert theirs.read_bytes() == older.read_bytes()


def test_the_units_of_the_package_are_those_of_the_folder() -> None:
    for kind in ("system", "user"):
        packed = ROOT / "gateway" / "cli" / "service" / f"{kind}.service"
        assert packed.read_bytes() == (ROOT / "systemd" / kind / UNIT).read_bytes()
