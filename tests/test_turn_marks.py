"""A turn's mark is set while its code runs, and at no other time; the next start reads the marks that were left."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.turn_marks import BOOT_ID, WIDTH, TurnMarks, keep_mark, watch_steps


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "turn-marks"


def standing(path: Path) -> list[str]:
    """The marks in the file, without the start of the machine."""
    return path.read_text()[WIDTH:].split()


async def test_a_mark_stands_while_code_runs_and_not_while_it_waits(path: Path) -> None:
    marks, seen, gate = TurnMarks(path), [], anyio.Event()
    marks.open()

    async def other() -> None:
        seen.append(("other", standing(path)))
        gate.set()

    async def work() -> str:
        seen.append(("before", standing(path)))
        await gate.wait()
        seen.append(("after", standing(path)))
        await watch_steps(anyio.lowlevel.checkpoint)
        seen.append(("inside", standing(path)))
        return "done"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        with marks.use("t1"):
            assert await watch_steps(work) == "done"
    assert seen == [("before", ["t1"]), ("other", []), ("after", ["t1"]), ("inside", ["t1"])]
    assert standing(path) == []


async def test_an_error_and_a_cancellation_pass_and_leave_no_mark(path: Path) -> None:
    marks = TurnMarks(path)
    marks.open()

    async def fails() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("no luck")

    with marks.use("t1"), pytest.raises(ValueError, match="no luck"):
        await watch_steps(fails)
    with anyio.move_on_after(0.01) as scope, marks.use("t1"):
        await watch_steps(anyio.sleep_forever)
    assert scope.cancelled_caught
    assert standing(path) == []


async def test_a_doubted_turn_is_marked_through_a_tool_that_waits(path: Path) -> None:
    marks, seen = TurnMarks(path), []
    marks.open()

    async def tool(name: str) -> None:
        with keep_mark():
            await anyio.sleep(0.01)
            seen.append((name, sorted(standing(path))))
            await anyio.sleep(0.02)

    async with anyio.create_task_group() as tasks:
        for name, is_doubted in {"a": True, "b": False, "c": True}.items():
            with marks.use(name, is_doubted=is_doubted):
                tasks.start_soon(tool, name)
    assert [held for _, held in seen] == [["a", "c"]] * 3
    assert standing(path) == []


def test_what_stands_in_the_file_at_the_next_start_was_cut_off(path: Path) -> None:
    marks = TurnMarks(path)
    marks.open()
    marks.put(b"t1".ljust(WIDTH))
    after = TurnMarks(path)
    after.open()
    assert after.cut_off == {"t1"}
    after.close()
    last = TurnMarks(path)
    last.open()
    assert last.cut_off == set()


def test_a_mark_outlives_the_next_process_until_its_death_is_counted(path: Path) -> None:
    """A second turn that kills must not end that process before the first one is claimed: its death would not count."""
    first, second, third, last = (TurnMarks(path) for _ in range(4))
    first.open()
    first.put(b"t1".ljust(WIDTH))
    second.open()
    second.put(b"t2".ljust(WIDTH))
    third.open()
    assert third.cut_off == {"t1", "t2"}
    third.forget("t1")
    assert standing(path) == ["t2"]
    last.open()
    assert last.cut_off == {"t2"}


@pytest.mark.parametrize("left", [b"", b"rubbish", b"x" * 5000, b"\xff" * 1700], ids=["", "short", "long", "odd"])
def test_of_another_start_of_the_machine_or_no_marks_at_all_nobody_is_guilty(path: Path, left: bytes) -> None:
    path.write_bytes(left)
    marks = TurnMarks(path)
    marks.open()
    assert marks.cut_off == set()
    assert path.read_bytes()[:WIDTH].strip() == BOOT_ID.read_bytes().strip()


def test_without_a_file_all_goes_on(tmp_path: Path) -> None:
    marks = TurnMarks(tmp_path / "no" / "such" / "folder")
    marks.open()
    assert marks.put(b"t1") == b" " * WIDTH
    marks.close()
