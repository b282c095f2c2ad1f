"""Gateways share a journal, or one home takes it elsewhere: never both; who is lost is in the way for a lease alone."""

import json
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from gateway.cluster.journal_lock import LEASE_SECONDS, NodeHome, join_journal, reserve_journal
from gateway.cluster.nats.engine import NatsEngine, open_nats
from gateway.cluster.sqlite_journal import open_journal_file
from gateway.engine.interface import EngineHealth, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.errors import ConfigError, EngineError, ExitCode
from gateway.records.subjects import IN_SUBJECTS
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from tests.engine.nats_servers import NatsServer, run_servers

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

NOW = -LEASE_SECONDS  # no patience at all
ONE, OTHER, TWIN = NodeHome("one", "a:/home"), NodeHome("other", "b:/home"), NodeHome("one", "b:/copy")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with run_servers(tmp_path / "nats", 1) as (one,):
        yield one


@pytest.fixture
async def engines(server: NatsServer) -> AsyncIterator[list[NatsEngine]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(await open_nats(server.url)) for _ in range(3)]


async def test_nodes_share_a_journal_or_one_home_has_it_alone(engines: list[NatsEngine]) -> None:
    said, entered, leave = list[str](), anyio.Event(), anyio.Event()

    async def join(engine: NatsEngine, node: NodeHome) -> None:
        async with join_journal(engine, node, said.append):
            entered.set()
            await leave.wait()

    async with anyio.create_task_group() as tasks:
        async with join_journal(engines[0], ONE):
            with pytest.raises(EngineError, match="one at a:/home works on the journal"):
                async with reserve_journal(engines[1], OTHER, NOW):
                    pass
        async with reserve_journal(engines[1], OTHER, NOW):
            tasks.start_soon(join, engines[0], ONE)
            await until(lambda: "on standby: other at b:/home migrates the journal" in said, "who is waited for")
            with pytest.raises(EngineError, match="other at b:/home is at work on the journal already"):
                async with reserve_journal(engines[2], TWIN, NOW):
                    pass
            assert not entered.is_set()
        await entered.wait()
        leave.set()


async def test_a_home_is_refused_whose_node_is_called_as_another_one(engines: list[NatsEngine]) -> None:
    said = list[str]()
    async with join_journal(engines[0], ONE):
        begun = time.monotonic()
        with pytest.raises(
            ConfigError, match=r"'one' too: one at a:/home\ngive this one, at b:/copy, a name of its own"
        ):
            async with join_journal(engines[1], TWIN, said.append):
                pass
        assert time.monotonic() - begun > LEASE_SECONDS, "a container that was made anew waits for the former one"
        assert said[0] == "on standby: the name one is that of one at a:/home"
        async with join_journal(engines[1], ONE):  # the same home, after a crash
            assert await engines[1].append(NewRecord("gw.x", b""))


def begin(gateway: GatewayProcess, url: str) -> None:
    gateway.environ["GATEWAY_ENGINE"] = url
    gateway.process = gateway.spawn("run")


async def migrate(gateway: GatewayProcess) -> dict[str, object]:
    done = await anyio.to_thread.run_sync(gateway.cli, "migrate", "--to", "sqlite", "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


async def test_who_was_killed_or_stood_still_holds_nobody_up_and_writes_nothing(
    tmp_path: Path, server: NatsServer
) -> None:
    """Two gateways work, one is killed and one stopped; a third home takes the journal away, and the second wakes."""
    homes = {name: GatewayProcess(tmp_path / name / "home") for name in ("killed", "stopped", "third")}
    for name, gateway in homes.items():
        gateway.script({"user": "", "text": "I heard you."}, settings=f"node: {{name: {name}}}\nengine: {server.url}\n")
    running = [homes["killed"], homes["stopped"]]
    try:
        for gateway in running:
            begin(gateway, server.url)
        for gateway in running:
            await until(gateway._is_ready, "a gateway")
        refused = await anyio.to_thread.run_sync(homes["third"].cli, "migrate", "--to", "sqlite")
        assert re.search("killed at .* and stopped at .* work on the journal", refused.stderr), refused.stderr
        killed, stopped = (one.process for one in running)
        assert killed
        assert stopped
        killed.kill()
        stopped.send_signal(signal.SIGSTOP)
        moved = await migrate(homes["third"])
        assert moved["records"]
        async with await open_nats(server.url, takes_marked=True) as engine:
            end = await engine.get_journal().read_last_seq()
            stopped.send_signal(signal.SIGCONT)
            assert await anyio.to_thread.run_sync(stopped.wait) == ExitCode.RESTART
            assert await engine.get_journal().read_last_seq() == end
    finally:
        for gateway in running:
            gateway.kill()


async def test_who_stood_by_while_a_journal_came_works_where_it_stands_now(tmp_path: Path, server: NatsServer) -> None:
    async with await open_sqlite(tmp_path / "journal.db") as engine:
        await engine.append(NewRecord("gw.x", b""))
    with GatewayProcess(tmp_path / "home") as gateway:
        settings = f"engine: {server.url}\n"
        gateway.script({"user": "", "text": "I heard you."}, settings=settings)
        async with await open_nats(server.url) as engine:
            async with reserve_journal(engine, OTHER, NOW):
                gateway.process = gateway.spawn("run")
                log = gateway.home.log
                await until(lambda: log.exists() and "on standby: other" in log.read_text(), "the gateway")
                await fill(engine, tmp_path / "journal.db")
            await until(gateway._is_ready, "the gateway")
        assert (await anyio.to_thread.run_sync(gateway.say, "hello"))["reply"] == "I heard you."
        async with await open_nats(server.url) as engine:
            (said,) = await engine.read(IN_SUBJECTS)
            assert await engine.last(said.subject) == said


async def fill(engine: NatsEngine, path: Path) -> None:
    file, servers = await open_journal_file(path), engine.get_journal()
    await servers.fill(file.read(), file.read_last_seq(), "filling here", lambda _done: None)
    await servers.set_mark("")
    file.close()


async def test_servers_without_room_are_told_of_until_they_have_some(engines: list[NatsEngine]) -> None:
    """A journal that only reads looks well to whoever asks how it fares."""
    engine = engines[0]
    stream = (await engine.inspect()).streams[1]["config"]

    async def bound(size: int) -> None:
        await engine._connection.call(f"STREAM.UPDATE.{stream['name']}", **(stream | {"max_bytes": size}))

    async def becomes(words: str) -> None:
        async def find() -> EngineHealth | None:
            return health if words in (health := await engine.health()).detail else None

        health = await until(find, words)
        assert health.ok == (words == "well")

    async with join_journal(engine, ONE):
        await becomes("well")
        await bound(1)
        remedy = f"give it more, by max_file_store in nats.conf or max_bytes of the stream {stream['name']}"
        await becomes(f"has no room: maximum bytes exceeded; {remedy}")
        await bound(-1)
        await becomes("well")
        assert await engine.append(NewRecord("gw.x", b""))
