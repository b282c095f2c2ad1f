"""Measure a fetched page: read where it was fetched, and in the parser's process, warm and at its first start.

`.venv/bin/python -m bench.pages [--rounds N]`. The page is fetched from a server on loopback both times, by the web
tool itself; the goal is that a page costs at most 10 ms more than when it is read on the loop. On a busy machine both
wait for a processor: what they had of it stands beside.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.options import parse_options
from gateway.agent.toolbox.web import PageParser, WebOptions, fetch_page
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.handler import extract_text
from gateway.parser.parser_process import ParserProcess
from gateway.worker.process_tree import read_process
from gateway.worker.protocol import ForkServerSettings

MOST_MORE_MS = 10.0
PARAGRAPH = "<p>A <a href='/x'>paragraph</a> of <b>some</b> words &amp; signs, as pages have them.</p>\n"
SIZES = {"a small page (5 kB)": 5_000, "a page (100 kB)": 100_000, "a large page (1 MB)": 1_000_000}


class LoopParser:
    """A parser that reads a page on the loop, as the web tool once did."""

    async def read_page(self, body: bytes, kind: str, charset: str, limit: int) -> str:
        return extract_text(body, kind, charset)[:limit]


def make_page(size: int) -> bytes:
    body = (PARAGRAPH * (size // len(PARAGRAPH) + 1)).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


async def serve_pages(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.readuntil(b"\r\n\r\n")
    writer.write(make_page(int(request.split(b" ")[1].strip(b"/"))))
    await writer.drain()
    writer.close()


class Cost(NamedTuple):
    """Milliseconds: until it was there, and of a processor, ours and the parser's."""

    passed: float
    ran: float


async def timed(fetch: Callable[[], Awaitable[str]], pid: int = 0) -> Cost:
    began, ran = time.perf_counter(), count_time(pid)
    await fetch()
    return Cost((time.perf_counter() - began) * 1e3, (count_time(pid) - ran) * 1e3)


def count_time(pid: int) -> float:
    parser = read_process(pid) if pid else None
    return time.process_time() + (parser.ran if parser else 0.0)


async def measure(rounds: int) -> None:
    server = await asyncio.start_server(serve_pages, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        async with server, ForkServerClient(ForkServerSettings(processes=256)) as fork_server:

            def fetching(parser: PageParser, size: int) -> Callable[[], Awaitable[str]]:
                web = WebOptions(frozenset({"127.0.0.1"}), 64_000, parser)
                return lambda: fetch_page(web, f"http://127.0.0.1:{port}/{size}")

            for size in SIZES.values():
                await fetching(LoopParser(), size)()  # libraries are loaded
            process = ParserProcess(fork_server, Path(folder) / "parser.log")
            first = await timed(fetching(process, 5_000))
            for what, size in SIZES.items():
                here, there = [], []
                for _ in range(rounds):
                    here.append(await timed(fetching(LoopParser(), size)))
                    there.append(await timed(fetching(process, size), process.pid))
                show(what, here, there)
            print(f"{'the first start':36}{first.passed:9.1f} ms")


def show(what: str, here: Sequence[Cost], there: Sequence[Cost]) -> None:
    """More is the median of what each fetch took longer than the one beside it: so the machine's mood falls out."""
    pairs = [*zip(here, there, strict=True)]
    more = statistics.median(late.passed - soon.passed for soon, late in pairs)
    ran = statistics.median(late.ran - soon.ran for soon, late in pairs)
    verdict = "met" if more <= MOST_MORE_MS else "MISSED"
    medians = [statistics.median(one.passed for one in costs) for costs in (here, there)]
    print(
        f"{what:24}{medians[0]:9.1f} ms{medians[1]:9.1f} ms{more:+9.1f} ms{ran:+9.1f} ms  "
        f"{verdict} (at most {MOST_MORE_MS:.0f} ms more)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, metavar="N")
    options = parse_options(parser, rounds=3)
    print(f"{'':22}{'on the loop':>12}{'its process':>12}{'more':>12}{'of it ran':>12}")
    asyncio.run(measure(options.rounds))


if __name__ == "__main__":
    main()
