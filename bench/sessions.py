"""Very many conversations on one NATS server: its memory, restarts, a turn, a search.

`.venv/bin/python -m bench.sessions [--sessions N] [--rounds N] [--folder DIR]`. The journal is made by a generator: in
each of them there was one turn, ten days ago, of which nothing is owed any more; what then remains of it is its chain.
The index for searches is folded of the same records. A gateway with a model that answers at once works on it, and
beside it, in turn, one with a thousand conversations.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from bench.options import parse_options
from bench.spine import SETTINGS, measure
from gateway.cluster.nats.engine import open_nats
from gateway.cluster.stored_journal import StoredRecord
from gateway.engine.interface import Record
from gateway.messages.transcript import Entry
from gateway.records import records, subjects
from gateway.sessions.search_index import SearchIndex
from gateway.testing import GatewayProcess
from tests.engine.nats_servers import NatsServer, run_servers, wait_until_ready

FEW, MANY = 1000, 1_000_000
AGE = 10 * 86400.0
SECONDS, PEOPLE, SEARCHES = 5.0, 4, 5
PAGE = 3000
ANSWER = "The rain goes east, and the evening stays dry; take the bicycle."


@dataclass
class Side:
    """A server with so many conversations, and a gateway on it; times in seconds, memory in bytes."""

    count: int
    server: NatsServer
    gateway: GatewayProcess
    made_in: float
    memory: float  # of the server, for each conversation
    restart: float  # of the server, after a kill
    start: float  # of the gateway
    turns: list[float] = field(default_factory=list)

    def measure(self, seconds: float) -> None:
        self.turns += asyncio.run(measure(self.gateway.home.socket, PEOPLE, seconds))

    @property
    def turn(self) -> float:
        return statistics.median(self.turns)

    def search(self) -> float:
        """Search for one word that is in one of them; the words differ."""
        return statistics.median(timed(partial(self._find, place)) for place in range(SEARCHES))

    def _find(self, place: int) -> None:
        word = f"town{(place + 1) * self.count // (SEARCHES + 1)}"
        hits = self.gateway.call("sessions.search", {"query": word})["hits"]
        if word not in str(hits):
            raise RuntimeError(f"{word} is not found: {hits}")


def open_side(stack: ExitStack, folder: Path, count: int) -> Side:
    (server,) = stack.enter_context(run_servers(folder / "nats", 1))
    empty = read_memory(server)
    gateway = stack.enter_context(GatewayProcess(folder / "home", forks=False))
    settings = SETTINGS + f"engine: {server.url}\njournal: {{retention: 0}}\n"
    gateway.script({"user": "", "answers": [{"text": "hello yourself"}]}, settings=settings)
    made_in = timed(lambda: make(server, gateway.home.search, count))
    memory = (read_memory(server) - empty) / count
    restart_time = timed(lambda: restart(server))
    start = timed(lambda: gateway.start("--log-level", "error"))
    return Side(count, server, gateway, made_in, memory, restart_time, start)


def make(server: NatsServer, index: Path, count: int) -> None:
    """The server need not write each batch to the disk before it takes the next one: only here it does not."""
    server.stop()
    server.configure("2m")
    server.start()
    wait_until_ready([server])
    with ProcessPoolExecutor(1, get_context("spawn")) as beside:
        folded = beside.submit(fold, index, count)
        asyncio.run(fill(server, count))
        folded.result()
    server.stop()
    server.configure()
    server.start()
    wait_until_ready([server])
    asyncio.run(check(server))


def fold(path: Path, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    index, made = SearchIndex(path), make_records(count)
    while page := [Record(one.seq, one.subject, one.data, one.ts) for one in islice(made, PAGE)]:
        index.fold(page, page[-1].seq)
    index.db.close()


def make_records(count: int) -> Iterator[StoredRecord]:
    at, seq = time.time() - AGE, 0
    for number in range(count):
        key, name = f"agent:main:terminal:dm:s{number}", f"{number:012x}"
        subject = subjects.session_subject_of("turn", key)
        entries = (Entry("user", f"what will the weather be in town{number}"), Entry("assistant", ANSWER))
        chain = (
            records.SessionOpened(session_id=name, session_key=key, platform="terminal", at=at),
            records.Claim(turn_id=name, by="gateway", on=seq + 1, at=at),
            records.TurnEnded(upto=seq + 1, turn_id=name, entries=entries, at=at),
        )
        for record in chain:
            seq += 1
            yield StoredRecord(seq, subject, records.encode(record), at)


async def fill(server: NatsServer, count: int) -> None:
    async with await open_nats(server.url, takes_marked=True) as engine:
        journal = engine.get_journal()
        await journal.fill(make_records(count), count * 3, "", lambda _number: None)


def read_memory(server: NatsServer) -> float:
    """Return the server's resident memory in bytes."""
    assert server.process
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def restart(server: NatsServer) -> None:
    server.kill()
    server.start()
    wait_until_ready([server])
    asyncio.run(check(server))


async def check(server: NatsServer) -> None:
    """Its streams are there when it says that it is ready, or somewhat later."""
    while True:
        try:
            async with await open_nats(server.url):
                return
        except Exception:
            await asyncio.sleep(0.05)


def show(what: str, *values: str) -> None:
    print(f"{what:40}" + "".join(f"{value:>16}" for value in values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=MANY, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to measure")
    options = parse_options(parser, sessions=2 * FEW, rounds=1)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        sides = [open_side(stack, Path(folder) / str(count), count) for count in (FEW, options.sessions)]
        for _ in range(options.rounds):
            for side in sides:
                side.measure(SECONDS)
        show("conversations", *(f"{side.count:,}" for side in sides))
        show("made in", *(f"{side.made_in:.0f} s" for side in sides))
        show("memory of the server, a conversation", *(f"{side.memory:,.0f} bytes" for side in sides))
        show("killed, and ready again after", *(f"{side.restart:.1f} s" for side in sides))
        show("a gateway is ready after", *(f"{side.start:.1f} s" for side in sides))
        show("a turn, half of them within", *(f"{side.turn * 1e3:.0f} ms" for side in sides))
        show("a search that finds one", *(f"{side.search() * 1e3:.0f} ms" for side in sides))


if __name__ == "__main__":
    main()
