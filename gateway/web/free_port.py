"""The address of a home whose configuration names none: the usual one, or one of the next ports that is free.

Two gateways of one machine can then both have their page. The home remembers its address, so that a link stays right.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from gateway.files.folders import write_file

MOST_PORTS = 10


class FreePort(msgspec.Struct, eq=False):
    """The choice of an address; `file` remembers it if it is not the usual one."""

    _usual: str
    _file: Path

    def list(self) -> Iterator[str]:
        """Yield the addresses to try: the remembered one, the usual one, and those of the next ports."""
        host, _, port = self._usual.rpartition(":")
        known = [f"{host}:{int(port) + number}" for number in range(MOST_PORTS)]
        kept = self._read()
        yield from sorted(known, key=lambda address: address != kept)

    def keep(self, address: str) -> bool:
        """Remember the address for the next start; return True if it is another one than before."""
        if address == (self._read() or self._usual):
            return False
        with suppress(OSError):  # it is found again at the next start
            write_file(self._file, f"{address}\n".encode())
        return True

    def _read(self) -> str:
        """Return the remembered address, or ""."""
        try:
            return self._file.read_text("utf-8").strip()
        except (OSError, ValueError):
            return ""
