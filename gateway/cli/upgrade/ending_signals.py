"""The signals between the stop of the gateway and the start of one: they are noted, and the upgrade goes on.

Ctrl-C, `kill` and a closed terminal would otherwise leave no gateway running, neither the old one nor the new one.
"""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from gateway.cli.output import print_note
from gateway.config.home import Home
from gateway.upgrade.plan import UpgradeError

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTED = "\nthe gateway is down at this moment: this goes on until one runs again\n"


@dataclass(slots=True)
class EndingSignals:
    """The noted signals. `first`: the first one; "": none came."""

    first: str = ""

    def check(self) -> None:
        """Raise UpgradeError if a signal came, while nothing has changed yet."""
        if self.first:
            raise UpgradeError(f"it was interrupted by {self.first}")


@contextmanager
def keep_signals(home: Home) -> Generator[EndingSignals, None, None]:
    """Note these signals; once the terminal has gone, the output goes to a log of the home."""
    found, log = EndingSignals(), home.logs / "upgrade.log"

    def note(number: int, _frame: FrameType | None) -> None:
        found.first = found.first or signal.Signals(number).name
        if number == signal.SIGHUP:
            bind_output(log, 1, 2)
        with suppress(OSError):
            os.write(2, NOTED.encode())  # it does not disturb Python's own output

    before = {number: signal.signal(number, note) for number in ENDING}
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bind_output(log: Path, *channels: int) -> None:
    """Redirect these channels to the file, or to nowhere if it cannot be written."""
    try:
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    for channel in channels:
        os.dup2(descriptor, channel)
    os.close(descriptor)


def say(text: str) -> None:
    """Print a note; a missing reader, as behind a pipe, ends nothing."""
    try:
        sys.stdout.flush()
    except OSError:
        bind_output(Path(os.devnull), sys.stdout.fileno())
    with suppress(OSError):
        print_note(text)
