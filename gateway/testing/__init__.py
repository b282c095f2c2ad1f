"""For tests of hooks and of the gateway itself: a real gateway, as a process, in a home of its own.

    with GatewayProcess(tmp_path) as gateway:
        gateway.script({"user": "weather", "answers": [{"text": "sunny"}]})
        gateway.add_hook("shout", {"HOOK.yaml": "intercepts: [message:received]\\n", "handler.py": SOURCE})
        gateway.start()
        assert gateway.say("weather")["reply"] == "sunny"

The model is the demo, or says what the script says; nothing leaves the machine. `script`, `ScriptModel` and
`read_script` are the scripted model by itself, for tests of a turn without a gateway.

    async with gateway_in(tmp_path, {"user": "weather", "text": "sunny"}) as gateway:
        heard = RecordingHook(gateway.registry, "tool:*")
        assert (await gateway.say("weather"))["reply"] == "sunny"

is the same gateway inside the test's own process, for hooks that are functions of the test.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.to_thread
import msgspec

from gateway.adapters.shared.folder import load_settings_schema
from gateway.agent.models.script import ScriptModel, read_script, script
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.control.client import ControlClient
from gateway.daemon.control_verbs import build_verbs
from gateway.daemon.gateway import Gateway, open_gateway
from gateway.daemon.shutdown import Shutdown
from gateway.errors import GatewayError, NotRunning
from gateway.hooks import HookRegistry

__all__ = ["GatewayProcess", "LiveGateway", "RecordingHook", "ScriptModel", "gateway_in", "read_script", "script"]

TIMEOUT = 20.0
POLL_PAUSE = 0.01
INHERITED_VARIABLES = ("PATH", "LANG", "TZ", "TMPDIR", "COVERAGE_PROCESS_CONFIG")


class GatewayProcess:
    """`hermes-gateway run` in the home `root`, and the commands beside it. Nothing of it outlives the `with` block."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root)
        passed = {name: value for name, value in get_process_environment().items() if name in INHERITED_VARIABLES}
        self.environ = {**passed, "HOME": str(root.parent), "HERMES_HOME": str(root)}
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def configure(self, text: str) -> None:
        """Write `config.yaml`."""
        self.home.own_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.home.root.chmod(0o700)
        self.home.config.write_text(text)
        self.home.config.chmod(0o600)

    def script(self, *turns: Mapping[str, Any], settings: str = "") -> None:
        """Let the model say these turns (as in a script file); `settings` is YAML that stands beside."""
        path = self.home.own_folder / "script.yaml"
        self.configure(f"model:\n  script: {json.dumps(str(path))}\n{settings}")
        path.write_text(json.dumps({"turns": list(turns)}, ensure_ascii=False), "utf-8")

    def add_hook(self, name: str, files: "Mapping[str, str] | Path") -> Path:
        """Put a hook into the home, whole at once: files by name, or a folder to copy."""
        folder, beside = self.home.hooks / name, self.home.root / f".{name}.new"
        folder.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(files, Path):
            shutil.copytree(files, beside)
        else:
            beside.mkdir()
            for file, text in files.items():
                (beside / file).write_text(text)
        return beside.rename(folder)

    def start(self, *args: str, environ: Mapping[str, str] | None = None) -> None:
        """Start, and wait until it is ready.

        Raises:
            GatewayError: it ended instead; the message has what it said.
        """
        self.process = self.spawn("run", *args, environ=environ)
        self.until(self._is_ready)

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """A command, while it runs."""
        command = [sys.executable, "-m", "gateway.cli", *args]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env={**self.environ, **(environ or {})}, stdout=pipe, stderr=pipe, text=True)

    def cli(self, *args: str, timeout: float = TIMEOUT) -> "subprocess.CompletedProcess[str]":
        """A command, when it has ended."""
        command = [sys.executable, "-m", "gateway.cli", *args]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=timeout, check=False)

    def say(self, text: str, session: str = "main") -> dict[str, Any]:
        """Say something on the terminal: how it was answered (`reply`, `status`, `turn_id`, `error`)."""
        return dict(self.call("chat.say", {"text": text, "session": session}))

    def call(self, verb: str, params: Mapping[str, Any] | None = None) -> Any:
        """Ask the control socket."""
        with ControlClient(self.home.socket, TIMEOUT) as client:
            return client.call(verb, dict(params or {}))

    def until(self, condition: Callable[[], bool], patience: float = TIMEOUT) -> None:
        """Wait for something to become true.

        Raises:
            GatewayError: it did not, in time.
        """
        limit = time.monotonic() + patience
        while not condition():
            if time.monotonic() > limit:
                raise GatewayError(f"{condition} did not become true within {patience:.0f} s")
            time.sleep(POLL_PAUSE)

    def stop(self, signal_number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Ask it to end: the exit code, what it printed, what it logged."""
        assert self.process
        self.process.send_signal(signal_number)
        printed, logged = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, printed, logged

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.communicate()

    def _is_ready(self) -> bool:
        assert self.process
        if self.process.poll() is not None:
            printed, logged = self.process.communicate()
            raise GatewayError(f"the gateway ended with {self.process.returncode}\n{printed}{logged}")
        with suppress(NotRunning):
            return bool(self.call("status")["state"] == "ready")
        return False


class RecordingHook:
    """An observer that keeps what it is told: `events` in their order, each a name and its fields."""

    def __init__(self, registry: HookRegistry, names: str | Iterable[str] = "*") -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._news = anyio.Event()
        self.remove = registry.watch(names, self._note)

    @property
    def names(self) -> list[str]:
        """What happened, in order."""
        return [name for name, _ in self.events]

    def of(self, name: str) -> list[dict[str, Any]]:
        """The fields of each event of this name."""
        return [fields for told, fields in self.events if told == name]

    async def until(self, name: str, patience: float = TIMEOUT) -> dict[str, Any]:
        """The first event of this name, once there is one.

        Raises:
            GatewayError: there was none in time; the message says what there was.
        """
        with anyio.move_on_after(patience):
            while not self.of(name):
                self._news = anyio.Event()
                await self._news.wait()
        if not self.of(name):
            raise GatewayError(f"no {name} within {patience:.0f} s; there was {', '.join(self.names) or 'nothing'}")
        return self.of(name)[0]

    def _note(self, name: str, context: dict[str, Any]) -> None:
        self.events.append((name, dict(context)))
        self._news.set()


class LiveGateway:
    """A gateway in this process. `registry` takes hooks that are functions: `registry.on`, `registry.watch`."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.registry = gateway.registry

    async def say(self, text: str, session: str = "main") -> dict[str, Any]:
        """Say something on the terminal: how it was answered (`reply`, `status`, `turn_id`, `error`)."""
        said = await self.gateway.terminal.say({"text": text, "session": session}, _ignore_notification)
        return dict(msgspec.to_builtins(said))


@asynccontextmanager
async def gateway_in(
    root: Path,
    *turns: Mapping[str, Any],
    settings: str = "",
    hooks: Mapping[str, Mapping[str, str] | Path] | None = None,
) -> AsyncIterator[LiveGateway]:
    """A gateway in the home `root`, inside this process, while inside the block.

    `turns` are the model's, as in a script file (without them it is the demo); `settings` is YAML that stands beside;
    `hooks` are folders by name.
    """
    files = GatewayProcess(root)
    if turns:
        files.script(*turns, settings=settings)
    else:
        files.configure(settings)
    for name, folder in (hooks or {}).items():
        files.add_hook(name, folder)
    load = partial(load_configuration, load_settings_schema(), files.home, files.environ)
    configuration = await anyio.to_thread.run_sync(load)
    shutdown = Shutdown(configuration.settings.gateway.shutdown_timeout)
    async with open_gateway(files.home, configuration, shutdown, build_verbs) as gateway:
        await gateway.folder_hooks.settled()
        yield LiveGateway(gateway)


async def _ignore_notification(_kind: str, _fields: Any) -> None:
    """The answer is what counts; how it grew does not."""
