"""The fork server outlives its workers, never the gateway; and what it makes can be made without forking too."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.hooks.wires.fork_client import BOOT_FILE, MOST_STARTS, ForkServerClient
from gateway.hooks.wires.wire import HookFailed
from gateway.hooks.wires.worker_handle import WorkerHandle
from gateway.worker.process_tree import find_descendants
from gateway.worker.protocol import NICE, CallMeta, ForkServerSettings
from tests.hooks.wires.workshop import SETTINGS, Make, is_alive, pid_of, worker_spec
from tests.spine import until

pytestmark = pytest.mark.process

DECIDES = CallMeta(decides=True)
STARTS_THREAD = """
import threading
def handle(e, c):
    said = []
    thread = threading.Thread(target=said.append, args=("well",))
    thread.start()
    thread.join()
    return said[0]
"""
MANY = 300  # what is said of so many at once does not fit into the socket
NOBODY = 65534
BOMB = """
import os, time
def handle(e, c):
    while True:
        try: os.fork()
        except OSError: time.sleep(0.001)
"""


@pytest.fixture
async def fork_server() -> AsyncIterator[ForkServerClient]:
    """One for each test: some of them kill it."""
    async with ForkServerClient(SETTINGS) as fork_server:
        yield fork_server


async def serve_nothing(_verb: str, _params: dict[str, Any], _during: str) -> None:
    """What a hook may ask."""


async def ask(worker: WorkerHandle, limit: float = 10) -> Any:
    return (await worker.call("x", {}, DECIDES, limit)).result


async def test_the_fork_server_knows_nothing_and_has_one_thread(fork_server: ForkServerClient, make: Make) -> None:
    await make("def handle(e, c): pass")
    assert read(pid_of(fork_server), "environ") == ""
    assert "Threads:\t1\n" in read(pid_of(fork_server), "status")


async def test_a_loop_that_hears_of_the_end_first_still_hears_why(make: Make) -> None:
    """A held loop finds what the worker wrote and the news of its end at once, in any order."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold_the_loop)
        with pytest.raises(HookFailed, match="the sky is not there"):
            await make('raise OSError("the sky is not there")')
        tasks.cancel_scope.cancel()


async def hold_the_loop() -> None:
    while True:
        time.sleep(0.2)  # noqa: ASYNC251 - what is tried
        await anyio.lowlevel.checkpoint()


def read(pid: int, what: str) -> str:
    return Path(f"/proc/{pid}/{what}").read_text()


async def test_a_worker_holds_nothing_of_the_fork_server_or_the_daemon(make: Make) -> None:
    source = """
    import os, sys
    def handle(e, c):
        ours = [module for name, module in sorted(sys.modules.items()) if name.split(".")[0] == "gateway"]
        files = [module.__file__ for module in ours if getattr(module, "__file__", None)]
        return [files, [int(n) for n in os.listdir("/proc/self/fd")]]
    """
    files, descriptors = await ask(await make(source))
    inside = [str(Path(file).relative_to(BOOT_FILE.parents[1])) for file in files]
    others = [file for file in inside if not file.startswith(("worker/", "hermes/"))]
    assert others == ["events/__init__.py", "events/event.py", "files/folders.py"]
    assert len([n for n in descriptors if 2 < n < 255]) <= 1  # the one that lists them


async def test_what_a_worker_may_use_is_bounded(make: Make) -> None:
    source = """
    import os, resource
    def handle(e, c):
        return [resource.getrlimit(resource.RLIMIT_DATA)[0], resource.getrlimit(resource.RLIMIT_CORE)[0],
                os.nice(0), open("/proc/self/oom_score_adj").read().strip(), os.getpgid(0) == os.getpid()]
    """
    assert await ask(await make(source, memory=100 << 20)) == [100 << 20, 0, NICE + os.nice(0), "500", True]


async def test_when_the_fork_server_is_killed_its_workers_learn_it_and_the_next_one_serves(
    fork_server: ForkServerClient, make: Make
) -> None:
    worker = await make(
        """
        import subprocess
        child = subprocess.Popen(["sleep", "300"])
        async def handle(e, c):
            if e == "pid": return child.pid
            import asyncio; await asyncio.sleep(60)
        """,
        env={"PATH": os.environ["PATH"]},
    )
    child = (await worker.call("pid", {}, DECIDES, 60)).result
    first = pid_of(fork_server)
    failures: list[HookFailed] = []

    async def wait_for_answer() -> None:
        with pytest.raises(HookFailed, match="the fork server ended") as failed:
            await ask(worker)
        failures.append(failed.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_for_answer)
        await anyio.wait_all_tasks_blocked()
        os.kill(first, signal.SIGKILL)
    assert failures[0].kind == "died"
    assert worker.gone.reason == "the fork server ended, and its workers with it"
    assert await ask(await make("def handle(e, c): return 'again'")) == "again"
    assert pid_of(fork_server) != first
    await until(lambda: not any(is_alive(pid) for pid in (first, worker.process.pid, child)))


