"""`hermes-gateway upgrade` with interruptions, on a disk without room, beside other homes: one gateway runs."""

import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.upgrade.plan import find_other_place, read_plan
from tests.upgrade.conftest import InstalledGateway
from tests.upgrade.programs import Program

pytestmark = [pytest.mark.process, pytest.mark.timeout(600), pytest.mark.thorough]
SUM, ANSWER = "what is 6 * 7", "The result is 42."


def is_clean(gateway: InstalledGateway) -> bool:
    return not find_other_place(gateway.program.prefix).exists() and read_plan(gateway.home) is None


def is_trying(gateway: InstalledGateway) -> bool:
    """Whether the new program is in place, or about to be."""
    plan = read_plan(gateway.home)
    return plan is not None and plan.state == "trying"


@pytest.mark.parametrize(
    ("cut", "version"),
    [
        ("shutil.copytree .upgrade 3 SIGINT", "0.1.0"),  # while it is put beside the old one
        ("os.kill 15 1 SIGINT", "0.1.0"),  # before it is stopped
        ("tempfile.mkdtemp .work- 1 SIGTERM", "0.1.0"),  # before it is copied
        ("open started.log 1 SIGINT", "0.2.0"),  # in place, and not started yet
        ("os.remove upgrade/plan.json 1 SIGHUP", "0.2.0"),  # at its end
    ],
)
def test_an_interruption_leaves_a_gateway_that_runs(
    gateway: InstalledGateway, wheels: dict[str, Path], cut: str, version: str
) -> None:
    done = gateway.upgrade(wheels["0.2.0"], cut)
    if version == "0.1.0":
        assert done.returncode == 1
        assert f"nothing was changed: it was interrupted by {cut.split()[-1]}" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
    assert (gateway.version, gateway.is_pigeon_up(), is_clean(gateway)) == (version, True, True)
    gateway.write(1, SUM)
    gateway.wait_for_letters(ANSWER)


def test_a_terminal_that_closes_leaves_a_gateway_that_runs_and_a_word_of_it(
    gateway: InstalledGateway, wheels: dict[str, Path]
) -> None:
    words = [str(gateway.program.path), "upgrade", "--yes", "--from", str(wheels["0.4.0"])]
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(words[0], words, gateway.environ)
    gateway.until(lambda: is_trying(gateway), 120)
    os.close(terminal)
    ended = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(ended) == 1
    assert (gateway.version, gateway.is_pigeon_up(), is_clean(gateway)) == ("0.1.0", True, True)
    said = (gateway.home.logs / "upgrade.log").read_text()
    assert "0.1.0 is in place again, with the home as it was, and runs" in said


def test_that_nobody_reads_what_it_says_ends_nothing(gateway: InstalledGateway, wheels: dict[str, Path]) -> None:
    upgrading = gateway.spawn("upgrade", "--yes", "--from", str(wheels["0.2.0"]))
    gateway.until(lambda: read_plan(gateway.home) is not None, 120)
    assert upgrading.stdout
    assert upgrading.stderr
    upgrading.stdout.close()
    upgrading.stderr.close()
    upgrading.wait()
    assert (gateway.version, gateway.is_pigeon_up(), is_clean(gateway)) == ("0.2.0", True, True)


def test_without_room_it_is_not_stopped(gateway: InstalledGateway, wheels: dict[str, Path]) -> None:
    before = gateway.pid
    gateway.home.files.mkdir(exist_ok=True)
    with (gateway.home.files / "large").open("wb") as file:
        file.truncate(1 << 43)
    done = gateway.upgrade(wheels["0.2.0"])
    assert done.returncode == 1
    assert "16777" in done.stderr.split(" MB are needed")[0], "twice eight million MB, and more"
    assert " MB are free" in done.stderr
    assert (gateway.pid, gateway.version, is_clean(gateway)) == (before, "0.1.0", True)
    assert not gateway.home.backups.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"only root can mount a small disk: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.machine
