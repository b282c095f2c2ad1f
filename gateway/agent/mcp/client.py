"""One connection to a server of tools, through the official library, as long as it lasts.

The library's client must be entered and left by one task: `connect` is used by the task that keeps the server, and
calls come from the tasks of turns. A call that is cancelled is cancelled at the server too; that is the library's work.
"""

import hashlib
import logging
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import ObjectReceiveStream

from gateway import __version__
from gateway.agent.libraries import load_library
from gateway.agent.mcp.message_limiter import (
    MessageLimiter,
    MessageParser,
    make_error_response,
    remove_output_schemas,
)
from gateway.agent.mcp.server_process import ParseMessage, run_server
from gateway.agent.mcp.trust import NEVER_SEEN, SnapshotStore, ToolSnapshot, ToolTrust, describe_change, snapshot_of
from gateway.agent.tools import ShowPicture, Tool, ToolContext
from gateway.config.fields import Secret
from gateway.config.settings import McpServerSettings
from gateway.errors import AgentError
from gateway.threads import run_in_thread
from gateway.worker.process_marks import env_of
from gateway.worker.tool_names import FORBIDDEN_CHARACTERS, MARK_DIGITS

log = logging.getLogger(__name__)

CONNECT_TIMEOUT = 30.0
MAX_TOOLS = 1000
MAX_PAGES = 100  # of the list of them
MAX_WARNINGS = 10  # of one connection, of lines that are not messages
LONGEST_LINE = 2000
LONGEST_REASON = 200
CONNECTION_CLOSED = -32000  # the library's code for a connection that ended under a call
LONGEST_NAME = 64  # so many characters models allow
LONGEST_DESCRIPTION = 4000
MOST_PICTURES = 5  # of a result


class McpSpec(msgspec.Struct, frozen=True):
    """A server and its rights here.

    A program sees PATH, HOME and the like, and otherwise only its `env`; it runs in `folder`. `output_limit` is the
    longest result that the model sees. `is_inherited`: see `ToolTrust`. Its `mark` identifies it after a crash.
    """

    name: str
    settings: McpServerSettings
    folder: Path
    output_limit: int
    parser: MessageParser
    is_inherited: bool = False
    mark: str = ""

    @property
    def trust(self) -> ToolTrust:
        return ToolTrust(self.settings, self.is_inherited)


class McpConnection(msgspec.Struct, eq=False):
    """A server while it is connected; `ended` is set once it is not any more.

    `changed`: by their own names, the tools that are not as they were when a person last saw them, and how.
    """

    _spec: McpSpec
    _client: Any
    ended: anyio.Event
    _snapshots: SnapshotStore
    changed: dict[str, str] = {}
    _tools: tuple[Tool, ...] | None = None
    _now: Mapping[str, ToolSnapshot] = {}

    def forget_tools(self) -> None:
        """Forget the tools, since the server says that they have changed."""
        self._tools = None

    async def tools(self) -> tuple[Tool, ...]:
        """Return the server's tools; they are fetched once, and again when the server says that they changed."""
        if self._tools is None:
            found: list[Any] = []
            cursor = None
            for _ in range(MAX_PAGES):
                page = await self._client.list_tools(cursor=cursor)
                found += page.tools
                if not (cursor := page.next_cursor) or len(found) >= MAX_TOOLS:
                    break
            wanted = self._spec.settings.tools
            offered = [one for one in found[:MAX_TOOLS] if wanted is None or one.name in wanted]
            self._now = {one.name: snapshot_of(one) for one in offered}
            await self._compare(self._now)
            self._tools = tuple(self._tool(one, self._now[one.name]) for one in offered)
        elif self.changed:  # until a person approves it, here or elsewhere
            await self._compare(self._now)
        return self._tools

    async def _compare(self, now: Mapping[str, ToolSnapshot]) -> None:
        """Find the tools that changed. The first descriptions of a new server count as approved."""
        server = self._spec.name
        before = await self._snapshots.read(server)
        if not before:
            await self._snapshots.write(server, now)
            return
        changed = {
            name: describe_change(before.get(name), one)
            for name, one in now.items()
            if before.get(name, NEVER_SEEN).digest != one.digest
        }
        for name, how in changed.items():
            if self.changed.get(name) != how:
                log.warning("the tool %s of the server %s %s; it asks until an approver lets it run", name, server, how)
        self.changed = changed

    async def call(self, name: str, args: dict[str, Any], show: ShowPicture | None = None) -> str:
        """Call a tool. Raises AgentError in words for the model, whatever goes wrong."""
        result, seconds = None, self._spec.settings.timeout
        try:
            with anyio.move_on_after(seconds):
                result = await self._client.call_tool(name, args)
        except Exception as error:
            raise self._failure(error) from error
        if result is None:
            raise AgentError(f"{self._spec.name} took longer than {seconds:g} seconds; the gateway asked it to stop")
        text = await describe_result(result, self._spec.output_limit, None if result.is_error else show)
        if result.is_error:
            raise AgentError(text or f"{name} failed, and did not say why")
        return text

    def _failure(self, error: Exception) -> AgentError:
        if getattr(error, "code", None) == CONNECTION_CLOSED or not hasattr(error, "code"):
            self.ended.set()
            return AgentError(
                f"the tool server {self._spec.name} broke off: {error}. The effect of this call is unknown; it is "
                "being started again"
            )
        return AgentError(str(error))

    def _tool(self, found: Any, now: ToolSnapshot) -> Tool:
        own, trust = found.name, self._spec.trust

        async def call(args: dict[str, Any], context: ToolContext) -> str:
            if self.changed.pop(own, None):  # it is called, so a person let it run as it is now
                await self._snapshots.write(self._spec.name, {own: now})
            return await self.call(own, args, context.show)

        def asks(_args: dict[str, Any], facts: Mapping[str, Any]) -> bool:
            is_free = trust.is_allowed_for(facts.get("role"), own, only_reads=only_reads)
            return not is_free or (own in self.changed and not trust.is_listed(own))

        # Cut, since a server could fill the model's window with it.
        description = str(found.description or found.title or own)[:LONGEST_DESCRIPTION]
        hints = found.annotations
        only_reads = bool(hints and hints.read_only_hint)
        is_repeatable = only_reads or bool(hints and hints.idempotent_hint)
        is_trusted = trust.is_allowed(own, only_reads=only_reads)
        return Tool(
            make_tool_name(self._spec.name, own),
            description,
            found.input_schema,
            call,
            is_repeatable,
            asks=asks,
            is_trusted=is_trusted,
            changes="nothing" if only_reads and is_trusted else "files",
        )