async def test_a_fork_server_that_dies_again_and_again_is_replaced_again_and_again(
    fork_server: ForkServerClient, make: Make
) -> None:
    for number in range(3):
        worker = await make(f"def handle(e, c): return {number}")
        assert await ask(worker) == number
        os.kill(pid_of(fork_server), signal.SIGKILL)
        await worker.gone.wait()
    assert await ask(await make("def handle(e, c): return 'at last'")) == "at last"


async def test_what_is_said_to_a_fork_server_that_is_closing_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("def handle(e, c): ...")
    spec = worker_spec(tmp_path / "handler.py")
    async with ForkServerClient(SETTINGS) as fork_server:
        worker = await fork_server.start(spec, nobody, tmp_path / "log")
        process = fork_server._server._server
        assert process
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.close)
            await anyio.wait_all_tasks_blocked()
            worker.process.kill("it closed the wire to the gateway")
    assert worker.gone.reason == "the gateway stopped"


async def test_closing_ends_workers_at_once_whatever_they_do(tmp_path: Path) -> None:
    async with ForkServerClient(SETTINGS) as fork_server:
        handler = tmp_path / "handler.py"
        handler.write_text(
            "import signal, time\nsignal.pthread_sigmask(0, range(1, 65))\ndef handle(e, c): time.sleep(3600)"
        )
        worker = await fork_server.start(worker_spec(handler), nobody, tmp_path / "log")
        process = pid_of(fork_server)
    assert worker.gone.reason == "the gateway stopped"
    assert not is_alive(process)
    assert not is_alive(worker.process.pid)


async def nobody(verb: str, params: dict[str, Any], during: str) -> Any:
    return None


DAEMON = """
import sys, anyio
from pathlib import Path
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.worker.protocol import ForkServerSettings
from tests.hooks.wires.workshop import worker_spec
async def serve(*_): pass
async def main():
    async with ForkServerClient(ForkServerSettings(processes=256, fork=sys.argv[2] == "fork")) as fork_server:
        spec = worker_spec(Path(sys.argv[1]), env={"PATH": sys.argv[3]})
        await fork_server.start(spec, serve, Path("/dev/null"))
        print(fork_server.pid, flush=True)
        await anyio.sleep(60)
anyio.run(main)
"""
LINGERS = """
import subprocess, time, threading
subprocess.run("setsid sh -c 'setsid sleep 337 & sleep 0.01' &", shell=True)
threading.Thread(target=time.sleep, args=(60,)).start()
def handle(e, c): pass
"""


@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_when_the_daemon_is_killed_nothing_of_its_hooks_is_left(way: str, tmp_path: Path) -> None:
    handler = tmp_path / "handler.py"
    handler.write_text(LINGERS)
    program = [sys.executable, "-c", DAEMON, str(handler), way, os.environ["PATH"]]
    daemon = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout
    fork_server = int(daemon.stdout.readline())
    family = {fork_server, *(one.pid for one in find_descendants({fork_server}))}
    assert len(family) >= 3
    daemon.kill()
    daemon.wait()
    daemon.stdout.close()
    anyio.run(until, lambda: not any(is_alive(pid) for pid in family))


async def test_a_module_to_preload_that_starts_a_thread_is_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()"
    )
    (tmp_path / "handler.py").write_text("def handle(e, c): pass")
    monkeypatch.syspath_prepend(tmp_path)
    async with ForkServerClient(ForkServerSettings(processes=256, preload=("threaded",))) as fork_server:
        with pytest.raises(HookFailed, match=r"preload \(threaded\) starts a thread"):
            await fork_server.start(worker_spec(tmp_path / "handler.py"), nobody, tmp_path / "log", 3)


async def test_what_cannot_be_preloaded_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text("import sys\ndef handle(e, c): return 'yaml' in sys.modules")
    async with ForkServerClient(ForkServerSettings(processes=256, preload=("no_such_module", "yaml"))) as fork_server:
        worker = await fork_server.start(worker_spec(tmp_path / "handler.py"), nobody, tmp_path / "log")
        assert await ask(worker) is True


async def test_where_forking_is_not_safe_a_worker_is_a_fresh_interpreter_with_the_same_manners(tmp_path: Path) -> None:
    (tmp_path / "handler.py").write_text(
        "import os, sys, time\n"
        "from gateway.hooks import Deny\n"
        "def handle(e, c):\n"
        "    print('printed')\n"
        "    if e == 'hang': time.sleep(60)\n"
        "    if e == 'die': os._exit(5)\n"
        "    return [c.gateway.send('me', 'hi'), dict(os.environ), c.options, sys.flags.safe_path]\n"
    )

    async def serve(verb: str, params: dict[str, Any], during: str) -> Any:
        return params["text"]

    spec = worker_spec(tmp_path / "handler.py", env={"A": "b"}, options={"o": 1})
    async with ForkServerClient(ForkServerSettings(processes=256, fork=False)) as fork_server:
        worker = await fork_server.start(spec, serve, tmp_path / "log")
        assert await ask(worker) == ["hi", {"A": "b"}, {"o": 1}, True]
        with pytest.raises(HookFailed, match=r"was over its 0\.2 s"):
            await worker.call("hang", {}, DECIDES, 0.2)
        assert not worker.gone
        with pytest.raises(HookFailed, match="exit code 5"):
            await worker.call("die", {}, DECIDES, 60)
        second = await fork_server.start(spec, serve, tmp_path / "log")
        await second.stop(2)
        assert second.gone.reason == "stopped"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.machine
