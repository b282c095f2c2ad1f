"""The home of a `hooks dev`: it is removed at the end, or after a kill by the next `hooks dev`."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.cli.stop import stop_gateway
from gateway.config.home import Home
from gateway.errors import GatewayError
from gateway.files.folders import lock_path
from gateway.installer.lock_file import remove_tree

PREFIX = "hermes-dev-"
HOME = "home"  # made once the folder is locked, so that a new one is not taken for an abandoned one


@contextmanager
def make_dev_home() -> Iterator[Path]:
    """Yield the path for a home; no other process removes it while this one lives."""
    remove_forgotten_homes()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as place, lock_path(Path(place)):
        yield Path(place) / HOME


def remove_forgotten_homes() -> None:
    """Remove the homes of dead processes, and stop the gateways that may still serve them."""
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{HOME}"):
        with suppress(OSError), reserve_place(place.parent):
            with suppress(GatewayError):
                stop_gateway(Home(place))
            remove_tree(place.parent)


@contextmanager
def reserve_place(place: Path) -> Iterator[None]:
    """Lock a folder of ours. Raises OSError if it is another user's, or in use."""
    with lock_path(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW) as descriptor:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(place)
        yield
