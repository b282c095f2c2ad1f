"""What a fetched page costs: read where it was fetched, and in the parser's process, warm and at its first start.

`.venv/bin/python -m bench.pages [--rounds N]`. The page is fetched from a server on loopback both times, by the web
tool itself; the goal is that a page costs at most 10 ms more than when it is read on the loop.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from gateway.agent.toolbox.web import PageParser, WebOptions, fetch_page
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.handler import extract_text
from gateway.parser.parser_process import ParserProcess
from gateway.worker.protocol import ForkServerSettings

MOST_MORE_MS = 10.0
PARAGRAPH = "<p>A <a href='/x'>paragraph</a> of <b>some</b> words &amp; signs, as pages have them.</p>\n"
SIZES = {"a small page (5 kB)": 5_000, "a page (100 kB)": 100_000, "a large page (1 MB)": 1_000_000}


class LoopParser:
    """Reads a page where it is asked to, as the web tool did before."""

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


async def timed(fetch: Callable[[], Awaitable[str]]) -> float:
    began = time.perf_counter()
    await fetch()
    return (time.perf_counter() - began) * 1e3


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
                    there.append(await timed(fetching(process, size)))
                show(what, statistics.median(here), statistics.median(there))
            print(f"{'the first start, with a small page':34}{'':12}{first:9.1f} ms")


def show(what: str, here: float, there: float) -> None:
    verdict = "met" if there - here <= MOST_MORE_MS else "MISSED"
    print(
        f"{what:34}{here:9.1f} ms{there:9.1f} ms{there - here:+9.1f} ms  {verdict} (at most {MOST_MORE_MS:.0f} ms more)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, metavar="N")
    options = parser.parse_args()
    print(f"{'':34}{'on the loop':>12}{'in its process':>15}")
    asyncio.run(measure(options.rounds))


if __name__ == "__main__":
    main()
