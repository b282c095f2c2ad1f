"""A hook's log keeps what it prints, within bounds."""

import os
import re
import stat
from pathlib import Path

import anyio.to_thread
import pytest

from gateway.hooks.wires.output import BURST, MAX_FILE_BYTES, HookOutput
from tests.hooks.wires.workshop import lines_of
from tests.spine import until


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "hook.log"


def size_of(file: Path) -> int:
    return file.stat().st_size


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def text_of(file: Path) -> str:
    return file.read_text("latin-1")


def fill(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"x" * MAX_FILE_BYTES)


async def test_each_line_has_its_time(log: Path) -> None:
    output = HookOutput(log)
    read, write = os.pipe()
    output.attach(read)
    os.write(write, b"one\ntw")
    os.write(write, b"o\nthree without an end")
    os.close(write)
    output.close()
    assert lines_of(log) == ["one", "two", "three without an end"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d one\n", text_of(log).splitlines(keepends=True)[0])


async def test_a_silent_hook_leaves_no_file(log: Path) -> None:
    HookOutput(log).close()
    assert not list(log.parent.parent.iterdir())


async def test_the_file_is_its_owners_alone(log: Path) -> None:
    output = HookOutput(log)
    output.note("hello")
    output.close()
    assert mode_of(log) == 0o600


async def test_bytes_that_are_no_text_are_kept(log: Path) -> None:
    output = HookOutput(log)
    read, write = os.pipe()
    output.attach(read)
    os.write(write, b"\xff\x00\n")
    os.close(write)
    output.close()
    assert text_of(log).endswith(" \xff\x00\n")


async def test_what_is_over_the_rate_is_dropped_and_counted(log: Path) -> None:
    output = HookOutput(log)
    read, write = os.pipe()
    output.attach(read)
    block = b"x" * 9_999 + b"\n"

    def print_much() -> None:
        for _ in range(500):
            os.write(write, block)
        os.close(write)

    await anyio.to_thread.run_sync(print_much)
    await until(lambda: output._dropped > 0)
    output.close()
    assert size_of(log) < BURST * 1.2
    assert re.search(r"\d+ bytes dropped: more than 64 kB a second", text_of(log))


async def test_a_full_file_becomes_the_older_one(log: Path) -> None:
    fill(log)
    output = HookOutput(log)
    output.note("fresh")
    output.note("again")
    output.close()
    assert size_of(log.with_name("hook.log.1")) == MAX_FILE_BYTES
    assert lines_of(log) == ["fresh", "again"]


async def test_a_full_disk_costs_the_hook_its_log_and_nobody_anything(tmp_path: Path) -> None:
    output = HookOutput(Path("/dev/full"))
    output.note("lost")
    output.close()
