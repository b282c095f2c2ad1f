"""A process that has already imported the gateway, and forks for each command.

`forked_command` starts it. A command is a process of its own like a newly started one, with its own arguments,
environment, folder and streams. It saves the start of Python and the imports, which are nearly the whole cost of a
short command. This process has no threads, so a fork lacks nothing.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio

import gateway.config
import gateway.daemon
from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.installed_source import BUILT_IN_FOLDER

LONGEST_REQUEST = 1 << 18
MOST_DESCRIPTORS = 4  # standard input, output and errors, and the one for its number and exit code
NO_HOME = Path("/nowhere")
PROGRAM = "gateway.cli"  # run by its name, as Python's `-m` does: it imports us, we do not import it


class WarmProcess:
    """The warm process, which forks for each request over `control`.

    It reports each child's end, and ends when `control` closes.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._program = importlib.import_module(PROGRAM)
        self._commands: dict[str, str] = {name: module for name, (module, _) in self._program.COMMANDS.items()}
        for package in (gateway.config, gateway.daemon):  # commands read the first, `run` needs the second
            load_whole(package)
        load_configuration(load_settings_schema(), Home(NO_HOME), {})  # every command needs the tables that it makes
        anyio.run(anyio.sleep, 0)  # loads anyio's part for asyncio
        for hook in (built_in := FolderSource(BUILT_IN_FOLDER, "built-in", is_ours=True)).list():
            built_in.inspect(hook)  # every gateway reads them
        self._interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, which end us

    def serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data:
                    self._reap(key.fd, *key.data)
                elif not self._take_request():
                    return

    def _take_request(self) -> bool:
        data, descriptors, *_ = socket.recv_fds(self._control, LONGEST_REQUEST, MOST_DESCRIPTORS)
        if not data:
            return False
        request = json.loads(data)
        self._load(request["args"])
        pid = os.fork()
        if pid == 0:
            self._become(request, descriptors)
        *streams, status = descriptors
        for descriptor in streams:
            os.close(descriptor)
        os.write(status, b"%d\n" % pid)
        self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, status))
        return True

    def _reap(self, pidfd: int, pid: int, status: int) -> None:
        _, how = os.waitpid(pid, 0)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(how))
        self._selector.unregister(pidfd)
        os.close(pidfd)
        os.close(status)

    def _load(self, args: Sequence[str]) -> None:
        """Import, once and in this process, all modules of the command."""
        command = next((word for word in args if word in self._commands), None)
        if command:
            load_whole(importlib.import_module(self._commands.pop(command)))
            gc.collect()
            gc.freeze()  # else a collection in each child copies all pages

    def _become(self, request: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Become the command in the child, with the surroundings of a new Python; never returns."""
        for standard, descriptor in enumerate(descriptors[:3]):
            os.dup2(descriptor, standard)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.signal(signal.SIGINT, self._interrupt)
        os.chdir(request["folder"])
        os.umask(request["umask"])
        os.environ.clear()  # noqa: TID251 - a new process gets it
        os.environ.update(request["environ"])  # noqa: TID251 - likewise
        time.tzset()
        sys.path[0] = request["folder"]
        sys.argv = [os.path.join(*self._program.__path__, "__main__.py"), *request["args"]]  # noqa: PTH118 - as `-m` does
        os._exit(run_to_end(self._program.main))


def load_whole(module: ModuleType) -> None:
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        importlib.import_module(found.name)


def run_to_end(main: Callable[[], int]) -> int:
    """Run a program to its end as Python does, and return its exit code."""
    code: object = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001 - as Python itself does
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - in this order, before the streams are flushed
    atexit._run_exitfuncs()  # noqa: SLF001 - likewise
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    WarmProcess(socket.socket(fileno=int(sys.argv[1]))).serve()