@asynccontextmanager
async def connect(
    spec: McpSpec, on_line: Callable[[str], None], snapshots: SnapshotStore
) -> AsyncIterator[McpConnection]:
    """Connect while inside. `on_line` gets each line of a program's standard error."""
    sdk, stdio, http, shared, types, httpx2 = await run_in_thread(load_library, "mcp")
    limiter = MessageLimiter(spec.name, spec.parser, spec.output_limit)
    connection: McpConnection | None = None

    async def handle_message(message: Any) -> None:
        if connection and getattr(message, "method", "") == "notifications/tools/list_changed":
            connection.forget_tools()

    async with anyio.create_task_group() as tasks:
        transport: AbstractAsyncContextManager[Any]
        if spec.settings.command:
            environ = stdio.get_default_environment() | _reveal(spec.settings.env) | env_of(spec.mark)
            parse = MessageDecoder(spec.name, shared.SessionMessage, types.jsonrpc_message_adapter.validate_json).decode
            transport = _connect_program(spec, environ, limiter, parse, on_line, tasks)
        else:
            transport = _connect_url(spec, limiter, http, httpx2)
        ended = anyio.Event()
        client = sdk.Client(
            _watch_transport(transport, ended),
            client_info=sdk.Implementation(name="hermes-gateway", version=__version__),
            message_handler=handle_message,
            cache=None,
        )
        with anyio.CancelScope(deadline=anyio.current_time() + CONNECT_TIMEOUT) as scope:
            async with client:
                scope.deadline = inf
                connection = McpConnection(spec, client, ended, snapshots)
                tasks.start_soon(_listen, client, connection)
                try:
                    yield connection
                finally:
                    tasks.cancel_scope.cancel()
        if scope.cancelled_caught and connection is None:
            raise AgentError(f"no answer within {CONNECT_TIMEOUT:g} seconds")
        tasks.cancel_scope.cancel()


async def _listen(client: Any, connection: McpConnection) -> None:
    """Listen to a stream on which newer servers report that their tools changed."""
    try:
        async with client.listen(tools_list_changed=True) as changes:
            async for _ in changes:
                connection.forget_tools()
    except Exception as error:  # noqa: BLE001 - the library's many ways to say that this server has no such stream
        log.debug("the tool server tells of no changes: %s", error)


@asynccontextmanager
async def _connect_program(
    spec: McpSpec,
    environ: Mapping[str, str],
    limiter: MessageLimiter,
    parse: ParseMessage,
    on_line: Callable[[str], None],
    tasks: anyio.abc.TaskGroup,
) -> AsyncIterator[Any]:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as output, os.fdopen(writing, "w") as errors:
        os.set_blocking(reading, False)
        tasks.start_soon(_read_lines, output, on_line)
        command = [spec.settings.command, *spec.settings.args]
        async with run_server(command, environ, spec.folder, errors, limiter, parse) as streams:
            yield streams


