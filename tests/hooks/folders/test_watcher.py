"""Changes of a hook folder are reported within moments, a burst once; a source may come, go and come again."""

import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.hooks.folders.watcher import STEP, FolderWatcher
from gateway.hooks.places.folder_source import FolderSource
from tests.spine import until


class Seen:
    """The watcher's reports."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bursts: list[set[str]] = []

    def told(self, folders: frozenset[Path]) -> None:
        self.times.append(time.monotonic())
        self.bursts.append({folder.name for folder in folders})

    async def until(self, what: Callable[[], bool]) -> None:
        await until(what)

    async def name(self, name: str) -> None:
        await self.until(lambda: any(name in burst for burst in self.bursts))
        self.bursts.clear()


@asynccontextmanager
async def watched(*sources: Path, polls: bool = False) -> AsyncIterator[tuple[FolderWatcher, Seen]]:
    seen = Seen()
    watcher = FolderWatcher([FolderSource(path, "here") for path in sources], seen.told, polls)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        await watcher.is_watching.wait()
        yield watcher, seen
        tasks.cancel_scope.cancel()


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("polls", [False, True])
async def test_other_rights_on_the_source_are_told_of_all_that_is_in_it(tmp_path: Path, polls: bool) -> None:
    source = tmp_path / "hooks"
    for name in ("a", "b"):
        write(source / name / "HOOK.yaml")
    async with watched(source, polls=polls) as (_, seen):
        for rights in (0o777, 0o755):
            source.chmod(rights)
            await seen.until(lambda: {"a", "b"} <= set().union(*seen.bursts))
            seen.bursts.clear()


async def test_what_is_dropped_changed_renamed_and_removed_is_told(tmp_path: Path) -> None:
    source, outside = tmp_path / "hooks", tmp_path / "outside"
    source.mkdir()
    async with watched(source) as (_, seen):
        write(source / "a" / "HOOK.yaml")
        await seen.name("a")
        write(source / "a" / "lib" / "deep.py")
        await seen.name("a")
        (source / "a").rename(source / "b")
        await seen.name("b")
        write(outside / "c" / "HOOK.yaml")
        (outside / "c").rename(source / "c")
        await seen.name("c")
        write(source / "c" / "handler.py", "y")
        await seen.name("c")
        (source / "c").rename(outside / "c")
        await seen.name("c")
        shutil.rmtree(source / "b")
        await seen.name("b")


async def test_a_burst_of_writes_is_told_when_it_is_over(tmp_path: Path) -> None:
    for source in (tmp_path / str(number) for number in range(20)):
        write(source / "a" / "handler.py")
        async with watched(source) as (_, seen):
            written = [time.monotonic()]
            for n in range(5):
                await anyio.sleep(0.005)
                write(source / "a" / "handler.py", str(n))
                written.append(time.monotonic())
            await seen.name("a")
        if written[-1] - written[0] < STEP / 1000:  # else the machine made pauses
            assert written[-1] <= seen.times[0]
            return


async def test_folders_that_are_no_hooks_are_not_told(tmp_path: Path) -> None:
    async with watched(tmp_path) as (_, seen):
        for name in (".git", "_off", "old.bak"):
            write(tmp_path / name / "handler.py")
        write(tmp_path / "a" / "handler.py")
        await seen.until(lambda: bool(seen.bursts))
        assert seen.bursts == [{"a"}]


async def test_what_is_none_of_a_hook_is_not_told(tmp_path: Path) -> None:
    for name in ("handler.py", ".pytest_cache/v/y", ".git/config", "__pycache__/y.pyc", "lib/y.py"):
        write(tmp_path / "a" / name)
    async with watched(tmp_path) as (_, seen):
        for name in (".pytest_cache/v/x", ".git/index", "__pycache__/x.pyc", ".handler.py.swp", "lib/x.py~"):
            write(tmp_path / "a" / name)
        write(tmp_path / "b" / "handler.py")
        await seen.until(lambda: {"b"} in seen.bursts)
        write(tmp_path / "c" / "handler.py")
        await seen.until(lambda: {"c"} in seen.bursts)
        assert set().union(*seen.bursts) == {"b", "c"}


async def test_a_linked_folder_is_told_under_every_name_it_has(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "handler.py")
    source = tmp_path / "hooks"
    source.mkdir()
    for name in ("one", "two"):
        (source / name).symlink_to(tmp_path / "elsewhere")
    async with watched(source) as (_, seen):
        write(tmp_path / "elsewhere" / "handler.py", "y")
        await seen.until(lambda: set().union(*seen.bursts) == {"one", "two"})


async def test_a_source_may_come_go_and_come_again(tmp_path: Path) -> None:
    source = tmp_path / "home" / "hooks"
    async with watched(source) as (_, seen):
        for _ in range(3):
            write(source / "a" / "handler.py")
            await seen.name("a")
            write(source / "a" / "handler.py", "y")
            await seen.name("a")
            shutil.rmtree(tmp_path / "home")
            await seen.name("a")


@pytest.mark.thorough  # ten seconds pass until it is noticed
async def test_a_source_that_leads_to_another_folder_is_watched_there(tmp_path: Path) -> None:
    """So it is where something was mounted."""
    source, link = tmp_path / "hooks", tmp_path / "link"
    for disk in ("first", "second"):
        write(tmp_path / disk / f"of-{disk}" / "HOOK.yaml")
    source.symlink_to("first")
    async with watched(source) as (_, seen):
        link.symlink_to("second")
        link.rename(source)
        await seen.name("of-second")
        write(tmp_path / "second" / "later" / "HOOK.yaml")
        await seen.name("later")


async def test_one_source_may_be_there_and_another_not(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    async with watched(first, second) as (_, seen):
        write(first / "a" / "handler.py")
        await seen.name("a")
        write(second / "b" / "handler.py")
        await seen.name("b")
        write(first / "a" / "handler.py", "y")
        await seen.name("a")


async def test_polling_tells_the_same_a_little_later(tmp_path: Path) -> None:
    write(tmp_path / "a" / "handler.py")
    async with watched(tmp_path, polls=True) as (_, seen):
        write(tmp_path / "a" / "handler.py", "something else")
        await seen.name("a")


EXHAUSTED = """
import os, resource, sys
from pathlib import Path
import anyio
from gateway.hooks.folders.watcher import FolderWatcher
from gateway.hooks.places.folder_source import FolderSource
source = Path(sys.argv[1])

async def main():
    await anyio.to_thread.run_sync(len, "")
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        os.close(taken.pop())
        os.close(taken.pop())
    told = anyio.Event()
    watcher = FolderWatcher([FolderSource(source, "here")], lambda folders: told.set())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        await watcher.is_watching.wait()
        (source / "a").mkdir()
        (source / "a" / "HOOK.yaml").touch()
        await told.wait()
        print(watcher.polls, watcher.trouble)
        tasks.cancel_scope.cancel()

anyio.run(main)
"""


@pytest.mark.process
def test_without_watches_left_it_looks_itself_and_says_so(tmp_path: Path) -> None:
    """Its descriptors are used up but for two, as many as reading a folder takes."""
    program = [sys.executable, "-c", EXHAUSTED, str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.stdout.startswith("True the system gives no more watches"), done.stderr