@pytest.mark.skipif(os.getuid() != 0, reason="only root may run hooks as another user, and only others have a limit")
async def test_a_fork_bomb_is_bounded_and_leaves_nothing(open_folder: Path) -> None:
    (open_folder / "handler.py").write_text(BOMB)
    (open_folder / "healthy.py").write_text("import os\ndef handle(e, c): return os.getuid()")
    settings = ForkServerSettings(preload=("yaml", "tests.hooks.wires.lesser_user"), processes=30)
    async with ForkServerClient(settings) as fork_server:
        healthy = await fork_server.start(
            worker_spec(open_folder / "healthy.py", name="healthy"), nobody, open_folder / "log"
        )
        assert await ask(healthy) == NOBODY
        bomb = await fork_server.start(worker_spec(open_folder / "handler.py"), nobody, open_folder / "log")
        most = 0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(over_its_time, bomb)
            while not bomb.gone:
                most = max(most, len(find_descendants({pid_of(fork_server)})))
                assert await ask(healthy) == NOBODY
        assert 5 < most <= 30 + 2  # and a process for each of the two
        await until(lambda: [one.pid for one in find_descendants({pid_of(fork_server)})] == [healthy.process.pid])


@pytest.mark.skipif(os.getuid() != 0, reason="only root may run hooks as another user, and only others have a limit")
async def test_the_processes_of_many_hooks_leave_each_what_it_may_have_besides(open_folder: Path) -> None:
    (open_folder / "handler.py").write_text(STARTS_THREAD)
    settings = ForkServerSettings(preload=("yaml", "tests.hooks.wires.lesser_user"), processes=32)
    async with ForkServerClient(settings) as fork_server:
        for number in range(60):
            spec = worker_spec(open_folder / "handler.py", name=f"hook{number}")
            worker = await fork_server.start(spec, nobody, open_folder / "log")
            assert await ask(worker) == "well"
            if not number:
                first = worker
        assert await ask(first) == "well"


async def over_its_time(worker: WorkerHandle) -> None:
    with pytest.raises(HookFailed) as failed:
        await ask(worker, 0.5)
    assert failed.value.kind in ("timeout", "died")
    await worker.stop(0)


async def test_however_many_start_at_once_all_come_up_and_the_fork_server_lives(tmp_path: Path) -> None:
    """What it is told waits where it has so much to read that its socket takes no more; while it gets on, it lives."""
    handler = tmp_path / "handler.py"
    handler.write_text("def handle(e, c): return {'name': e}")
    started: list[WorkerHandle] = []

    async with ForkServerClient(ForkServerSettings(processes=4 * MANY)) as fork_server:
        fork_server.begin()
        first = pid_of(fork_server)

        async def start(number: int) -> None:
            spec = worker_spec(handler, name=f"hook{number}")
            started.append(await fork_server.start(spec, serve_nothing, tmp_path / "hook.log", timeout=120))

        async with anyio.create_task_group() as tasks:
            for number in range(MANY):
                tasks.start_soon(start, number)
        assert len({worker.process.pid for worker in started}) == MANY
        assert pid_of(fork_server) == first
        for worker in started:
            worker.process.kill("all at once")  # each with a question whether it is done
        for worker in started:
            await worker.gone.wait()
        assert pid_of(fork_server) == first


async def test_who_takes_long_to_start_holds_up_nobody(tmp_path: Path, fork_server: ForkServerClient) -> None:
    slow, quick = tmp_path / "slow.py", tmp_path / "quick.py"
    slow.write_text("import time\ntime.sleep(1000)\n")
    quick.write_text("def handle(e, c): pass")

    async def hang(number: int) -> None:
        spec = worker_spec(slow, name=f"slow{number}")
        with suppress(HookFailed):
            await fork_server.start(spec, serve_nothing, tmp_path / "slow.log", timeout=1000)

    async with anyio.create_task_group() as tasks:
        for number in range(MOST_STARTS + 1):
            tasks.start_soon(hang, number)
        await anyio.lowlevel.checkpoint()
        await fork_server.start(worker_spec(quick), serve_nothing, tmp_path / "quick.log", timeout=60)
        tasks.cancel_scope.cancel()
