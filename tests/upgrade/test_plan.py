"""The plan of an interrupted upgrade: the program in place, the parts to restore, and the next start."""

import fcntl
import json
import socket
import subprocess
import sys
import tarfile
from importlib import import_module
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from gateway.backup.archive import write_archive
from gateway.backup.shared_journal import JournalServers
from gateway.cli.upgrade import create_copy
from gateway.cluster.nats.engine import open_nats
from gateway.config.home import Home
from gateway.engine.interface import ConsumerSpec, NewRecord
from gateway.engine.sqlite.backup import verify_journal
from gateway.engine.sqlite.engine import open_sqlite
from gateway.engine.sqlite.journal_file import connect
from gateway.hooks.durable.hook_expiry import HookExpiry
from gateway.notify import Notifier
from gateway.upgrade.environment import exchange_folders, run_installer
from gateway.upgrade.plan import LOCK, MARK, PLAN, UpgradeError, UpgradePlan, read_plan, write_mark, write_plan
from gateway.upgrade.program_users import check_other_upgrades
from gateway.upgrade.start import LoadedProgram, find_new_records, try_upgrade
from gateway.upgrade.undo import undo_upgrade
from tests.engine.nats_servers import run_servers


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path / "home")
    found.upgrade.mkdir(parents=True)
    return found


def make_plan(home: Home, tmp_path: Path, backup: str = "") -> UpgradePlan:
    """On trial: the new program is in `env`, and the old one is beside it."""
    prefix, beside = tmp_path / "env", tmp_path / ".env.upgrade"
    for folder, text in ((prefix, "new"), (beside, "old")):
        folder.mkdir()
        (folder / "program").write_text(text)
    write_mark(prefix, "a plan", home)
    plan = UpgradePlan("a plan", "0.1.0", "0.2.0", str(prefix), str(beside), state="trying", backup=backup)
    write_plan(home, plan)
    return plan


def test_a_mark_that_is_not_whole_lets_neither_program_go(home: Home, tmp_path: Path) -> None:
    plan = make_plan(home, tmp_path)
    Path(plan.prefix, MARK).write_text("")  # as a power cut leaves it
    with (
        pytest.raises(UpgradeError, match="is unknown") as caught,
        try_upgrade(home, Path(plan.prefix), pytest.fail, Notifier()),
    ):
        pytest.fail("nothing may start")
    assert plan.prefix in str(caught.value)
    assert plan.beside in str(caught.value)
    assert (Path(plan.beside, "program").exists(), read_plan(home)) == (True, plan)
    Path(plan.prefix, MARK).unlink()
    with try_upgrade(home, Path(plan.prefix), pytest.fail, Notifier()):
        assert read_plan(home) is None


def test_a_plan_of_a_later_version_is_read(home: Home, tmp_path: Path) -> None:
    plan = make_plan(home, tmp_path)
    path = home.upgrade / PLAN
    path.write_text(json.dumps({**json.loads(path.read_text()), "of_later": [1]}))
    assert read_plan(home) == plan


def test_no_plan_removes_another_folder(home: Home, tmp_path: Path) -> None:
    plan, other = make_plan(home, tmp_path), tmp_path / "photos"
    other.mkdir()
    write_plan(home, replace(plan, beside=str(other)))
    with (
        pytest.raises(UpgradeError, match="is not as we write it"),
        try_upgrade(home, Path(plan.prefix), pytest.fail, Notifier()),
    ):
        pytest.fail("nothing may start")
    assert (other.is_dir(), Path(plan.prefix, "program").read_text()) == (True, "new")


def test_whatever_the_new_program_fails_with_leads_back(home: Home, tmp_path: Path) -> None:
    plan, restarted = make_plan(home, tmp_path), list[str]()
    with try_upgrade(home, Path(plan.prefix), lambda: restarted.append("old"), Notifier()):
        import_module("gateway.of_nobody")
    assert (restarted, Path(plan.prefix, "program").read_text()) == (["old"], "old")
    assert (read_plan(home), Path(plan.beside).exists()) == (None, False)


