"""`hooks dev`: a hook under development, in its own gateway whose home is removed afterwards.

Your messages go through the hook, and each save reloads it. The screen shows its output and the events that it gets.
"""

import argparse
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from watchfiles import watch

from gateway.cli.chat import send_lines
from gateway.cli.chat_prompt import run_interactive
from gateway.cli.events import show_event
from gateway.cli.hooks.dev_home import make_dev_home
from gateway.cli.hooks.install import notify_gateway, print_state, show_request
from gateway.cli.logs import POLL_PAUSE
from gateway.cli.output import apply_style, fold_for, print_note
from gateway.config.home import Home, get_process_environment
from gateway.config.permissions import prepare_home
from gateway.control.client import ControlClient, call_gateway
from gateway.daemon.dialects import DIALECTS
from gateway.errors import GatewayError, HookError, NotRunning
from gateway.hooks.manifests.manifest import MANIFEST_FILE, Manifest, read_manifest
from gateway.hooks.patterns import EventSelector
from gateway.hooks.places.hook_files import is_ignored_file
from gateway.installer.fetched_hook import fetch_hook, list_variables
from gateway.installer.lock_file import InstalledChange, change_installed, open_workspace
from gateway.installer.source import parse_source
from gateway.logs.log_files import LogFollower, LogPlace
from gateway.logs.text import to_one_line
from gateway.testing import GatewayProcess

SESSION = "main"
HELLO = "Your messages go through {name}; save a file of it, and the gateway reads it again. Ctrl-C ends.\n"
TROUBLE = frozenset({"hook:failed", "hook:tripped"})
WATCH_BEGIN = 200  # milliseconds until the watch is established
END_TIMEOUT = 30.0  # seconds for the gateway to end


def run(args: argparse.Namespace, _home: Home) -> None:
    folder = Path(args.folder).resolve()
    if not (folder / MANIFEST_FILE).is_file():
        raise HookError(f"{folder} has no {MANIFEST_FILE}\nmake one: hermes-gateway hooks new {args.folder}")
    for ending in (signal.SIGTERM, signal.SIGHUP):  # a request to end, or a closed terminal
        signal.signal(ending, signal.default_int_handler)
    with make_dev_home() as place, GatewayProcess(place, ends_with_us=True) as gateway:
        prepare_home(gateway.home)
        hook = DevHook(gateway.home, folder, is_placed=args.trusted)
        gateway.environ |= pick_environment(folder)
        print_note("starting a gateway for this hook ...")
        with suppress(KeyboardInterrupt):
            hook.put()
            gateway.start()
            with watch_hook(gateway, hook):
                listen_to_person(gateway.home, hook)


def pick_environment(folder: Path) -> dict[str, str]:
    """Return the hook's own variables of this environment; and HOME, since its folders may begin with ~."""
    environ, manifest = get_process_environment(), read_manifest(folder).manifest
    names = ("HOME", *(list_variables(manifest) if manifest else ()))
    return {name: environ[name] for name in names if name in environ}


class DevHook:
    """The hook in this gateway: installed again with each save, or placed by a link to its folder."""

    def __init__(self, home: Home, folder: Path, *, is_placed: bool) -> None:
        self.name = folder.name
        self.manifest: Manifest | None = None
        self._home = home
        self.folder = folder
        self._is_placed = is_placed
        self._digest = ""
        self._wrong = ""

    def put(self, *, is_repeat: bool = False) -> bool:
        """Put the hook into the home; return True if the gateway must reload it.

        A faulty hook is reported, and the old one stays. `is_repeat`: perhaps nothing was saved, so a fault that was
        reported is not reported again.
        """
        try:
            if not self.folder.is_dir():
                remedy = "end this with Ctrl-C, and name its present folder: hermes-gateway hooks dev FOLDER"
                raise HookError(f"{self.folder} is not there any more\n{remedy}")
            if self._is_placed:
                self._place()
                return not is_repeat
            return self._install()
        except HookError as error:
            if not is_repeat or str(error) != self._wrong:
                print_note(f"! {error}")
            self._wrong = str(error)
            return False

    def _place(self) -> None:
        self.manifest = read_manifest(self.folder).manifest or self.manifest
        link = self._home.hooks / self.name
        if not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(self.folder)

    def _install(self) -> bool:
        with open_workspace(self._home) as work:
            hook = fetch_hook(parse_source(str(self.folder)), work, get_process_environment(), DIALECTS)
            if hook.digest == self._digest:
                if self._wrong:
                    print_note(f"{self.name} is as it was before, and runs on")
                self._wrong = ""
                return False
            if not self._digest:
                show_request(hook)
            gone = [self.name] if self._digest and hook.name != self.name else []
            change_installed(self._home, InstalledChange(hooks=[hook], gone_hooks=gone), work)
        self.name, self.manifest, self._digest, self._wrong = hook.name, hook.manifest, hook.digest, ""
        return True

    def wants(self, event: str, fields: dict[str, Any]) -> bool:
        """Return True if the event concerns the hook."""
        if event in TROUBLE:
            return bool(fields.get("hook") == self.name)
        return self.manifest is not None and event in EventSelector(self.manifest.subscriptions)