@asynccontextmanager
async def _connect_url(spec: McpSpec, limiter: MessageLimiter, http: Any, httpx2: Any) -> AsyncIterator[Any]:
    times = httpx2.Timeout(CONNECT_TIMEOUT, read=max(spec.settings.timeout, 300.0))
    headers = _reveal(spec.settings.headers) | {"Accept-Encoding": "identity"}  # a small body that grows is not a bound

    class BoundedStream(httpx2.AsyncByteStream):  # type: ignore[misc] # of a library that is loaded late
        def __init__(self, response: Any) -> None:
            self._inner = response.stream
            self._is_stream = response.headers.get("content-type", "").startswith("text/event-stream")

        async def __aiter__(self) -> AsyncIterator[bytes]:
            if not self._is_stream:
                yield await limiter.read_whole(self._inner)
                return
            async for line in limiter.read_lines(self._inner, b"data:"):
                yield line + b"\n"

        async def aclose(self) -> None:
            await self._inner.aclose()

    async def bound(response: Any) -> None:
        if (encoding := response.headers.get("content-encoding", "identity")) != "identity":
            raise AgentError(f"{spec.name} answers in {encoding}, which was not asked for")
        response.stream = BoundedStream(response)

    async with (
        httpx2.AsyncClient(headers=headers, timeout=times, event_hooks={"response": [bound]}) as client,
        http.streamable_http_client(spec.settings.url, http_client=client) as streams,
    ):
        yield streams


class MessageDecoder(msgspec.Struct, eq=False):
    """The decoder of lines for the library's client."""

    _server: str
    _wrap: Callable[[Any], Any]
    _validate: Callable[..., Any]
    _warnings: int = 0

    def decode(self, line: bytes) -> Any:
        """Decode a line.

        One that is not a message becomes an error for the caller that waits for it, or else for listeners.
        """
        try:
            return self._wrap(self._validate(line, by_name=False))
        except ValueError as error:
            why = " ".join(str(error).split())[:LONGEST_REASON]
            self._warn(why)
            response = make_error_response(line, f"the answer of {self._server} could not be read: {why}")
            return self._wrap(self._validate(response, by_name=False)) if response else error

    def _warn(self, why: str) -> None:
        self._warnings += 1
        if self._warnings <= MAX_WARNINGS:
            more = "; further ones are not logged" if self._warnings == MAX_WARNINGS else ""
            log.warning("the tool server %s wrote what is not a message: %s%s", self._server, why, more)


async def _read_lines(output: Any, on_line: Callable[[str], None]) -> None:
    """Read until cancelled. A line without end is cut, so that it takes bounded memory."""
    rest = b""
    while True:
        await anyio.wait_readable(output)
        piece = output.read(65_536)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest[-LONGEST_LINE:]
        for line in lines:
            if text := line[:LONGEST_LINE].decode("utf-8", "replace").strip():
                on_line(text)


@asynccontextmanager
async def _watch_transport(
    transport: AbstractAsyncContextManager[Any], ended: anyio.Event
) -> AsyncIterator[tuple["_WatchedStream", Any]]:
    async with transport as (reading, writing):
        yield _WatchedStream(reading, ended), writing


class _WatchedStream(ObjectReceiveStream[Any]):
    """A stream that notes its end, so that a program that dies while no one calls it is noticed."""

    def __init__(self, inner: Any, ended: anyio.Event) -> None:
        self._inner = inner
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        try:
            received = await self._inner.receive()
            remove_output_schemas(getattr(received, "message", None))
            return received
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._ended.set()
            raise

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        with suppress(anyio.ClosedResourceError):
            await self._inner.aclose()


def _reveal(secrets: Mapping[str, Secret]) -> dict[str, str]:
    return {name: secret.reveal() for name, secret in secrets.items()}


def make_tool_name(server: str, tool: str) -> str:
    """Return `mcp_<server>_<tool>`, in the characters that models allow; a changed name gets a mark of its own."""
    wanted = f"mcp_{server}_{tool}"
    name = FORBIDDEN_CHARACTERS.sub("_", wanted)
    if name == wanted and len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(wanted.encode()).hexdigest()[:MARK_DIGITS]
    return f"{name[: LONGEST_NAME - MARK_DIGITS - 1]}_{mark}"


async def describe_result(result: Any, limit: int, show: ShowPicture | None) -> str:
    """Describe a result as text. Its first pictures are shown; other content is named."""
    lines, shown = list[str](), 0
    for block in result.content:
        if block.type == "image" and show and shown < MOST_PICTURES and (data := _decode(block.data)):
            lines.append(await show(data))
            shown += 1
        else:
            lines.append(_describe_block(block))
    text = "\n".join(lines)
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    return text if len(text) <= limit else f"{text[:limit]}\n[cut after {limit} characters]"


def _describe_block(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource_link":
            return f"[resource {block.uri}{f': {block.description}' if block.description else ''}]"
        case "resource":
            kept = block.resource
            return getattr(kept, "text", None) or f"[resource {kept.uri}, {kept.mime_type or 'no text'}]"
    return f"[{block.type}, {getattr(block, 'mime_type', 'no text')}]"


def _decode(data: str) -> bytes:
    """Decode base64; empty for invalid or incomplete text."""
    try:
        return b64decode(data, validate=True)
    except ValueError:
        return b""
