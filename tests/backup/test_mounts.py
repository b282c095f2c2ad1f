"""A home with a mount in it: a restore changes nothing there, and says what is in the way."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.backup.archive import write_archive
from gateway.backup.restore_plan import resume_restore, write_plan
from gateway.config.home import Home
from tests.backup.conftest import files_of

OWN_MOUNTS = ["unshare", "--mount", "sh", "-ec"]
RESTORE = [sys.executable, "-m", "gateway.cli", "backup", "restore"]


def can_mount() -> bool:
    """Return True if this process may mount: root of Linux; most containers forbid it."""
    trial = [*OWN_MOUNTS, "mount -t tmpfs tmpfs /mnt"]
    return bool(shutil.which("unshare")) and not subprocess.run(trial, capture_output=True, check=False).returncode


pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here"),
]


def restore_beside(mount: str, home: Home, words: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Restore with a private mount; prints the changes of the home."""
    show = f"find {shlex.quote(str(home.root))} -type f -not -name 'journal.db*' -not -name gateway.lock | sort"
    script = f"{mount}\n{show} > before\n{shlex.join([*RESTORE, *words])} || echo $? > failed\n{show} | diff before -"
    environ = {**os.environ, "HERMES_HOME": str(home.root)}
    run = [*OWN_MOUNTS, script]
    return subprocess.run(run, cwd=home.root.parent, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["hooks", "hermes-gateway/config.yaml"])
def test_what_is_mounted_is_named_and_nothing_changes(home: Home, tmp_path: Path, name: str) -> None:
    home = Home(home.root.rename(tmp_path / "a home"))  # the list of mounts writes a space otherwise
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    place = home.root / name
    before = files_of(home)
    done = restore_beside(f"mount --bind '{place}' '{place}'", home, [str(copy), "--replace"])
    assert f"{place} is a mount point" in done.stderr, done.stderr
    assert "unmount it and restore again" in done.stderr
    assert (done.returncode, done.stdout, (tmp_path / "failed").read_text()) == (0, "", "1\n")
    assert files_of(home) == before


def test_own_folder_on_a_disk_of_its_own_is_named_and_nothing_changes(home: Home, tmp_path: Path) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    before = files_of(home)
    done = restore_beside(f"mount -t tmpfs tmpfs '{home.own_folder}'", home, [str(copy), "--replace"])
    assert f"{home.own_folder} is mounted apart from {home.root}/BOOT.md" in done.stderr, done.stderr
    assert (done.returncode, done.stdout, (tmp_path / "failed").read_text()) == (0, "", "1\n")
    assert files_of(home) == before


def test_a_restore_that_an_earlier_version_began_says_what_halts_it_and_goes_on(home: Home, tmp_path: Path) -> None:
    """It looked at no mounts, and was cut off by one."""
    copy, new = write_archive(home, tmp_path / "copy", with_env=False).path, home.restore / "new"
    (new / "hooks").mkdir(parents=True)
    (new / "hooks" / "x").write_text("")
    write_plan(home.restore, home, ["hooks"], ["hooks"])
    done = restore_beside(f"mount --bind '{home.hooks}' '{home.hooks}'", home, [str(copy), "--replace"])
    assert f"Device or resource busy: {home.hooks}, which is a mount point" in done.stderr, done.stderr
    assert "unmount it, and start the gateway or the restore again" in done.stderr
    kept = resume_restore(home)
    assert kept
    assert ([*home.hooks.iterdir()], (kept / "hooks" / "greet").is_dir()) == ([home.hooks / "x"], True)


def test_a_home_that_is_a_mount_as_a_whole_is_replaced(home: Home, tmp_path: Path) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    (home.hooks / "greet" / "HOOK.yaml").write_text("changed since")
    restore_beside(f"mount --bind '{home.root}' '{home.root}'", home, [str(copy), "--replace"])
    assert not (tmp_path / "failed").exists()
    assert (home.hooks / "greet" / "HOOK.yaml").read_text() == "events: [agent:end]\n"
