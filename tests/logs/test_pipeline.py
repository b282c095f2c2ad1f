"""The log as a whole: what reaches the file and the terminal, and that nothing in it can hold up or end the gateway."""

import json
import logging
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.errors import GatewayError
from gateway.logs.lines import LogLine, as_json, bind_context, format_for_journald, format_for_pipe, format_for_terminal
from gateway.logs.pipeline import LogPipeline, choose_formatter
from gateway.logs.redaction import Redactor
from gateway.logs.sinks import FileSink, StreamSink
from tests.waits import Stopwatch

log = logging.getLogger("gateway.test")
BOT = "123456789:AAE-canary-canary-canary-canary-can"
SECRET = "known-canary"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Levels of foreign loggers are global; each test leaves them as it found them."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    assert (root.handlers[:], root.level) == before


def logged(
    path: Path, write: Callable[[], object], secrets: tuple[str, ...] = (), level: str = "info"
) -> list[dict[str, Any]]:
    """Return the content of the file after a line was logged."""
    schema = load_settings_schema()
    redactor = Redactor(secrets, schema.token_shapes)
    with LogPipeline(redactor, [FileSink(path, 10_000_000, 2)], level, schema.noisy_loggers):
        write()
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_its_place_in_the_gateway(tmp_path: Path) -> None:
    def write() -> None:
        with bind_context(session="s1", turn="t1"):
            log.info("hello %s", "there")
            with bind_context(hook="h1"):
                log.info("inside")
        log.info("by hand", extra={"hook": "h2"})

    lines = logged(tmp_path / "log", write)
    assert [(line["message"], line.get("session"), line.get("hook")) for line in lines] == [
        ("hello there", "s1", None),
        ("inside", "s1", "h1"),
        ("by hand", None, "h2"),
    ]


async def test_tasks_keep_their_own_context(tmp_path: Path) -> None:
    async def work(session: str, own: anyio.Event, other: anyio.Event) -> None:
        with bind_context(session=session):
            own.set()
            await other.wait()
            log.info("from %s", session)

    with LogPipeline(Redactor(), [FileSink(tmp_path / "log", 10_000, 1)]):
        first, second = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work, "a", first, second)
            tasks.start_soon(work, "b", second, first)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {(line["message"], line["session"]) for line in lines} == {("from a", "a"), ("from b", "b")}


@pytest.mark.row("T28")
def test_a_secret_reaches_no_sink(tmp_path: Path) -> None:
    def write() -> None:
        log.info("token %s", BOT)
        log.info("GET https://api.telegram.org/bot%s/getMe", BOT, extra={"session": f"x-{BOT}"})
        log.info({"password": SECRET})
        try:
            raise ValueError(f"cannot use {SECRET} or {BOT}")
        except ValueError:
            log.exception("failed with %s", SECRET)
        logging.getLogger("httpx").info("POST https://api.telegram.org/bot%s/send", BOT)
        logging.getLogger("someone.else").warning("%s %r", SECRET, BOT, stack_info=True)
        log.info("%s%s", "x" * 79_990, SECRET)

    logged(tmp_path / "log", write, (SECRET,))
    written = (tmp_path / "log").read_text()
    assert written.count("[secret]") > 6
    assert "canary" not in written


@pytest.mark.row("T29")
def test_foreign_text_makes_no_line_of_its_own(tmp_path: Path) -> None:
    def write() -> None:
        log.info("name: %s", "eve\n2026-01-01 00:00:00 info     forged\x1b[2J")
        log.info("head: %s", "h" * 15_000)

    first, second = logged(tmp_path / "log", write)
    assert first["message"] == "name: eve\\n2026-01-01 00:00:00 info     forged\\x1b[2J"
    assert len(second["message"]) < 5000


def test_an_exception_is_logged_with_its_traceback(tmp_path: Path) -> None:
    def write() -> None:
        try:
            _ = 1 / 0
        except ZeroDivisionError:
            log.exception("failed")

    (line,) = logged(tmp_path / "log", write)
    assert line["exception"].endswith("ZeroDivisionError: division by zero\n")


