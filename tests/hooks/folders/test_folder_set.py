"""Folders become hooks, live: dropped, changed, renamed, removed, broken and mended, while events flow."""

import itertools
import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from gateway.config.settings import HooksSettings
from gateway.hooks import HookRegistry
from gateway.hooks.folders.folder_hooks import FolderHooks
from tests.hooks.folders.workshop import Home, Yard, hook_of
from tests.spine import until
from tests.waits import Stopwatch

pytestmark = pytest.mark.process


async def test_what_is_there_at_the_start_is_told_of_everything_from_the_start(home: Home) -> None:
    home.note("first")
    registry = HookRegistry()
    async with home.serving(registry) as service:
        registry.emit("my:event", n=1)
        await until(lambda: hook_of(service, "first").calls.record.calls == 1)
        status = await service.info("first")
    assert home.seen("first") == [["1", "my:event", 1]]
    assert (status.state, status.reason, status.calls, status.failures) == ("loaded", "", 1, 0)
    assert status.pid
    assert status.memory > 0
    assert status.p50
    assert [trace.event for trace in status.traces] == ["my:event"]
    ((at, event, fields),) = status.given
    assert (at, event, fields["n"]) == (status.traces[0].at, "my:event", 1)
    assert (status.origin, status.wire, status.events) == ("home", "worker", ("my:*",))


async def test_a_folder_that_is_dropped_is_live_within_a_second(yard: Yard) -> None:
    took: list[float] = []

    def has_seen(name: str) -> bool:
        return yard.seen(name) == [["1", f"{name}:event", 1]]

    for name in "abcde":  # the machine may have other things to do, but not each time
        event = f"{name}:event"
        with Stopwatch() as watch:
            yard.plant(name, f"events: ['{event}']\n", yard.noting(name, "1"))
            await until(partial(yard.registry.wants, event))
        took.append(watch.seconds)
        yard.registry.emit(event, n=1)
        await until(partial(has_seen, name))
    assert min(took) < 1


async def test_a_change_takes_over_with_no_event_lost_told_twice_or_out_of_order(yard: Yard) -> None:
    folder = yard.note("flow")
    await yard.state("flow", "loaded")
    numbers = itertools.count()
    for version in ("1", "2", "3"):
        if version != "1":
            (folder / "handler.py").write_text(yard.noting("flow", version))
        while version not in [seen for seen, _, _ in yard.seen("flow")]:
            yard.registry.emit("my:event", n=next(numbers))
            await anyio.sleep(0.003)
    emitted = next(numbers)
    await until(lambda: ["3", "my:event", emitted - 1] in yard.seen("flow"))
    assert [n for _, _, n in yard.seen("flow")] == list(range(emitted))
    versions = [version for version, _, _ in yard.seen("flow")]
    assert versions == sorted(versions)
    assert (await yard.status("flow")).restarts == 0


async def test_the_first_event_of_the_new_one_waits_for_the_last_of_the_old(yard: Yard) -> None:
    begun, gate = yard.root / "begun", yard.root / "gate"
    waits = f"""
    import time
    pathlib.Path({str(begun)!r}).touch()
    while not pathlib.Path({str(gate)!r}).exists():
        time.sleep(0.01)
    with"""
    slow = yard.noting("slow", "old").replace("\n    with", waits)
    folder = yard.plant("slow", "events: ['my:*']\n", slow)
    await yard.state("slow", "loaded")
    before = (await yard.status("slow")).loaded_at
    yard.registry.emit("my:event", n=1)
    await until(begun.exists)
    (folder / "handler.py").write_text(yard.noting("slow", "new"))
    yard.registry.emit("my:event", n=2)
    await until(lambda: yard.hook("slow").process.loaded_at != before)
    assert yard.seen("slow") == []
    gate.touch()
    await until(lambda: len(yard.seen("slow")) == 2)
    assert yard.seen("slow") == [["old", "my:event", 1], ["new", "my:event", 2]]


