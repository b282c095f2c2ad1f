"""A real gateway as a process, in its own home, for tests of hooks and of the gateway itself."""

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gateway.config.home import Home, get_process_environment
from gateway.control.client import ControlClient
from gateway.errors import GatewayError, NotRunning
from gateway.hooks.places.hook_files import list_ignored
from gateway.testing.forked_command import PROGRAM, begin_command
from gateway.testing.patience import LONGEST, wait_for_end, wait_until
from gateway.worker.kernel import die_with_parent

CALL_SECONDS = 600.0  # seconds of the wall, as a socket counts them: a real answer comes long before
ODD_SIGN = re.compile("[^ -~]")  # YAML does not allow all of them
FREE_PORT = {"GATEWAY_WEB_LISTEN": "127.0.0.1:0"}  # many gateways at a time, beside the person's own
INHERITED_VARIABLES = ("PATH", "LANG", "TZ", "TMPDIR", "COVERAGE_PROCESS_CONFIG")


class GatewayProcess:
    """`hermes-gateway run` in the home `root`, and the commands beside it. No process of it outlives the `with` block.

    With `ends_with_us` it ends, on Linux, even if this process is killed, or the thread that has started it ends.
    Without `forks` the program itself is started each time, to measure its start and memory.
    """

    def __init__(self, root: Path, *, ends_with_us: bool = False, forks: bool = True) -> None:
        self.home = Home(root)
        self._forks = forks and not ends_with_us
        self._prepare = partial(die_with_parent, signal.SIGTERM) if ends_with_us else None
        passed = {name: value for name, value in get_process_environment().items() if name in INHERITED_VARIABLES}
        self.environ = {**passed, "HOME": str(root.parent), "HERMES_HOME": str(root), **FREE_PORT}
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
        """Let the model say these turns (as in a script file); `settings` is YAML for the same file."""
        path = self.home.own_folder / "script.yaml"
        self.configure(f"model:\n  script: {json.dumps(str(path))}\n{settings}")
        written = json.dumps({"turns": list(turns)}, ensure_ascii=False)
        path.write_text(ODD_SIGN.sub(lambda found: f"\\U{ord(found[0]):08x}", written), "utf-8")

    def add_hook(self, name: str, files: "Mapping[str, str] | Path") -> Path:
        """Put a hook into the home, whole at once: files by name, or a folder to copy."""
        folder, beside = self.home.hooks / name, self.home.root / f".{name}.new"
        folder.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(files, Path):
            shutil.copytree(files, beside, ignore=list_ignored)
        else:
            beside.mkdir()
            for file, text in files.items():
                (beside / file).write_text(text)
        return beside.rename(folder)

    def start(self, *args: str, environ: Mapping[str, str] | None = None) -> None:
        """Start, and wait until it is ready.

        Raises:
            GatewayError: it ended instead; the message has its output.
        """
        self.process = self.spawn("run", *args, environ=environ)
        self.until(self._is_ready)

    def spawn(self, *args: str, environ: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a command, and return it while it runs."""
        environ = {**self.environ, **(environ or {})}
        if self._forks and (forked := begin_command(args, environ)):
            return forked
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*PROGRAM, *args],
            env=environ,
            stdout=pipe,
            stderr=pipe,
            text=True,
            preexec_fn=self._prepare,  # noqa: PLW1509 - it takes no lock that another thread may hold
        )

    def cli(self, *args: str, timeout: float = LONGEST) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        with self.spawn(*args) as process:
            printed, logged = wait_for_end(process, timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, printed, logged)

    def say(self, text: str, session: str = "main") -> dict[str, Any]:
        """Send a message on the terminal; return the answer (`reply`, `status`, `turn_id`, `error`)."""
        return dict(self.call("chat.say", {"text": text, "session": session}))

    def call(self, verb: str, params: Mapping[str, Any] | None = None) -> Any:
        """Call a verb of the control socket."""
        with ControlClient(self.home.socket, CALL_SECONDS) as client:
            return client.call(verb, dict(params or {}))

    def until(self, condition: Callable[[], bool], patience: float = LONGEST) -> None:
        """Wait for something to become true, for these seconds of our own running time.

        Raises:
            GatewayError: it did not, in time.
        """
        wait_until(condition, patience)

    def stop(self, signal_number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop it by a signal; return its exit code, its output and its log."""
        assert self.process
        self.process.send_signal(signal_number)
        printed, logged = wait_for_end(self.process)
        return self.process.returncode, printed, logged

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self.process:
            self.process.kill()
            self.process.communicate()

    def _is_ready(self) -> bool:
        assert self.process
        if self.process.poll() is not None:
            printed, logged = self.process.communicate()
            raise GatewayError(f"the gateway ended with {self.process.returncode}\n{printed}{logged}")
        with suppress(NotRunning):
            return bool(self.call("status")["state"] == "ready")
        return False
