"""A server of tools that is a program: its process, and the messages to and from it, a line each.

The library has this too, but keeps every line whole, however long it is, and copies what it has with each piece that
arrives: a result of 60 MB cost a minute of the loop.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream, Process

from gateway.agent.mcp.message_limiter import MessageLimiter
from gateway.worker import kernel

END_TIMEOUT = 2.0  # seconds to end after its input is closed, and again after a signal
KILL_TIMEOUT = 2.0  # seconds to see that it is gone
FLUSH_TIMEOUT = 0.5  # seconds for what is still to be written
POLL_PAUSE = 0.01
ParseMessage: TypeAlias = Callable[[bytes], Any]  # what the library makes of a line, an error too
Streams: TypeAlias = tuple[ObjectReceiveStream[Any], ObjectSendStream[Any]]


@asynccontextmanager
async def run_server(
    command: list[str],
    env: Mapping[str, str],
    folder: Path,
    errors: TextIO,
    limiter: MessageLimiter,
    parse: ParseMessage,
) -> AsyncIterator[Streams]:
    """Run the program while inside. Gives the two streams that the library's client wants."""
    process = await anyio.open_process(command, env=env, stderr=errors, cwd=folder, start_new_session=True)
    kernel.restore_descriptor_limit(process.pid)
    arrived, reading = anyio.create_memory_object_stream[Any](0)
    writing, given = anyio.create_memory_object_stream[Any](0)
    written = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read_messages, process, arrived, limiter, parse)
        tasks.start_soon(_write_messages, process, given, written, arrived)
        try:
            yield reading, writing
        finally:
            with anyio.CancelScope(shield=True):
                reading.close()
                writing.close()
                with anyio.move_on_after(FLUSH_TIMEOUT):
                    await written.wait()
                await _end(process)
                for stream in (arrived, given):
                    stream.close()
            tasks.cancel_scope.cancel()


async def _read_messages(
    process: Process, arrived: ObjectSendStream[Any], limiter: MessageLimiter, parse: ParseMessage
) -> None:
    """Read messages until the process ends, or sends something unreadable; drop the rest, so that it can end."""
    output = process.stdout
    assert output is not None
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError):
        try:
            async with arrived:
                async for line in limiter.read_lines(output):
                    await arrived.send(parse(line))
        finally:
            with anyio.CancelScope(shield=True), suppress(anyio.EndOfStream):
                while True:
                    await output.receive()


async def _write_messages(
    process: Process, given: ObjectReceiveStream[Any], written: anyio.Event, arrived: ObjectSendStream[Any]
) -> None:
    assert process.stdin is not None
    try:
        async with given:
            async for message in given:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(text.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        await arrived.aclose()  # it may still live: callers who wait for an answer get an error
    finally:
        written.set()


async def _end(process: Process) -> None:
    """End a process: close its input, then send it and its children a signal, and finally kill it."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _has_ended(process, END_TIMEOUT):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            if await _has_ended(process, KILL_TIMEOUT):
                break
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdout.aclose()


async def _has_ended(process: Process, seconds: float) -> bool:
    """Poll for the end of the process, and return True if it came: a child may hold its pipes, and hide it."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110 - see above
            await anyio.sleep(POLL_PAUSE)
    return process.returncode is not None
