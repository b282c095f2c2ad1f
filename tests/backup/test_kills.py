"""A process killed while it makes or restores a copy leaves the old state or the new one, and nothing between them.

A process is killed before each of its changes of the file system in turn, as the interpreter tells of them.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gateway.backup.archive import write_archive
from gateway.backup.archive_reader import read_archive
from gateway.backup.restore import restore_archive
from gateway.backup.restore_plan import resume_restore
from gateway.config.home import Home
from gateway.engine.sqlite.backup import verify_journal
from tests.backup.conftest import files_of

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.link", "tempfile.mkdtemp"}
OLD = ("hooks/other/HOOK.yaml", "plugins/p/plugin.yaml", "hermes-gateway/config.yaml")


def kill_before(number: int, work: Callable[[], Any]) -> bool:
    """Do it in a process that dies before its change of this number; whether it has so many."""
    child = os.fork()
    if child == 0:
        left = number

        def count(event: str, _arguments: object) -> None:
            nonlocal left
            if event in CHANGES:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def test_a_copy_has_its_name_only_when_it_is_whole(home: Home, tmp_path: Path) -> None:
    number, copy = 1, tmp_path / "copy"
    while kill_before(number, partial(write_archive, home, copy, with_env=False)):
        if copy.exists():
            read_archive(copy)
            copy.unlink()
        number += 1
    assert number > 5
    assert read_archive(copy).digests


def test_all_of_a_copy_is_put_back_or_nothing(home: Home, tmp_path: Path) -> None:
    copy, before = write_archive(home, tmp_path / "copy", with_env=True).path, files_of(home)
    wanted = {name: before[name] for name in read_archive(copy).digests if not name.endswith("journal.db")}
    number, seen, is_killed = 0, set[bool](), True
    while is_killed:
        number += 1
        other = make_old_home(tmp_path / f"home{number}")
        is_killed = kill_before(number, partial(restore_archive, copy, other, replace=True))
        resume_restore(other)
        found = files_of(other)
        seen.add(is_new := "hooks/greet/HOOK.yaml" in found)
        if is_new:
            aside = [path for path in other.replaced.rglob("*") if path.is_file()]
            assert {name: data for name, data in found.items() if "/replaced/" not in name} == wanted
            assert verify_journal(other.journal).records == 20
            assert sorted(path.relative_to(other.replaced).as_posix().partition("/")[2] for path in aside) == sorted(
                OLD
            )
            assert not other.restore.exists()
        else:
            assert {name: data for name, data in found.items() if "/.restore.new/" not in name} == dict.fromkeys(
                OLD, b"old"
            )
            assert not other.journal.exists()
            restore_archive(copy, other, replace=True)  # what is left of the other is no hindrance
    assert seen == {True, False}


def make_old_home(place: Path) -> Home:
    for name in OLD:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("old")
    return Home(place)