def test_one_goes_back_at_a_time(home: Home, tmp_path: Path) -> None:
    plan = make_plan(home, tmp_path)
    with (home.upgrade / LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        command = [sys.executable, "-P", "-m", "gateway.upgrade.undo", str(home.root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, "another upgrade" in done.stderr) == (1, True)
    assert (Path(plan.prefix, "program").read_text(), read_plan(home)) == ("new", plan)


def test_the_way_back_touches_our_own_folder_alone(home: Home, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (home.hooks / "whole").mkdir(parents=True)
    (home.hooks / "mine").symlink_to(tmp_path / "src")
    (home.own_folder / "kept.txt").write_text("before")
    copy = write_archive(home, home.backups / "copy.tar.gz", with_env=False)
    assert "hooks/mine" in copy.left_out
    (home.own_folder / "kept.txt").write_text("after")
    plan = make_plan(home, tmp_path, str(copy.path))
    undo_upgrade(home, plan)
    assert (home.own_folder / "kept.txt").read_text() == "before"
    assert (home.hooks / "mine").readlink() == tmp_path / "src"
    assert Path(plan.prefix, "program").read_text() == "old"


def test_what_a_start_notes_of_durable_hooks_is_nothing_that_the_way_back_would_lose(
    home: Home, tmp_path: Path
) -> None:
    async def note() -> None:
        async with await open_sqlite(home.journal) as engine:
            await engine.consumer(ConsumerSpec("hook-keeps", ("my.x",)))
            assert [token async for token in HookExpiry(engine).follow(tuple)] == []
            assert len(await engine.read(">")) == 1

    anyio.run(note)
    plan = make_plan(home, tmp_path)
    assert find_new_records(home, plan) == ""


def test_of_the_journal_of_servers_there_is_a_copy_beside_that_of_the_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.own_folder.mkdir(parents=True)
    home.config.write_text("engine: nats\n")
    with run_servers(tmp_path / "nats", 1) as servers:
        anyio.run(write_something, servers[0].url)
        backup, last_seq = create_copy(home, JournalServers(servers[0].url))
    (shared,) = home.backups.glob("upgrade-*.db")
    assert verify_journal(shared).records == 1
    assert last_seq == 0
    with tarfile.open(backup) as archive:
        assert not [name for name in archive.getnames() if name.endswith(".db")]


async def write_something(url: str) -> None:
    async with await open_nats(url) as engine:
        await engine.append(NewRecord("a", b"kept"))


def test_without_the_copy_the_new_program_is_tried_once_more(home: Home, tmp_path: Path) -> None:
    plan = make_plan(home, tmp_path, str(home.backups / "gone.tar.gz"))
    connect(home.journal).close()
    with pytest.raises(UpgradeError, match=r"gone\.tar\.gz"):
        undo_upgrade(home, plan)
    assert read_plan(home) == plan, "it is on trial"
    plan.enter(home, "returning")
    with try_upgrade(home, Path(plan.prefix), pytest.fail, Notifier()) as note:
        assert (note, read_plan(home)) == ("", plan)


def test_others_can_read_what_is_installed(tmp_path: Path) -> None:
    assert run_installer(["sh", "-c", "umask"], {"PATH": "/usr/bin:/bin"}, tmp_path).strip() == "0022"


def test_a_supervisor_is_told_that_the_way_back_lasts(home: Home, tmp_path: Path) -> None:
    plan = make_plan(home, tmp_path)
    plan.enter(home, "returning")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        with try_upgrade(home, Path(plan.prefix), lambda: None, Notifier(str(tmp_path / "notify"))):
            assert supervisor.recv(100) == b"EXTEND_TIMEOUT_USEC=60000000"


def test_what_another_home_upgrades_is_left_to_it(home: Home, tmp_path: Path) -> None:
    plan, other = make_plan(home, tmp_path), Home(tmp_path / "other")
    other.upgrade.mkdir(parents=True)
    write_mark(Path(plan.prefix), "its plan", other)
    write_plan(other, replace(plan, name="its plan"))
    with pytest.raises(UpgradeError, match=f"end that first: hermes-gateway --home {other.root} upgrade"):
        check_other_upgrades(home, Path(plan.prefix))
    with try_upgrade(home, Path(plan.prefix), pytest.fail, Notifier()):
        assert read_plan(home) is None
    assert Path(plan.beside).exists()
    (other.upgrade / PLAN).unlink()
    check_other_upgrades(home, Path(plan.prefix))


def test_a_process_of_the_program_of_before_does_not_serve(home: Home, tmp_path: Path) -> None:
    plan, restarted = make_plan(home, tmp_path), list[str]()
    loaded = LoadedProgram(Path(plan.prefix))
    loaded.check()
    exchange_folders(Path(plan.prefix), Path(plan.beside))
    with try_upgrade(home, tmp_path, lambda: restarted.append("new"), Notifier()):
        loaded.check()
    assert restarted == ["new"]
