"""A terminal on which a program shows its dialogs, in tmux."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

PAUSE = "0.2"  # seconds
SIZE = ("-x", "110", "-y", "40")


class Screen:
    """Runs a program on a terminal of its own, and ends it with the terminal."""

    def __init__(self, folder: Path, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._socket, self._environ = folder / f"tmux-{os.urandom(4).hex()}", dict(environ)
        self._call("-f", os.devnull, "new-session", "-d", *SIZE, "-c", str(folder), shlex.join(words))

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _at: TracebackType | None) -> None:
        self._call("kill-server")

    def show(self) -> str:
        """Return the text of the screen, after a pause for a loop; "" if the program has ended."""
        return self._call("run-shell", "-d", PAUSE, "", ";", "capture-pane", "-p")

    def press(self, key: str) -> None:
        self._call("send-keys", key)

    def _call(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        return subprocess.run(command, env=self._environ, capture_output=True, text=True, check=False).stdout
