"""A text that is hard to read costs its caller two seconds at most, and others nothing."""

import os
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.parser_process import TIME_LIMIT, WAIT_LIMIT, ParserProcess
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.sandbox import find_support
from tests.spine import until
from tests.waits import Stopwatch

LONG_COMMENTS = b"<!--" * 100_000
HARD_PATTERN = "(a+)+b"


@pytest.fixture
async def fork_server():
    async with ForkServerClient(ForkServerSettings(processes=256)) as server:
        yield server


@pytest.fixture
def parser(fork_server, tmp_path):
    return ParserProcess(fork_server, tmp_path / "parser.log")


def is_alive(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def surroundings_of(pid):
    """Its network, its environment, and what the kernel says of its rights."""
    at = Path(f"/proc/{pid}")
    rights = dict(line.split(":\t", 1) for line in (at / "status").read_text().splitlines())
    return (at / "ns/net").readlink(), (at / "environ").read_bytes(), rights


async def until_gone(pid):
    await until(lambda: not is_alive(pid))


def read_page(parser):
    return parser.read_page(LONG_COMMENTS, "text/html", "", 100)


def try_pattern(parser):
    return parser.match(HARD_PATTERN, ["a" * 64])


async def test_one_process_reads_all_and_is_started_when_it_is_first_wanted(parser):
    assert parser.pid == 0
    assert await parser.read_page(b"<p>one</p>", "text/html", "", 100) == "one"
    first = parser.pid
    assert await parser.match("a|b+", ["c", "bb"])
    assert not await parser.match("a|b+", ["c", "bba"])
    assert await parser.compact(b'{"result": {"content": [{"type": "text", "text": "1234567"}]}}', 5) == (
        b'{"result": {"content": [{"type": "text", "text": "12345"}]}}'
    )
    assert parser.pid == first
    assert first not in (0, os.getpid())


@pytest.mark.parametrize("ask", [read_page, try_pattern])
async def test_who_is_late_is_told_so_and_the_next_gets_a_new_process(parser, ask):
    assert await parser.read_page(b"warm", "text/plain", "", 100) == "warm"
    first = parser.pid
    with pytest.raises(AgentError, match="could not be read within 2 s"), Stopwatch() as watch:
        await ask(parser)
    assert watch.seconds < WAIT_LIMIT + 5
    assert await parser.read_page(b"next", "text/plain", "", 100) == "next"
    assert parser.pid != first
    await until_gone(first)


async def test_a_page_that_takes_its_time_uses_up_that_of_no_other(parser):
    told = []

    async def read(body):
        try:
            told.append(await parser.read_page(body, "text/html", "", 100))
        except AgentError as error:
            told.append(str(error))

    async with anyio.create_task_group() as tasks:
        for body in (LONG_COMMENTS, LONG_COMMENTS, b"short"):
            tasks.start_soon(read, body)
    assert told == [f"the page could not be read within {TIME_LIMIT:g} s"] * 2 + ["short"]


async def test_who_gives_up_leaves_no_process_behind_that_goes_on(parser):
    assert await parser.read_page(b"warm", "text/plain", "", 100) == "warm"
    first = parser.pid
    with anyio.move_on_after(0.2):
        await parser.read_page(LONG_COMMENTS, "text/html", "", 100)
    assert parser.pid == 0
    await until_gone(first)


async def test_it_ends_when_nobody_wants_it_and_is_started_again(fork_server, tmp_path):
    parser = ParserProcess(fork_server, tmp_path / "parser.log", idle=0.05)
    assert await parser.read_page(b"one", "text/plain", "", 100) == "one"
    await until_gone(parser.pid)
    assert await parser.read_page(b"two", "text/plain", "", 100) == "two"


async def test_what_needs_more_memory_than_there_is_fails_by_itself(parser):
    with pytest.raises(AgentError, match="could not be read"):
        await parser.compact(b"[" + b"{}," * 8_000_000 + b"{}]", 100)
    assert await parser.read_page(b"next", "text/plain", "", 100) == "next"


async def test_it_has_neither_network_nor_environment_and_one_that_died_is_replaced(parser):
    assert await parser.read_page(b"one", "text/plain", "", 100) == "one"
    (ours, _, _), (its, environ, rights) = surroundings_of(os.getpid()), surroundings_of(parser.pid)
    assert ours != its
    assert environ == b""
    assert rights["NoNewPrivs"] == "1"
    assert rights["Seccomp"] == ("2" if find_support().has_filter else "0")
    os.kill(parser.pid, 9)
    await until(lambda: not parser.pid)
    assert await parser.read_page(b"two", "text/plain", "", 100) == "two"


@pytest.mark.parametrize(
    ("charset", "body", "text"),
    [
        ("windows-1251", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"),
        ("Shift_JIS", b"\x93\xfa\x96{", "日本"),
        ("ISO-8859-2", b"\xb9", "š"),
        ("punycode", b"caf-dma", "caf-dma"),
        ("unicode_escape", b"\\x41", "\\x41"),
        ("no-such-charset", "é".encode(), "é"),
        ("", "é".encode(), "é"),
    ],
)
async def test_a_charset_is_one_of_a_list_and_else_utf_8(parser, charset, body, text):
    assert await parser.read_page(body, "text/plain", charset, 100) == text


async def test_a_page_has_its_text_however_often_a_tag_is_opened(parser):
    body = b"<svg>" * 5000 + b"x" + b"</svg>" + b"<style>y</style>" * 1000 + b"<p>seen"
    assert await parser.read_page(body, "text/html", "", 100) == "seen"


async def test_a_page_is_not_told_on_the_wire_and_leaves_nothing_to_the_next(parser):
    long, short = b"a\xff\n" * 700_000, b"short"
    assert await parser.read_page(long, "text/plain", "latin1", 4) == "aÿ\na"
    assert await parser.read_page(short, "text/plain", "", 100) == "short"
    assert await parser.match("h.*", ["hook", "tool"])
    assert await parser.read_page(b"", "text/plain", "", 100) == ""
    assert await parser.read_page(long, "text/plain", "latin1", 10**7) == long.decode("latin1").strip()


def count_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_process_that_is_ended_leaves_no_descriptor(parser):
    async def read_and_end():
        await parser.read_page(b"a page", "text/plain", "", 100)
        pid = parser.pid
        os.kill(pid, 9)
        await until(lambda: parser.pid == 0)

    await read_and_end()
    before = count_descriptors()
    for _ in range(3):
        await read_and_end()
    assert count_descriptors() == before