def test_a_disk_that_fills_up_meanwhile_leaves_the_old_one_that_runs(
    small_disk: Path, tmp_path: Path, wheels: dict[str, Path]
) -> None:
    with InstalledGateway(small_disk, Program(tmp_path, wheels["0.1.0"])) as gateway:
        gateway.start()
        gateway.until(gateway.is_pigeon_up)
        gateway.write(1, SUM)
        gateway.wait_for_letters(ANSWER)
        gateway.home.files.mkdir(exist_ok=True)
        (gateway.home.files / "picture").write_bytes(os.urandom(8 << 20))
        upgrading = gateway.spawn("upgrade", "--yes", "--from", str(wheels["0.2.0"]))
        gateway.until(lambda: read_plan(gateway.home) is not None, 120)
        with (small_disk / "ballast").open("wb") as ballast:
            free = os.statvfs(small_disk)
            os.posix_fallocate(ballast.fileno(), 0, free.f_bavail * free.f_frsize - (1 << 20))
        _, said = upgrading.communicate()
        assert upgrading.returncode == 1
        assert "nothing was changed" in said
        assert "No space left" in said or "no room" in said, said
        assert (gateway.version, is_clean(gateway)) == ("0.1.0", True)
        (small_disk / "ballast").unlink()
        gateway.until(gateway.is_pigeon_up, 60)
        gateway.write(2, "what is 6 * 8")
        gateway.wait_for_letters(ANSWER, "The result is 48.")


def test_what_runs_on_other_homes_is_named_and_one_upgrade_of_a_program_is_made_at_a_time(
    gateway: InstalledGateway, wheels: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "second").mkdir()
    with InstalledGateway(tmp_path / "second", gateway.program) as second:
        second.start()
        first_cut = gateway.upgrade(wheels["0.2.0"], "open started.log 1")
        assert first_cut.returncode == -9
        assert f"the gateway of {second.home.root} (pid {second.pid})" in first_cut.stdout
        refused = second.upgrade(wheels["0.3.0"])
        assert refused.returncode == 1
        assert f" --home {gateway.home.root} upgrade" in refused.stderr
        assert find_other_place(gateway.program.prefix).exists(), "the way back is still there"

        ended = gateway.cli("upgrade", "--yes")
        assert "0.1.0 -> 0.2.0: it runs" in ended.stdout
        assert f"still runs here: the gateway of {second.home.root}" in ended.stderr
        assert (gateway.version, second.version, is_clean(gateway)) == ("0.2.0", "0.1.0", True)

        busy = gateway.spawn("upgrade", "--yes", "--from", str(wheels["0.3.0"]))
        second.until(lambda: find_other_place(gateway.program.prefix).exists(), 120)
        late = second.upgrade(wheels["0.3.0"])
        assert (late.returncode, "is under way at this moment" in late.stderr) == (1, True), late.stderr
        busy.communicate()
        assert (gateway.version, second.pid != 0) == ("0.2.0", True)


@pytest.mark.parametrize("cut", ["", "os.rename upgrade/plan.json 2 SIGSTOP"])
def test_one_that_had_waited_for_the_home_serves_it_as_the_new_program(
    gateway: InstalledGateway, wheels: dict[str, Path], cut: str
) -> None:
    """It was started as the old program, before the upgrade or in the midst of it."""
    waiting = gateway.spawn("run", environ={"GATEWAY_SHUTDOWN_TIMEOUT": "300"}) if not cut else None
    upgrading = gateway.spawn("upgrade", "--yes", "--from", str(wheels["0.2.0"]), environ={"UPGRADE_CUT": cut})
    if waiting is None:
        gateway.until(lambda: is_stopped(upgrading.pid), 120)
        waiting = gateway.spawn("run", environ={"GATEWAY_SHUTDOWN_TIMEOUT": "300"})
        gateway.until(lambda: waits_for_home(gateway, waiting.pid), 60)
        os.kill(upgrading.pid, signal.SIGCONT)
    said, wrong = upgrading.communicate()
    assert upgrading.returncode == 0, wrong
    assert "0.1.0 -> 0.2.0: it runs" in said
    assert (gateway.version, gateway.is_pigeon_up(), is_clean(gateway)) == ("0.2.0", True, True)
    waiting.kill()
    waiting.communicate()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def waits_for_home(gateway: InstalledGateway, pid: int) -> bool:
    try:
        return any(link.readlink() == gateway.home.lock for link in Path(f"/proc/{pid}/fd").iterdir())
    except FileNotFoundError:  # one was closed meanwhile
        return False
