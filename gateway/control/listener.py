"""The door of the control socket: it stays open when the process can open nothing more, and lets in only so many.

A process at its limit of open files cannot accept a connection, and the kernel goes on to report it: whoever waits is
neither let in nor sent away. So one descriptor is held in reserve. It is given up to accept that one caller, who is
told why and sent away, and taken back, all in one go, as whoever else opens a file would have it; those who are
connected feel nothing of it. Whoever comes while it is lacking is sent away, too: let in on the last file, they would
leave nothing with which the next is told why.
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
PAUSE = 0.2  # before the next is let in, while nothing can be opened: to the others the files are of more use
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
FULL = f"{MAX_CALLERS} callers are connected already: try again when one has left"

Converse: TypeAlias = Callable[[anyio.abc.SocketStream], Awaitable[None]]


class CallerListener:
    """Lets callers in. `make_refusal`: what one that is not let in reads, of the reason."""

    def __init__(
        self, accepting: anyio.abc.Listener[anyio.abc.SocketStream], make_refusal: Callable[[str], bytes]
    ) -> None:
        self._accepting: Any = accepting
        self._socket: socket.socket = accepting.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - no database
        self._make_refusal = make_refusal
        self._reserve: int | None = None
        self._callers = 0

    async def serve(self, converse: Converse) -> None:
        """Until cancelled; each caller has a task of its own."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._take_reserve()
                    await anyio.wait_readable(self._socket)
                    stream = await self._accept()
                    if stream is None:
                        await anyio.sleep(PAUSE)
                    elif why := self._why_not():
                        self._send_away(stream.extra(anyio.abc.SocketAttribute.raw_socket), why)  # noqa: S610 - likewise
                        await stream.aclose()
                    else:
                        self._callers += 1
                        tasks.start_soon(self._converse, converse, stream)
        finally:
            self._give_up_reserve()

    def _why_not(self) -> str:
        """Why whoever comes now is not let in, if so."""
        if not self._take_reserve():
            return NO_FILES
        return FULL if self._callers >= MAX_CALLERS else ""

    async def _converse(self, converse: Converse, stream: anyio.abc.SocketStream) -> None:
        try:
            await converse(stream)
        finally:
            self._callers -= 1

    async def _accept(self) -> anyio.abc.SocketStream | None:
        """The next caller; None where nothing could be opened, and whoever came was sent away if that was possible."""
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
        """Without the reserve the caller waits, until a file is free."""
        if self._reserve is not None:
            self._give_up_reserve()
            with suppress(OSError):  # another thread was faster, or the caller has left
                connection, _ = self._socket.accept()
                self._send_away(connection, NO_FILES)
            self._take_reserve()

    def _send_away(self, connection: socket.socket, why: str) -> None:
        """What is said stays to be read."""
        with connection, suppress(OSError):
            connection.setblocking(False)
            connection.send(self._make_refusal(why))

    def _take_reserve(self) -> bool:
        """Whether it is there."""
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._reserve is not None

    def _give_up_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
