"""Doctor's findings about real NATS servers that do not keep a journal as they should, and about those that do.

And what `config show` has from them.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile

import anyio
import pytest

from gateway.cluster.nats.engine import open_nats
from gateway.engine.interface import NewRecord
from gateway.errors import EngineError
from gateway.records import records, subjects
from gateway.testing import GatewayProcess
from tests.engine.nats_servers import NatsServer, run_servers
from tests.http_server import find_free_ports

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def run_anew(server: NatsServer, *replaced: tuple[str, str]) -> None:
    """With another nats.conf; what it kept stays."""
    server.kill()
    path = server.folder / "nats.conf"
    text = path.read_text()
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    server.start()


async def fill(url: str) -> None:
    """Until the account is full."""
    async with await open_nats(url, "a", "b") as engine:
        with suppress(EngineError):
            while True:
                await engine.append(NewRecord("gw.x", b"x" * 1000))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[NatsServer]]:
    with run_servers(tmp_path_factory.mktemp("nats-3"), 3) as servers:
        yield servers


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as one:
        yield one


def say(gateway: GatewayProcess, engine: str, monitor: str = "") -> str:
    """Return doctor's findings about the journal."""
    gateway.configure(f"engine: {engine}\nmodel: {{provider: demo}}\n")
    gateway.environ["NATS_MONITOR"] = monitor
    said = " ".join(gateway.cli("doctor").stdout.split())
    return said.partition("journal:")[2].partition(" disk space:")[0].strip()


async def limit_files(url: str) -> None:
    """Limit the room of conversations' files to their present size."""
    async with await open_nats(url) as engine:
        with TemporaryFile() as file:
            file.write(b"x" * 200_000)
            file.seek(0)
            await engine.files.put("net/7/a", file, 3600)
        health = await engine.health()
        assert health.file_size > 200_000 > health.size
        files = (await engine.inspect()).streams[2]
        assert files["state"]["bytes"] == health.file_size
        config = files["config"] | {"max_bytes": health.file_size}
        await engine._connection.call(f"STREAM.UPDATE.{config['name']}", **config)


async def put_rule(url: str) -> None:
    rule = records.ChatRuleRecord(chat="telegram:-5", values={"answer": "always"})
    async with await open_nats(url) as engine:
        await engine.append(NewRecord(subjects.chat_subject_of(rule.chat), records.encode(rule)))


def test_what_admins_set_in_chats_is_among_the_settings(gateway: GatewayProcess, three: list[NatsServer]) -> None:
    url = f"{','.join(one.url for one in three)}/rules"  # who knows one may not have heard of the others yet
    anyio.run(put_rule, url)
    gateway.configure(f"engine: {url}\nmodel: {{provider: demo}}\n")
    assert "# chats.telegram:-5.answer: always (by" in gateway.cli("config", "show").stdout


def test_servers_that_are_well(gateway: GatewayProcess, three: list[NatsServer]) -> None:
    monitors = ",".join(f"http://127.0.0.1:{one.monitor}" for one in three)
    urls = ",".join(one.url for one in three)
    gateway.until(
        lambda: say(gateway, urls, monitors) == "fine"
    )  # servers that just came up may lag behind for a moment


def test_a_cluster_of_two_keeps_each_stream_once(gateway: GatewayProcess, tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 2) as servers:
        gateway.configure(f"engine: {servers[0].url},{servers[1].url}\nmodel: {{provider: demo}}\n")
        gateway.start()
        gateway.stop()
        said = " ".join(gateway.cli("doctor").stdout.split())
        for name in ("hermes", "hermes-keys", "hermes-files"):
            assert f"1 of the servers keep the stream {name!r}" in said
            assert f"nats stream edit {name} --replicas 3" in said


def test_one_of_three_that_is_not_there(gateway: GatewayProcess, three: list[NatsServer]) -> None:
    anyio.run(limit_files, f"{three[0].url}/part")
    said = say(gateway, f"{three[0].url}/part")
    assert "names 1 of the servers of a cluster" in said
    assert "the stream 'part-files' has" in said
    assert "no file is taken" in said
    assert "name three: engine:" in said
    three[2].kill()
    gateway.until(lambda: "the server n2 is" in say(gateway, f"{three[0].url}/part"), 60)
    on, off = "jetstream {\n", "jetstream {\n  enabled: false\n"  # as a full disk does it
    run_anew(three[2], (on, off))
    monitor = f"http://127.0.0.1:{three[2].monitor}"
    is_off = "JetStream is off on the NATS server n2"
    gateway.until(lambda: is_off in say(gateway, f"{three[0].url}/part", monitor), 60)
    run_anew(three[2], (off, on))


def test_a_server_alone_in_all_that_it_may_lack(gateway: GatewayProcess, tmp_path: Path) -> None:
    with run_servers(tmp_path / "nats", 1) as (server,):
        run_anew(server, ("sync_interval: always", 'sync_interval: "2m"'), ("host:", "max_payload: 100000\nhost:"))
        (nobody,) = find_free_ports(1)
        said = say(gateway, server.url, f"http://127.0.0.1:{server.monitor},http://127.0.0.1:{nobody}")
        assert "writes to its disk every 120 s" in said
        assert "jetstream { sync_interval: always }" in said
        assert f"127.0.0.1:{nobody} cannot be read" in said
        assert "messages of 100000 bytes at most" in said
        assert "servers" not in said
        named = ",".join([server.url, f"nats://localhost:{server.port}", server.url])
        assert "3 servers are named, and the one that answers is in no cluster" in say(gateway, named)
        limited = "accounts { A: { jetstream: {max_disk: 100K}, users: [{user: a, password: b}] } }\nhost:"
        run_anew(server, ("max_payload: 100000\nhost:", limited), ('sync_interval: "2m"', "sync_interval: always"))
        gateway.environ |= {"NATS_USER": "a", "NATS_PASSWORD": "b"}
        assert say(gateway, server.url) == "fine"
        anyio.run(fill, server.url)
        assert "the account on the NATS servers has" in say(gateway, server.url)
        run_anew(server, ("jetstream {\n", "jetstream {\n  enabled: false\n"))
        assert "is JetStream on?" in say(gateway, server.url)