@pytest.mark.row("WEB-48")
@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("handler.py", "def handle(e, c:\n", "bad/handler.py:1:"),
        ("handler.py", "import no_such_module\n\n\ndef handle(e, c): ...\n", "No module named 'no_such_module'"),
        ("handler.py", "import os\nos._exit(1)\n\n\ndef handle(e, c): ...\n", "does not start"),
        ("HOOK.yaml", "events: ['my:*'\n", "bad/HOOK.yaml:2:1"),
        ("HOOK.yaml", "events: ['my:*']\norder: high\n", "bad/HOOK.yaml:2:8"),
        ("HOOK.yaml", "events: ['my:*']\nrequires: {bins: [no-such-program]}\n", "no-such-program"),
    ],
)
async def test_a_broken_change_leaves_the_last_good_version_running(yard: Yard, file: str, text: str, why: str) -> None:
    folder = yard.note("bad")
    await yard.state("bad", "loaded")
    (folder / file).write_text(text)
    await until(lambda: why in yard.hook("bad").process.reason)
    status = await yard.status("bad")
    assert status.state == "loaded"
    assert status.needs_attention
    assert "the version before runs on" in status.reason
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("bad") == [["1", "my:event", 1]])
    (folder / "HOOK.yaml").write_text("events: ['my:*']\n")
    (folder / "handler.py").write_text(yard.noting("bad", "2"))
    await until(lambda: not yard.hook("bad").process.reason)
    yard.registry.emit("my:event", n=2)
    await until(lambda: yard.seen("bad")[1:] == [["2", "my:event", 2]])


async def test_a_folder_that_is_removed_is_gone_and_one_that_is_renamed_is_another(yard: Yard) -> None:
    folder = yard.note("one")
    await yard.state("one", "loaded")
    folder.rename(folder.parent / "two")
    await yard.state("two", "loaded")
    await until(lambda: list(yard.service._set.hooks) == ["two"])
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("one") == [["1", "my:event", 1]])
    shutil.rmtree(folder.parent / "two")
    await until(lambda: not yard.registry.wants("my:event"))
    assert await yard.service.status() == []


async def has_no_hooks(yard: Yard) -> bool:
    return not await yard.service.status()


async def test_a_folder_that_goes_while_it_starts_leaves_nothing_behind(yard: Yard) -> None:
    folder = yard.plant("gone", "events: ['my:*']\n", "import time\ntime.sleep(0.3)\n" + yard.noting("gone", "1"))
    await yard.state("gone", "starting")
    shutil.rmtree(folder)
    await until(lambda: not yard.registry.wants("my:event"))
    await until(partial(has_no_hooks, yard), "its end")  # it ends once it hears nothing more


async def test_a_change_while_it_starts_gives_the_start_up(yard: Yard) -> None:
    folder = yard.plant("twice", "events: ['my:*']\n", "import time\ntime.sleep(30)\n" + yard.noting("twice", "1"))
    await yard.state("twice", "starting")
    (folder / "handler.py").write_text(yard.noting("twice", "2"))
    await yard.state("twice", "loaded")
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("twice") == [["2", "my:event", 1]])


async def test_two_folders_of_one_label_both_run_with_a_warning(yard: Yard) -> None:
    for name in ("one", "two"):
        yard.note(name, manifest="name: same\nevents: ['my:*']\n")
        await yard.state(name, "loaded")
    yard.registry.emit("my:event", n=1)
    await until(lambda: yard.seen("one") == yard.seen("two") == [["1", "my:event", 1]])
    assert any("one is also called 'same'" in finding for finding in (await yard.status("two")).findings)


async def test_a_hook_that_writes_into_its_own_folder_does_not_reload_itself(yard: Yard) -> None:
    folder = yard.note("busy")
    loaded_at = (await yard.state("busy", "loaded")).loaded_at
    for n in range(3):
        (folder / "data.json").write_text(str(n))
        yard.note(f"other{n}")
        await yard.state(f"other{n}", "loaded")
    assert (await yard.status("busy")).loaded_at == loaded_at


