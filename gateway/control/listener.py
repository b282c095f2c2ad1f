"""The entrance of the control socket: it stays open at the limit of open files, and admits a limited number of callers.

A process at its limit of open files cannot accept a connection, and the kernel goes on to report it: the caller is
neither accepted nor refused. So one descriptor is held in reserve. It is released to accept that one caller, who gets
the reason and is disconnected, and is taken back, all in one step, before other code opens a file; connected callers
notice nothing. A caller that comes while the reserve is missing is refused, too: on the last file, it would leave none
to explain the refusal of the next.
"""

import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import anyio.abc

from gateway.control.callers import NO_FILES

log = logging.getLogger(__name__)

MAX_CALLERS = 256
PAUSE = 0.2  # before the next caller, while no file can be opened: the connected callers need the files more
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
FULL = f"{MAX_CALLERS} callers are connected already: try again when one has left"

Converse: TypeAlias = Callable[[anyio.abc.SocketStream], Awaitable[None]]


class CallerListener:
    """Accepts callers. `make_refusal` makes the answer to a refused caller from the reason."""

    def __init__(
        self, accepting: anyio.abc.Listener[anyio.abc.SocketStream], make_refusal: Callable[[str], bytes]
    ) -> None:
        self._accepting: Any = accepting
        self._socket: socket.socket = accepting.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
        self._make_refusal = make_refusal
        self._reserve: int | None = None
        self._callers = 0

    async def serve(self, converse: Converse) -> None:
        """Serve until cancelled; each caller has a task of its own."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._take_reserve()
                    await anyio.wait_readable(self._socket)
                    stream = await self._accept()
                    if stream is None:
                        await anyio.sleep(PAUSE)
                    elif why := self._why_not():
                        self._send_away(stream.extra(anyio.abc.SocketAttribute.raw_socket), why)  # noqa: S610 - no database
                        await stream.aclose()
                    else:
                        self._callers += 1
                        tasks.start_soon(self._converse, converse, stream)
        finally:
            self._give_up_reserve()

    def _why_not(self) -> str:
        """Return why the next caller is refused, or an empty text."""
        if not self._take_reserve():
            return NO_FILES
        return FULL if self._callers >= MAX_CALLERS else ""

    async def _converse(self, converse: Converse, stream: anyio.abc.SocketStream) -> None:
        try:
            await converse(stream)
        finally:
            self._callers -= 1

    async def _accept(self) -> anyio.abc.SocketStream | None:
        """Accept the next caller, or return None if no file could be opened; the caller was then refused if so."""
        try:
            stream: anyio.abc.SocketStream = await self._accepting.accept()
        except anyio.BrokenResourceError as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in OUT_OF_FILES:
                raise
            log.warning("control: %s", NO_FILES)
            self._refuse_by_reserve()
            return None
        return stream

    def _refuse_by_reserve(self) -> None:
        """Refuse a caller with the reserve; without the reserve the caller waits, until a file is free."""
        if self._reserve is not None:
            self._give_up_reserve()
            with suppress(OSError):  # another thread was faster, or the caller has left
                connection, _ = self._socket.accept()
                self._send_away(connection, NO_FILES)
            self._take_reserve()

    def _send_away(self, connection: socket.socket, why: str) -> None:
        """Send the reason and disconnect the caller, who can still read it."""
        with connection, suppress(OSError):
            connection.setblocking(False)
            connection.send(self._make_refusal(why))

    def _take_reserve(self) -> bool:
        """Take the reserve, and return True if we have it."""
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._reserve is not None

    def _give_up_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
