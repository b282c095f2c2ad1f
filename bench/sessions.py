"""Very many conversations on one NATS server: its memory, restarts, a turn, a search.

`.venv/bin/python -m bench.sessions [--sessions N] [--folder DIR]`. The journal is made by a generator: in each of them
there was one turn, ten days ago, of which nothing is owed any more; what then remains of it is its chain. A gateway
with a model that answers at once works on it. All is measured with a thousand conversations as well, in the same run.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.spine import SETTINGS, measure
from gateway import record_subjects, records
from gateway.engine.nats.engine import open_nats
from gateway.engine.stored_journal import StoredRecord
from gateway.testing import GatewayProcess
from gateway.transcript import Entry
from tests.engine.nats_servers import NatsServer, run_servers, wait_until_ready

FEW = 1000
AGE = 10 * 86400.0
PATIENCE = 3600.0
SECONDS, PEOPLE = 10.0, 4
ANSWER = "The rain goes east, and the evening stays dry; take the bicycle."


def make_records(count: int) -> Iterator[StoredRecord]:
    at, seq = time.time() - AGE, 0
    for number in range(count):
        key, name = f"agent:main:terminal:dm:s{number}", f"{number:012x}"
        subject = record_subjects.session_subject_of("turn", key)
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


def read_memory(pid: int) -> float:
    """What is in its memory, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
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


def is_indexed(gateway: GatewayProcess) -> bool:
    return not gateway.call("status")["search"]["progress"]


def show(what: str, value: str) -> None:
    print(f"{what:46}{value}", flush=True)


def try_one(folder: Path, count: int) -> None:
    print(f"\n{count:,} conversations")
    with ExitStack() as stack:
        (server,) = stack.enter_context(run_servers(folder / "nats", 1))
        assert server.process
        empty = read_memory(server.process.pid)
        show("made in", f"{timed(lambda: asyncio.run(fill(server, count))):.0f} s")
        per_session = (read_memory(server.process.pid) - empty) / count
        show("memory of the server, a conversation", f"{per_session:,.0f} bytes")
        show("killed, and ready again after", f"{timed(lambda: restart(server)):.1f} s")
        per_session = (read_memory(server.process.pid) - empty) / count
        show("its memory then, a conversation", f"{per_session:,.0f} bytes")
        gateway = stack.enter_context(GatewayProcess(folder / "home"))
        settings = SETTINGS + f"engine: {server.url}\njournal: {{retention: 0}}\n"
        gateway.script({"user": "", "answers": [{"text": "hello yourself"}]}, settings=settings)
        show("a gateway is ready after", f"{timed(lambda: gateway.start('--log-level', 'error')):.1f} s")
        assert gateway.process
        show("memory of the gateway", f"{read_memory(gateway.process.pid) / 1e6:.0f} MB")
        taken = asyncio.run(measure(gateway.home.socket, PEOPLE, SECONDS))
        show("a turn, while it is being indexed", f"p50 {statistics.median(taken) * 1e3:.0f} ms ({len(taken)})")
        show("indexed after", f"{timed(lambda: gateway.until(lambda: is_indexed(gateway), PATIENCE)):.0f} s")
        taken = asyncio.run(measure(gateway.home.socket, PEOPLE, SECONDS))
        show("a turn then", f"p50 {statistics.median(taken) * 1e3:.0f} ms ({len(taken)})")
        wanted = {"query": f"town{count // 2}"}
        show("a search that finds one", f"{timed(lambda: gateway.call('sessions.search', wanted)) * 1e3:.0f} ms")
        show("memory of the gateway then", f"{read_memory(gateway.process.pid) / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk to measure")
    options = parser.parse_args()
    for count in (FEW, options.sessions):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            try_one(Path(folder), count)


if __name__ == "__main__":
    main()
