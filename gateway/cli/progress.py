"""What is being waited for, said to whoever looks on: a wait of over a second is never a silence."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from gateway.cli.output import format_duration, print_note

QUIET_SECONDS = 1.0  # seconds before a word is said
TICK = 0.25


@contextmanager
def show_progress(what: str) -> Generator[None, None, None]:
    """On a terminal one line of stderr counts the seconds, and goes; elsewhere it is said once."""
    over = threading.Event()
    teller = threading.Thread(target=_print_progress, args=(what, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _print_progress(what: str, over: threading.Event) -> None:
    begun = time.monotonic()
    if over.wait(QUIET_SECONDS):
        return
    if not sys.stderr.isatty():
        print_note(f"{what} ...")
        return
    while not over.wait(TICK):
        sys.stderr.write(f"\r\x1b[2K{what}: {format_duration(time.monotonic() - begun)}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()
