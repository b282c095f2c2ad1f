"""The door of the control socket: it stays open when the process can open nothing more, and lets in only so many.

A process at its limit of open files cannot accept a connection, and the kernel goes on to report it: whoever waits is
neither let in nor sent away. So one descriptor is held in reserve. It is given up to accept that one caller, who is
told why and sent away, and taken back; those who are connected feel nothing of it.
"""

import errno
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import anyio.abc

from gateway.control_socket.callers import NO_FILES

log = logging.getLogger(__name__)

MAX_CALLERS = 256
PAUSE = 0.2  # before the next is let in, while nothing can be opened: to the others the files are of more use
TELL_SECONDS = 1.0  # for one that is sent away to take the reason
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
FULL = f"{MAX_CALLERS} callers are connected already: try again when one has left"

Converse: TypeAlias = Callable[[anyio.abc.SocketStream], Awaitable[None]]
SendAway: TypeAlias = Callable[[anyio.abc.SocketStream, str], Awaitable[None]]


class CallerListener:
    """Lets callers in. `refuse` tells one that is not why."""

    def __init__(self, accepting: anyio.abc.Listener[anyio.abc.SocketStream], refuse: SendAway) -> None:
        self._accepting: Any = accepting
        self._refuse = refuse
        self._reserve: int | None = None
        self._callers = 0

    async def serve(self, converse: Converse) -> None:
        """Until cancelled; each caller has a task of its own."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._take_reserve()
                    stream = await self._accept()
                    if stream is None:
                        await anyio.sleep(PAUSE)
                    elif self._callers >= MAX_CALLERS:
                        await self._send_away(stream, FULL)
                    else:
                        self._callers += 1
                        tasks.start_soon(self._converse, converse, stream)
        finally:
            self._give_up_reserve()

    async def _converse(self, converse: Converse, stream: anyio.abc.SocketStream) -> None:
        try:
            await converse(stream)
        finally:
            self._callers -= 1

    async def _accept(self) -> anyio.abc.SocketStream | None:
        """The next caller; None where nothing could be opened, and whoever came was sent away if that was possible."""
        try:
            return await self._accept_one()
        except OSError as error:
            if error.errno not in OUT_OF_FILES:
                raise
            log.warning("control: %s", NO_FILES)
        if self._reserve is not None:
            self._give_up_reserve()
            with suppress(OSError):  # somebody else was faster
                await self._send_away(await self._accept_one(), NO_FILES)
        return None

    async def _accept_one(self) -> anyio.abc.SocketStream:
        """Raises OSError as the kernel said it."""
        try:
            stream: anyio.abc.SocketStream = await self._accepting.accept()
        except anyio.BrokenResourceError as error:
            raise error.__cause__ or OSError(str(error)) from None
        return stream

    async def _send_away(self, stream: anyio.abc.SocketStream, why: str) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError), anyio.move_on_after(TELL_SECONDS):
            await self._refuse(stream, why)
        with anyio.CancelScope(shield=True):
            await stream.aclose()

    def _take_reserve(self) -> None:
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _give_up_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
