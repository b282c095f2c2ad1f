"""A person at a terminal in which a command runs: their typing, and their screen."""

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, Self

from tests.cli.screen import Screen
from tests.waits import wait_readable

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\].*?\x07|\x1b[=>78]|[\r\x07]")


PROGRAM = (sys.executable, "-m", "gateway.cli")


class Surroundings(Protocol):
    """The gateway as a person's terminal shows it."""

    @property
    def environ(self) -> Mapping[str, str]: ...


class Typist:
    """A person who types keys, waits for text, and leaves."""

    def __init__(self, gateway: Surroundings, *args: str, program: Sequence[str | Path] = PROGRAM) -> None:
        self.seen = ""
        self.screen = Screen()
        self._terminal, inner = pty.openpty()
        termios.tcsetwinsize(inner, (24, 80))
        self.process = subprocess.Popen(
            [*program, *args],
            env={**gateway.environ, "TERM": "xterm"},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            # so that Ctrl-C reaches all that runs there; it takes no lock that another thread may hold
            preexec_fn=partial(fcntl.ioctl, inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._terminal)

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def sees(self, text: str) -> str:
        """Wait for a text, in however many lines. Returns the output before it, which is not searched again."""
        words = re.compile(r"[ \n]+".join(map(re.escape, text.split(" "))))
        while not (at := words.search(found := CONTROL.sub("", self.seen))):
            wait_readable(self._terminal, f"{text!r} behind {found!r}")
            more = self._read()
            assert more, f"it ended before {text!r} came; there was {found!r}"
            self.seen += more
        self.seen = found[at.end() :]
        return found[: at.start()]

    def finds(self, text: str) -> None:
        """Wait until the text is on the screen; it may have been there for long."""
        while text not in self.screen.text:
            wait_readable(self._terminal, f"{text!r} on {self.screen.text!r}")
            assert self._read(), f"it ended before {text!r} stood on {self.screen.text!r}"

    def answers(self, question: str, keys: str) -> None:
        self.sees(question)
        self.type(keys)

    def reads_on(self, quiet: float) -> None:
        """Read until the program has been quiet for that many seconds: it waits for keys again."""
        while select.select([self._terminal], [], [], quiet)[0] and (more := self._read()):
            self.seen += more

    def leaves(self) -> int:
        """The exit code, when it has ended."""
        while self.process.poll() is None:
            if select.select([self._terminal], [], [], 0.02)[0]:
                self.seen += self._read()
        return self.process.wait()

    def _read(self) -> str:
        """Read the program's output; answer its question about the cursor's place, as a terminal does."""
        try:
            written = os.read(self._terminal, 65536).decode(errors="replace")
        except OSError:  # the last one to hold the terminal has closed it
            return ""
        for _ in range(written.count("\x1b[6n")):
            self.type("\x1b[1;1R")
        self.screen.write(written)
        return written
