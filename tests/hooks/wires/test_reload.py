"""A new worker runs the present content of the folder, and takes over without a gap."""

import os
import py_compile
from pathlib import Path
from typing import Any

import pytest

from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.protocol import CallMeta
from tests.hooks.wires.workshop import Make

pytestmark = pytest.mark.process

DECIDES = CallMeta(decides=True)
WITH_SIBLING = """
import os, sys
sys.path.insert(0, os.path.dirname(__file__))
import beside
V = {0}
def handle(e, c): return [V, beside.V]
"""


async def result(worker: WorkerHandle, name: str = "x", turn: str = "") -> Any:
    return (await worker.call(name, {}, CallMeta(decides=True, writable=(), turn=turn), 10)).result


def write(file: Path, text: str, at: float | None = None) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if at is not None:
        os.utime(file, (at, at))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_none_of_fifty_reloads_runs_what_was_there_before(make: Make, tmp_path: Path) -> None:
    """All edits within one second, of one length, with one time stamp: what byte code is told apart by."""
    stale = []
    for number in range(100, 150):
        write(tmp_path / "probe" / "beside.py", f"V = {number}\n", at=1e9)
        worker = await make(WITH_SIBLING.format(number))
        if await result(worker) != [number, number]:
            stale.append(number)
        await worker.stop()
    assert stale == []
    assert names_in(tmp_path / "probe") == ["beside.py", "handler.py"]


async def test_planted_byte_code_is_not_read(make: Make, tmp_path: Path) -> None:
    beside = tmp_path / "probe" / "beside.py"
    write(beside, "V = 111\n", at=1e9)
    py_compile.compile(str(beside))
    write(beside, "V = 222\n", at=1e9)
    assert await result(await make(WITH_SIBLING.format(222))) == [222, 222]


async def test_packages_beside_the_handler(make: Make, tmp_path: Path) -> None:
    for name, text in (("__init__", ""), ("a", "from . import b\nV = b.V"), ("b", "V = 7")):
        write(tmp_path / "probe" / "lib" / f"{name}.py", text)
    source = """
    import os, sys
    sys.path.insert(0, os.path.dirname(__file__))
    import lib.a
    def handle(e, c): return [lib.a.V, os.path.relpath(lib.a.__file__, os.path.dirname(__file__))]
    """
    assert await result(await make(source)) == [7, "lib/a.py"]


async def test_a_traceback_shows_the_lines_that_run(make: Make, tmp_path: Path) -> None:
    worker = await make("def handle(e, c):\n    raise ValueError('the first edit')")
    write(tmp_path / "probe" / "handler.py", "def handle(e, c):\n    return 'the second edit'")
    with pytest.raises(HookFailed) as failed:
        await result(worker)
    assert "raise ValueError('the first edit')" in failed.value.traceback


async def test_a_broken_edit_leaves_the_one_before_at_work(make: Make) -> None:
    worker = await make("def handle(e, c): return 'old'")
    with pytest.raises(HookFailed, match=r"^handler\.py:2:17: SyntaxError: expected ':'$") as failed:
        await make("\ndef handle(e, c)\n    return 'new'")
    assert failed.value.kind == "raised"
    assert await result(worker) == "old"


async def test_an_edit_that_fails_while_it_is_imported_is_told_with_its_place(make: Make) -> None:
    source = "def fail():\n    return 1 / 0\nfail()\ndef handle(e, c): pass"
    with pytest.raises(HookFailed, match=r"^handler\.py:2: ZeroDivisionError: division by zero$"):
        await make(source)


async def test_a_sibling_that_fails_is_told_with_its_own_place(make: Make, tmp_path: Path) -> None:
    write(tmp_path / "probe" / "beside.py", "\n\nV = 1 / 0\n")
    with pytest.raises(HookFailed, match=r"^beside\.py:3: ZeroDivisionError"):
        await make(WITH_SIBLING.format(1))


async def test_what_was_kept_for_a_turn_is_handed_over(make: Make) -> None:
    source = """
    def handle(e, c):
        if e == "agent:start": c["_recall"] = "what it recalled"; c["_live"] = object()
        c.own["calls"] = c.own.get("calls", 0) + 1
        return [c.own["calls"], c.get("_recall"), "_live" in c]
    """
    old = await make(source)
    assert await result(old, "agent:start", turn="t") == [1, "what it recalled", True]
    new = await make(source)
    new.adopt(await old.ask("$kept"))
    assert await result(new, "agent:end", turn="t") == [2, "what it recalled", False]
    assert await result(new, "agent:end", turn="another") == [1, None, False]


async def test_a_dead_worker_answers_no_question_of_the_wire(make: Make) -> None:
    old = await make("import os\ndef handle(e, c): os._exit(1)")
    with pytest.raises(HookFailed):
        await result(old)
    assert await old.ask("$kept") is None
