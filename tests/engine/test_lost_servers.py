"""The journal on NATS while servers are killed or hang under load."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.engine.interface import ConsumerSpec, Engine, NewRecord
from gateway.errors import EngineError
from tests.engine.conftest import read_all
from tests.engine.nats_servers import NatsServer, find_leader, run_servers, wait_until_ready
from tests.spine import until

pytestmark = pytest.mark.thorough

CHAINS = 6


class Load:
    """Writers, each on a chain of its own, that note what was acknowledged; and takers of it all."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.said: Counter[str] = Counter()
        self.got: Counter[str] = Counter()
        self.heard: list[tuple[int, str]] = []
        self.writing = 0
        self.is_over = False

    async def write(self, chain: int) -> None:
        last, number = 0, 0
        self.writing += 1
        while not self.is_over:
            number += 1
            name = f"{chain}-{number}".encode()
            puts = [
                NewRecord(f"chain.{chain}", name, expect=last),
                NewRecord(f"in.{chain}", name, msg_id=f"m{chain}-{number}"),
            ]
            try:
                last = (await self.engine.append(*puts))[0]
                self.said[name.decode()] += 1
                await anyio.sleep(0.02)
            except EngineError:
                number -= 1
                await anyio.sleep(0.05)
        self.writing -= 1

    async def take(self) -> None:
        consumer = await self.engine.consumer(ConsumerSpec("all", ("in.*",), ack_wait=5))
        while self.writing or not self.got.keys() >= self.said.keys():
            async with anyio.create_task_group() as tasks:
                for delivery in await consumer.fetch(100, 1):
                    self.got[delivery.record.data.decode()] += 1
                    tasks.start_soon(delivery.ack)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            for chain in range(CHAINS):
                tasks.start_soon(self.write, chain)
            tasks.start_soon(self.take)
            tasks.start_soon(self.listen)
            await until(lambda: len(self.said) > 50)
            yield
            await self.go_on()
            self.is_over = True
            await until(lambda: not self.writing and self.said.keys() <= {name for _, name in self.heard}, limit=60)
            self.listening.cancel()

    async def listen(self) -> None:
        tail = await self.engine.tail("in.*")
        with anyio.CancelScope() as self.listening:
            async for record in tail:
                self.heard.append((record.seq, record.data.decode()))

    async def go_on(self) -> None:
        """Something more is written."""
        before = len(self.said)
        await until(lambda: len(self.said) > before + 30, limit=120)

    async def audit(self) -> None:
        """What was said stands there once, each chain in its order, and came to whoever takes it, and listens."""
        assert self.heard == sorted(set(self.heard))
        for where in ("chain", "in"):
            kept = Counter(record.data.decode() for record in await read_all(self.engine, f"{where}.*"))
            assert not self.said.keys() - kept.keys()
            assert max(kept.values()) == 1
        assert self.got.keys() >= self.said.keys()
        for chain in range(CHAINS):
            numbers = [int(one.data.partition(b"-")[2]) for one in await read_all(self.engine, f"chain.{chain}")]
            assert numbers == list(range(1, len(numbers) + 1))


async def find_leading(engine: NatsEngine, servers: list[NatsServer]) -> NatsServer:
    _, name = await find_leader(engine)
    return next(one for one in servers if one.folder.name == name)


async def test_a_server_that_is_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 1) as servers:
        async with await open_nats(f"{servers[0].url}/kills") as engine:
            load = Load(engine)
            async with load.running():
                for _ in range(3):
                    servers[0].kill()
                    await anyio.sleep(0.5)
                    servers[0].start()
                    await load.go_on()
            await load.audit()


async def test_a_leader_that_is_killed_under_load_loses_nothing(tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 3) as servers:
        async with await open_nats(f"{','.join(one.url for one in servers)}/kills") as engine:
            load = Load(engine)
            async with load.running():
                for _ in range(2):
                    leader = await find_leading(engine, servers)
                    leader.kill()
                    await load.go_on()
                    leader.start()
                    await anyio.to_thread.run_sync(wait_until_ready, servers)
            await load.audit()
        servers[2].kill()
        async with await open_nats(f"{servers[0].url}/new") as engine:  # it names one, and two can be seen
            config = (await engine._connection.call("STREAM.INFO.new"))["config"]
            assert config["num_replicas"] == 3


async def test_what_was_acknowledged_is_read_also_from_a_server_that_lags(tmp_path: Path) -> None:
    """One of three stands still for a moment, again and again, and answers then as before."""
    with run_servers(tmp_path / "nats", 3) as servers:
        async with await open_nats(f"{','.join(one.url for one in servers)}/kills") as engine:
            await engine.consumer(ConsumerSpec("c", ("a.*",)))
            ours = engine._connection.client.connected_url
            leader = await find_leading(engine, servers)
            slow = next(one for one in servers if one is not leader and ours and one.port != ours.port)
            written = 0

            async def look(subject: str) -> None:
                records = await engine.read("a.*", limit=10_000)
                last = await engine.last(subject)
                assert (len(records), last and last.seq) == (written, records[-1].seq)

            async def is_counted() -> bool:
                return await engine.depth("c") == written

            for number in range(6):
                slow.pause()
                for _ in range(10):
                    written += len(await engine.append(*(NewRecord(f"a.{number}", bytes(200)) for _ in range(40))))
                slow.resume()
                async with anyio.create_task_group() as tasks:
                    for _ in range(8):
                        tasks.start_soon(look, f"a.{number}")
                await until(is_counted, f"{written} before the consumer", 60)


async def test_a_server_that_stands_still_holds_up_and_loses_nothing(tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 1) as servers:
        async with await open_nats(f"{servers[0].url}/kills") as engine:
            load = Load(engine)
            async with load.running():
                servers[0].pause()
                assert "does not answer within 2 s" in (await engine.health()).detail
                await anyio.sleep(8)  # longer than an answer is waited for
                servers[0].resume()
            await load.audit()


async def test_one_of_several_that_stands_still_is_left_for_another(tmp_path: Path) -> None:
    """It does not say that it is gone, and more was sent to it than the line takes."""
    with run_servers(tmp_path / "nats", 3) as servers:
        async with await open_nats(f"{','.join(one.url for one in servers)}/kills") as engine:
            load, large = Load(engine), [NewRecord(f"large.{number}", bytes(900_000)) for number in range(20)]
            async with load.running():
                ours = engine._connection.client.connected_url
                (still,) = [one for one in servers if ours and one.port == ours.port]
                still.pause()
                async with anyio.create_task_group() as tasks:
                    for put in large:
                        tasks.start_soon(engine.append, put)
                await load.go_on()
            await load.audit()
            assert {record.subject for record in await engine.read("large.*")} == {put.subject for put in large}
            still.resume()
