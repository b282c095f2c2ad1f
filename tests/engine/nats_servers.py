"""Real servers of NATS on loopback: one alone, or three that keep everything together."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.cluster.nats.engine import NatsEngine
from gateway.config.home import get_process_environment
from gateway.errors import GatewayError
from gateway.testing.patience import wait_until
from tests.http_server import find_free_ports
from tests.spine import until


class NatsServer:
    """One process, which may be killed and begun again on what it kept."""

    def __init__(self, folder: Path, name: str, ports: Sequence[int], routes: Sequence[int] = ()) -> None:
        self.port, self.monitor, self.cluster_port = ports
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self._name, self._routes = name, routes
        self.configure()
        self.environ: Mapping[str, str] = {}  # beside that of the tests
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, sync_interval: str = "always") -> None:
        """How often it writes to the disk; counts from the next start on."""
        store = f'store_dir: "{self.folder / "store"}"'
        lines = [
            f"server_name: {self._name}",
            "host: 127.0.0.1",
            f"port: {self.port}",
            f"http: 127.0.0.1:{self.monitor}",
            f"jetstream {{\n  {store}\n  sync_interval: {sync_interval}\n}}",
        ]
        if self._routes:
            urls = ", ".join(f"nats://127.0.0.1:{port}" for port in self._routes)
            name = f"test-{min(self._routes)}"  # what takes a port of ours by mistake does not take part
            lines.append(f"cluster {{\n  name: {name}\n  listen: 127.0.0.1:{self.cluster_port}\n  routes: [{urls}]\n}}")
        (self.folder / "nats.conf").write_text("\n".join(lines) + "\n")

    def start(self) -> None:
        program = Path(sys.executable).parent / "nats-server"
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program, "--config", self.folder / "nats.conf"],
                env={**get_process_environment(), **self.environ},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """It writes down what it holds, and ends."""
        assert self.process
        self.process.terminate()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process; it stands still when this returns."""
        assert self.process
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        assert self.process
        self.process.send_signal(signal.SIGCONT)

    def is_ready(self) -> bool:
        """Asks whether it takes part in keeping streams."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/jsz?meta=1", timeout=2) as answer:
                state = json.load(answer)
        except (OSError, ValueError, http.client.HTTPException):
            return False
        meta = state.get("meta_cluster")
        if meta is None:
            return True
        return bool(meta.get("leader")) and not any(one.get("offline") for one in meta.get("replicas") or ())

    def find_leader(self, stream: str) -> str:
        """The name of the server that leads this stream, as this one sees it; empty while none is elected."""
        url = f"http://127.0.0.1:{self.monitor}/jsz?streams=1"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                accounts = json.load(answer).get("account_details") or []
        except (OSError, ValueError, http.client.HTTPException):
            return ""
        found = (one for account in accounts for one in account.get("stream_detail") or [])
        return next((one.get("cluster", {}).get("leader", "") for one in found if one["name"] == stream), "")

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"


@contextmanager
def run_servers(folder: Path, count: int) -> Iterator[list[NatsServer]]:
    ports = find_free_ports(3 * count)
    groups = [ports[3 * n : 3 * n + 3] for n in range(count)]
    routes = [group[2] for group in groups] if count > 1 else []
    servers = [NatsServer(folder, f"n{n}", group, routes) for n, group in enumerate(groups)]
    try:
        for server in servers:
            server.start()
        wait_until_ready(servers)
        yield servers
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


async def find_leader(engine: NatsEngine) -> tuple[str, str]:
    """The first stream of records, and the name of the server that leads it: as soon as one does, and not before."""

    async def find() -> tuple[str, str] | None:
        stream = (await engine.inspect()).streams[0]
        leader = stream["cluster"].get("leader")
        return (stream["config"]["name"], leader) if leader else None

    found: tuple[str, str] = await until(find, "a leader")
    return found


def wait_until_ready(servers: Sequence[NatsServer]) -> None:
    try:
        wait_until(lambda: all(server.is_ready() for server in servers), what="the NATS servers")
    except GatewayError as error:
        logs = "\n".join((server.folder / "log").read_text()[-2000:] for server in servers)
        raise TimeoutError(f"{error}\n{logs}") from error
