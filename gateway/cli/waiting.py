"""What is being waited for, said to whoever looks on: a wait of over a second is never a silence."""

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from gateway.cli.output import note, span

PATIENCE = 1.0  # seconds before a word is said
TICK = 0.25


@contextmanager
def waiting(what: str) -> Generator[None, None, None]:
    """On a terminal one line of stderr counts the seconds, and goes; elsewhere it is said once."""
    over = threading.Event()
    teller = threading.Thread(target=_tell, args=(what, over), daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def _tell(what: str, over: threading.Event) -> None:
    begun = time.monotonic()
    if over.wait(PATIENCE):
        return
    if not sys.stderr.isatty():
        note(f"{what} ...")
        return
    while not over.wait(TICK):
        sys.stderr.write(f"\r\x1b[2K{what}: {span(time.monotonic() - begun)}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()