def test_a_wrong_call_is_logged_as_it_stands(tmp_path: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no")

    def write() -> None:
        log.info("%d apples", "no")
        log.info("odd: %s", Odd())

    assert [line["message"] for line in logged(tmp_path / "log", write)] == [
        "'%d apples' (its arguments cannot be shown: TypeError)",
        "'odd: %s' (its arguments cannot be shown: RuntimeError)",
    ]


def test_levels_are_kept_and_can_change(tmp_path: Path) -> None:
    with LogPipeline(Redactor(), [FileSink(tmp_path / "log", 10_000, 1)], "warning") as logs:
        log.info("quiet")
        logs.set_level("debug")
        log.debug("loud")
        logging.getLogger("someone.else").debug("never")
        logging.getLogger("httpx").info("never")
    assert [json.loads(line)["message"] for line in (tmp_path / "log").read_text().splitlines()] == ["loud"]


def test_what_nobody_caught_is_logged(tmp_path: Path) -> None:
    def write() -> None:
        def fail() -> None:
            raise ValueError("in a thread")

        thread = threading.Thread(target=fail, name="worker")
        thread.start()
        thread.join()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old way", DeprecationWarning, stacklevel=1)
        try:
            raise ValueError("in the main thread")
        except ValueError as error:
            sys.excepthook(type(error), error, error.__traceback__)

    first, second, third = logged(tmp_path / "log", write)
    assert (first["level"], first["message"]) == ("error", "worker ended by an uncaught error")
    assert "DeprecationWarning: old way" in second["message"]
    assert third["level"] == "critical"


@pytest.mark.row("T33")
def test_the_file_is_private_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "log").touch(mode=0o644)
    logged(tmp_path / "log", lambda: log.info("x"))
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with LogPipeline(Redactor(), [FileSink(tmp_path / "link", 1000, 1)]) as logs:
        log.info("x")
    assert logs.lost == 1
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_file_makes_room_and_old_ones_are_kept(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "log", size=300, keep=2)
    for number in range(20):
        sink.write(LogLine(0, "info", "x", f"{number:0100}", {}))
    sink.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    kept = [
        json.loads(line)["message"]
        for age in (".2", ".1", "")
        for line in (tmp_path / f"log{age}").read_text().splitlines()
    ]
    assert kept == [f"{number:0100}" for number in range(20 - len(kept), 20)]
    assert all(path.stat().st_size <= 300 and path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


def test_a_file_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "log", size=10_000, keep=0)
    sink.write(LogLine(0, "info", "x", "first", {}))
    (tmp_path / "log").unlink()
    sink.write(LogLine(0, "info", "x", "second", {}))
    sink.close()
    assert "second" in (tmp_path / "log").read_text()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_counted_and_nothing_more() -> None:
    sink = FileSink(Path("/dev/full"), size=10_000, keep=0)
    with LogPipeline(Redactor(), [sink]) as logs:
        log.info("into the void")
    assert logs.lost == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_standard_error_on_a_full_disk_is_written_again_when_there_is_room(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file, Path("/dev/full").open("w") as full:
        sink, room = StreamSink(file, format_for_pipe), os.dup(file.fileno())
        os.dup2(full.fileno(), file.fileno())
        sink.write(LogLine(0, "info", "x", "lost", {}))
        os.dup2(room, file.fileno())
        os.close(room)
        sink.write(LogLine(0, "info", "x", "kept", {}))
    assert (sink.lost, "kept" in (tmp_path / "log").read_text()) == (1, True)


def test_a_reader_that_stopped_holds_nobody_up(tmp_path: Path) -> None:
    """A pipe that nobody empties: the other sink gets all lines, and writing them takes no longer than patience."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as stuck, Stopwatch() as watch:
        stream = StreamSink(stuck, format_for_pipe)
        with LogPipeline(Redactor(), [stream, FileSink(tmp_path / "log", 100_000_000, 1)]):
            for number in range(2000):
                log.info("%d %s", number, "x" * 100)
    assert watch.seconds < 25
    os.close(reading)
    assert stream.lost > 0
    assert len((tmp_path / "log").read_text().splitlines()) == 2000


async def test_a_flood_never_holds_the_loop(tmp_path: Path) -> None:
    held, before = list[float](), time.monotonic()
    with LogPipeline(Redactor([BOT]), [FileSink(tmp_path / "log", 1_000_000, 1)]) as logs:
        for _ in range(100):
            for _ in range(300):
                log.info("x" * 2000)
            await anyio.lowlevel.checkpoint()
            held.append(time.monotonic() - before)
            before = time.monotonic()
    assert sorted(held)[-3] < 2, "the machine may stand still, and not three times"
    written = sum(len((tmp_path / name).read_text().splitlines()) for name in ("log", "log.1"))
    assert written > 0
    assert ("lines that were lost" in (tmp_path / "log").read_text()) == (logs.lost > 0)


def test_a_standard_error_that_closed_does_not_end_the_process() -> None:
    program = """
import logging, os, sys
from gateway.logs.lines import format_for_pipe
from gateway.logs.redaction import Redactor
from gateway.logs.pipeline import LogPipeline
from gateway.logs.sinks import StreamSink
with LogPipeline(Redactor(), [StreamSink(sys.stderr, format_for_pipe)]) as logs:
    for number in range(100):
        logging.getLogger("gateway.x").info("line %d", number)
print("still here")
print("and others may write there", file=sys.stderr, flush=True)
"""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=gone, text=True)
    assert (done.returncode, done.stdout) == (0, "still here\n")


def test_a_line_looks_as_its_reader_needs_it(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        found = os.fstat(stream.fileno())
        journal = {"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}
        assert choose_formatter(stream, "auto", journal, colours=False) is format_for_journald
        assert choose_formatter(stream, "auto", {"JOURNAL_STREAM": "1:2"}, colours=False) is format_for_pipe
        assert choose_formatter(stream, "auto", {}, colours=True) is format_for_terminal
        assert choose_formatter(stream, "json", journal, colours=True) is as_json
        assert choose_formatter(stream, "text", journal, colours=True) is format_for_pipe


@pytest.mark.row("T28")
def test_a_crash_is_logged_once_and_without_secrets() -> None:
    program = f"""
import sys
from gateway.adapters.shared.folder import load_settings_schema
from gateway.logs.lines import format_for_pipe
from gateway.logs.redaction import Redactor
from gateway.logs.pipeline import LogPipeline
from gateway.logs.sinks import StreamSink
redactor = Redactor(["{SECRET}"], load_settings_schema().token_shapes)
with LogPipeline(redactor, [StreamSink(sys.stderr, format_for_pipe)]):
    raise RuntimeError("{SECRET} and {BOT} are wrong")
"""
    done = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.count("RuntimeError: [secret] and [secret] are wrong") == 1
    assert "canary" not in done.stderr


def test_an_error_of_ours_is_left_to_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(GatewayError), LogPipeline(Redactor(), [FileSink(tmp_path / "log", 1000, 1)]):
        raise GatewayError("no")
    assert not (tmp_path / "log").exists()
