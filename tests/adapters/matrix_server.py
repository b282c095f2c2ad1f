"""A real homeserver of Matrix, Synapse, in an environment of its own: made once on a machine, started once in a run."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from gateway.testing.patience import Patience
from tests.http_server import find_free_ports

SERVER = "localhost"
PATIENCE = 60.0  # seconds until it answers
MUCH = {"per_second": 10_000, "burst_count": 10_000}
RATES = ("message", "registration", "login.address", "login.account", "joins.local", "joins.remote", "room_creation")


@contextmanager
def serving_matrix(python: Path, folder: Path) -> Iterator[str]:
    """Yield its address while it runs. Anyone can create an account."""
    (port,) = find_free_ports(1)
    (folder / "homeserver.yaml").write_text(json.dumps(configure(folder, port)))
    (folder / "log.yaml").write_text(json.dumps({"version": 1, "root": {"level": "WARNING"}}))
    command = [str(python), "-m", "synapse.app.homeserver", "-c", str(folder / "homeserver.yaml")]
    subprocess.run([*command, "--generate-keys"], check=True, capture_output=True, timeout=PATIENCE)
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(process, url, folder / "said")
        yield url
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def configure(folder: Path, port: int) -> dict[str, Any]:
    """Configure a server without federation and without rate limits."""
    rates: dict[str, Any] = {}
    for name in RATES:
        kind, _, part = name.partition(".")
        rates[f"rc_{kind}"] = {**rates.get(f"rc_{kind}", {}), part: MUCH} if part else MUCH
    rates["rc_invites"] = {"per_room": MUCH, "per_user": MUCH, "per_issuer": MUCH}
    client = {"names": ["client"], "compress": False}
    return {
        **rates,
        "server_name": SERVER,
        "listeners": [{"port": port, "bind_addresses": ["127.0.0.1"], "type": "http", "resources": [client]}],
        "database": {"name": "sqlite3", "args": {"database": str(folder / "homeserver.db")}},
        "log_config": str(folder / "log.yaml"),
        "media_store_path": str(folder / "media"),
        "signing_key_path": str(folder / "signing.key"),
        "pid_file": str(folder / "pid"),
        "macaroon_secret_key": "known to all",
        "form_secret": "known to all",
        "bcrypt_rounds": 4,
        "enable_registration": True,
        "enable_registration_without_verification": True,
        "presence": {"enabled": False},
        "report_stats": False,
        "trusted_key_servers": [],
        "suppress_key_server_warning": True,
    }


def wait_for(process: "subprocess.Popen[bytes]", url: str, said: Path) -> None:
    """Until it answers.

    Raises:
        AssertionError: it ended, or does not answer; with what it said.
    """
    patience = Patience(PATIENCE)
    while process.poll() is None and not patience.is_over():
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{url}/health", timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError(f"Synapse does not answer: {said.read_text()[-2000:]}")
