"""A hook that starts processes or threads without end is named and ended, while people are answered as before."""

from collections.abc import Iterator

import pytest

from gateway.testing import GatewayProcess
from gateway.worker.process_tree import count_threads
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

PROMPT = 30.0  # seconds for an answer
MOST = 64  # of processes and threads that hooks may have
BOMBS = {
    "forks": "import os\n    while len(os.listdir('/proc')) < 2000:\n        os.fork() or time.sleep(0.02)",
    "threads": "while True:\n        threading.Thread(target=time.sleep, args=(60,)).start(); time.sleep(0.005)",
    "programs": "while True:\n        subprocess.Popen(['sleep', '60']); time.sleep(0.005)",
}
HANDLER = """
import subprocess, threading, time
def spawn():
    {do}
def handle(event_type, context):
    if context["text"] == "{name}":
        threading.Thread(target=spawn).start()
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("spawning") / "home") as gateway:
        turns = [{"user": text, "answers": [{"text": "well"}]} for text in ("hello", *BOMBS)]
        gateway.script(*turns, settings=f"hooks:\n  processes: {MOST}\n")
        manifest = "events: [message:received]\n"
        for name, do in BOMBS.items():
            handler = HANDLER.format(do=do, name=name)
            gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler})
        gateway.add_hook("healthy", {"HOOK.yaml": manifest, "handler.py": "def handle(event_type, context): ...\n"})
        gateway.start()
        yield gateway


def count_all(gateway: GatewayProcess) -> int:
    """Threads of the gateway and of all that comes from it."""
    assert gateway.process
    return sum(count_threads([gateway.process.pid]).values())


@pytest.mark.parametrize("name", BOMBS)
def test_a_hook_that_spawns_without_end_is_named_and_ended_beside_the_others(
    gateway: GatewayProcess, name: str
) -> None:
    assert gateway.process
    gateway.until(lambda: gateway.call("hooks.info", {"name": name})["state"] == "loaded", 60)
    others = count_all(gateway)
    gateway.say(name)

    def is_ended() -> bool:
        with Stopwatch() as watch:
            assert gateway.say("hello")["reply"] == "well"
        assert watch.seconds < PROMPT
        return bool(gateway.call("hooks.info", {"name": name})["restarts"])

    gateway.until(is_ended, 60)
    said = f"processes and threads, and {MOST * 3 // 4} (three quarters of hooks.processes) are the most of one hook"
    gateway.until(lambda: said in gateway.home.log.read_text(), 60)
    assert any(said in line and name in line for line in gateway.home.log.read_text().splitlines())
    gateway.until(lambda: count_all(gateway) < others + MOST // 2, 60)
    healthy = gateway.call("hooks.info", {"name": "healthy"})
    assert (healthy["failures"], healthy["restarts"]) == (0, 0)