@pytest.mark.row("T22")
async def test_nothing_is_imported_by_looking(home: Home) -> None:
    canary = home.root / "canary"
    home.plant("trap", "events: ['my:*']\nenabled: false\n", f"open({str(canary)!r}, 'w')\ndef handle(e, c): ...\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(eager=0)) as service:
        await service.status()
        await service.info("trap")
        (home.hooks / "trap" / "HOOK.yaml").write_text("events: ['my:*']\n")
        await until(lambda: registry.wants("my:event"))
        assert (await service.info("trap")).state == "registered"
        assert not canary.exists()
        registry.emit("my:event")
        await until(canary.exists)


async def test_beyond_the_eager_ones_hooks_start_at_their_first_event(home: Home) -> None:
    for name in ("a", "b", "c"):
        home.note(name, manifest=f"events: ['my:{name}']\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(eager=2)) as service:
        states = {status.name: status.state for status in await service.status()}
        assert states == {"a": "loaded", "b": "loaded", "c": "registered"}
        registry.emit("my:c", n=1)
        await until(lambda: home.seen("c") == [["1", "my:c", 1]])
        assert (await service.info("c")).state == "loaded"


async def test_what_is_beyond_the_eager_ones_is_checked_to_the_end_all_the_same(home: Home) -> None:
    home.plant("a", "events: ['my:a']\n", "def handle(:\n")
    registry = HookRegistry()
    async with home.serving(registry, settings=HooksSettings(eager=0)) as service:
        status = await service.info("a")
    assert status.state == "broken"
    assert "a/handler.py:1:12" in status.reason


async def test_the_index_makes_a_second_start_read_nothing(home: Home, tmp_path: Path) -> None:
    home.note("one")
    async with home.serving(HookRegistry()):
        pass
    assert (home.root / "state" / "index.json").exists()
    (home.root / "state" / "index.json").write_text("nonsense")
    async with home.serving(HookRegistry()) as service:
        assert (await service.info("one")).state == "loaded"


@pytest.mark.usefixtures("light_heap")
async def test_a_thousand_folders_at_once_come_and_go_and_the_loop_goes_on(home: Home) -> None:
    plain = "events: ['my:*']\n", "def handle(event_type, context): ...\n"
    registry, lags = HookRegistry(), Lags()
    async with home.serving(registry, settings=HooksSettings(eager=2)) as service, anyio.create_task_group() as tasks:
        tasks.start_soon(note_lags, lags)
        await anyio.to_thread.run_sync(lambda: [home.plant(f"h{n}", *plain) for n in range(1000)])
        await until(lambda: are_there(service, 1000))
        states = [status.state for status in await service.status()]
        assert states.count("loaded") <= 2
        assert set(states) <= {"loaded", "registered"}
        for n in range(0, 1000, 2):
            shutil.rmtree(home.hooks / f"h{n}")
            await anyio.lowlevel.checkpoint()
        await until(lambda: are_there(service, 500))
        tasks.cancel_scope.cancel()
    assert lags.longest < 0.4


async def are_there(service: FolderHooks, count: int) -> bool:
    return len(service._set.hooks) == count


@dataclass
class Lags:
    """The most of the processor's time that a loop took for itself before it turned."""

    longest: float = 0.0


async def note_lags(lags: Lags) -> None:
    while True:
        begun = time.thread_time()
        await anyio.sleep(0.001)
        lags.longest = max(lags.longest, time.thread_time() - begun)


async def test_folders_that_go_while_they_are_looked_at_leave_nothing_behind(home: Home) -> None:
    registry = HookRegistry()
    async with home.serving(registry) as service:
        for n in range(40):
            folder = home.plant(f"h{n}", "events: ['my:*']\n", "import time\ntime.sleep(0.05)\ndef handle(e, c): ...\n")
            await anyio.sleep(0.002 * (n % 10))
            shutil.rmtree(folder)
        home.note("last")
        await until(lambda: list(service._set.hooks) == ["last"])
        assert [status.name for status in await service.status()] == ["last"]
        registry.emit("my:event", n=1)
        await until(lambda: home.seen("last") == [["1", "my:event", 1]])


@pytest.mark.parametrize("name", ["天気-予報", "it's one; $(two) %s {three}", "a.b.c", "é" * 60, "import", "1st"])
async def test_a_folder_of_an_odd_name_is_a_hook_like_others(yard: Yard, name: str) -> None:
    yard.plant(name, "intercepts: ['my:*']\n", "def handle(e, c):\n    print('hello')\n    return {'name': __name__}\n")
    await yard.state(name, "loaded")
    assert (await yard.registry.run("my:event", name=""))["name"] == f"hermes_hook_{name}"
    await until(lambda: "hello" in yard.log(name))
    shutil.rmtree(yard.hooks / name)
    await until(lambda: not yard.registry.wants("my:event"))


@pytest.mark.parametrize("name", ["x" * 101, "\u202egniht", "new\nline", "bell\x07"])
async def test_a_folder_whose_name_cannot_be_shown_is_refused_and_told_of(yard: Yard, name: str) -> None:
    yard.plant(name, "events: ['my:*']\n", "def handle(e, c): ...\n")
    status = await yard.state(name, "refused")
    assert "name" in status.reason
    assert status.reason.isprintable()
    assert not yard.registry.wants("my:event")


async def test_a_broken_edit_that_is_taken_back_is_over(yard: Yard) -> None:
    folder = yard.note("edited")
    await yard.state("edited", "loaded")
    for file in ("handler.py", "HOOK.yaml"):
        good = (folder / file).read_text()
        (folder / file).write_text("def handle(:\n")
        await until(lambda: "does not count" in yard.hook("edited").process.reason)
        (folder / file).write_text(good)
        await until(lambda: not yard.hook("edited").process.reason)
        assert yard.hook("edited").process.state == "loaded"


SLOW_AT_FIRST = """
import time
from pathlib import Path

def handle(event_type, context):
    if context["n"] == 1:
        Path("{began}").touch()
        time.sleep(0.7)
    with Path("{seen}").open("a") as file:
        file.write(f"{{context['n']}}\\n")
"""


@pytest.mark.parametrize("how", ["renamed", "removed and dropped"])
async def test_what_comes_in_a_hooks_place_is_told_once_the_one_before_has_ended(yard: Yard, how: str) -> None:
    began, seen = yard.root / "began", yard.root / "seen"
    manifest, source = "events: ['my:*']\n", SLOW_AT_FIRST.format(began=began, seen=seen)
    folder = yard.plant("one", manifest, source)
    await yard.state("one", "loaded")
    yard.registry.emit("my:event", n=1)
    await until(began.exists)
    if how == "renamed":
        folder.rename(folder.with_name("two"))
        await yard.state("two", "loaded")
    else:
        folder.rename(yard.root / "away")
        await until(lambda: not yard.registry.wants("my:event"))
        yard.plant("one", manifest, source)
        await yard.state("one", "loaded")
    yard.registry.emit("my:event", n=2)
    await until(lambda: seen.exists() and "2" in seen.read_text())
    assert seen.read_text() == "1\n2\n"


DETACHED = """
import asyncio, time
from pathlib import Path

async def write_later(n):
    try:
        await asyncio.sleep(60)
    finally:
        time.sleep(0.5)
        with Path("{seen}").open("a") as file:
            file.write(f"left {{n}}\\n")

tasks = []

async def handle(event_type, context):
    with Path("{seen}").open("a") as file:
        file.write(f"{version} {{context['n']}}\\n")
    tasks.append(asyncio.create_task(write_later(context["n"])))
    await asyncio.sleep(0)
"""


async def test_the_first_event_of_a_new_version_comes_behind_all_that_the_old_one_does(yard: Yard) -> None:
    """Its background tasks too: the process has ended, and not just its calls."""
    seen = yard.root / "seen"
    manifest = "events: ['my:*']\n"
    folder = yard.plant("one", manifest, DETACHED.format(seen=seen, version="old"))
    await yard.state("one", "loaded")
    yard.registry.emit("my:event", n=1)
    await until(seen.exists)
    before = hook_of(yard.service, "one").process.loaded_at
    (folder / "handler.py").write_text(DETACHED.format(seen=seen, version="new"))
    await until(lambda: hook_of(yard.service, "one").process.loaded_at != before)
    yard.registry.emit("my:event", n=2)
    await until(lambda: "new" in seen.read_text())
    assert seen.read_text() == "old 1\nleft 1\nnew 2\n"