@contextmanager
def watch_hook(gateway: GatewayProcess, hook: DevHook) -> Iterator[None]:
    """Show the hook's events and output, and reload it at each save, until the gateway has ended."""
    stop, process = threading.Event(), gateway.process
    assert process
    assert process.stdout
    assert process.stderr
    tail = ControlClient(gateway.home.socket, timeout=None)
    tail.start("events.tail", {"names": []})
    readers = [
        begin_thread(lambda: show_events(tail, hook)),
        begin_thread(lambda: show_log(gateway.home, hook, stop)),
        *(begin_thread(partial(deque, pipe, 0)) for pipe in (process.stdout, process.stderr)),  # a full one blocks it
    ]
    watcher = begin_thread(lambda: reload_hook(gateway.home, hook, stop))
    if hook.manifest:
        notify_gateway(gateway.home, hook.name)
    try:
        yield
    finally:
        process.terminate()
        process.wait(END_TIMEOUT)
        stop.set()
        for thread in (*readers, watcher):
            thread.join(END_TIMEOUT)
        tail.close()


def begin_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def show_events(tail: ControlClient, hook: DevHook) -> None:
    for message in tail.messages():
        if "method" in message and hook.wants(message["params"]["event"], message["params"]["fields"]):
            show_event(message["params"])


def show_log(home: Home, hook: DevHook, stop: threading.Event) -> None:
    """Show the hook's log to its last line, also after the hook was renamed."""
    logs: dict[str, LogFollower] = {}
    with ExitStack() as opened:
        while True:
            is_last = stop.wait(POLL_PAUSE)
            if (name := hook.name) not in logs:
                logs[name] = opened.enter_context(open_log(home.hook_logs / f"{name}.log"))
            for line in chain.from_iterable(log.read() for log in logs.values()):
                print(apply_style(fold_for(sys.stdout, f"| {to_one_line(line)}", "| "), "cyan"), flush=True)
            if is_last:
                return


def open_log(path: Path) -> LogFollower:
    """Open a log from its beginning: this home is new."""
    return LogFollower(path, LogPlace(path.stat().st_ino, 0) if path.exists() else None)


def reload_hook(home: Home, hook: DevHook, stop: threading.Event) -> None:
    """Reload the hook at each save, and once at the beginning, for saves while the gateway started."""
    looks = watch(
        hook.folder,
        watch_filter=lambda _, path: not any(map(is_ignored_file, Path(path).relative_to(hook.folder).parts)),
        stop_event=stop,
        raise_interrupt=False,
        rust_timeout=WATCH_BEGIN,
        yield_on_timeout=True,
    )
    for number, changes in enumerate(looks):
        if (changes or number == 0) and hook.put(is_repeat=not changes) and not stop.is_set():
            show_change(home, hook)


def show_change(home: Home, hook: DevHook) -> None:
    """Reload the folders, and print the hook's state. The gateway itself ignores changes that the hook made."""
    try:
        call_gateway(home.socket, "hooks.reload", name="")
        print_state(call_gateway(home.socket, "hooks.info", name=hook.name))
    except NotRunning:
        return
    except GatewayError as error:
        print_note(f"{hook.name}: {error}")


def listen_to_person(home: Home, hook: DevHook) -> None:
    """Chat with a person at a terminal, or send the lines of a pipe and end."""
    if sys.stdin.isatty():
        run_interactive(home, SESSION, HELLO.format(name=hook.name), is_ended_by_interrupt=True)
    else:
        send_lines(home.socket, sys.stdin, SESSION)
