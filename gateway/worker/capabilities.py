"""A hook's requests to the gateway: `context.gateway.send(...)` and others.

The same call serves both kinds of hooks. In a plain `def` it returns the answer: nothing else can run on the loop then,
so the call itself reads the wire until the answer arrives. In a coroutine it returns a `PendingReply`, which may be
awaited or ignored: the request has already been sent.
"""

import asyncio
import itertools
import sys
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any, ClassVar

import msgspec

from gateway.worker.link import WireMessage, WorkerLink
from gateway.worker.protocol import REQUEST_PREFIX

POLL_MS = 100  # ms between two checks for an answer that another thread may have read


class PendingReply(msgspec.Struct, eq=False):
    """A pending answer: `await` it, or take its `result()` in a thread."""

    _future: "Future[Any]"
    _requests: "GatewayRequests"

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> Any:
        """Wait for the answer; raises RuntimeError with the gateway's reason for a refusal."""
        return self._requests.wait(self._future)


class GatewayRequests:
    """The requests of this worker without an answer so far."""

    own: "ClassVar[GatewayRequests | None]" = None  # for modules that a hook imports, which get no arguments

    def __init__(self, link: WorkerLink) -> None:
        GatewayRequests.own = self
        self._link = link
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[Any]] = {}
        self._in_plain_code = False
        self.patches: dict[str, None] = {}  # the hook's changes to another program's modules, each once
        self.during: ContextVar[str] = ContextVar("during", default="")

    def call_handler(self, function: Callable[[], Any]) -> Any:
        """Run a plain function of the hook, which blocks the loop."""
        self._in_plain_code = True
        try:
            return function()
        finally:
            self._in_plain_code = False

    def make(self, verb: str, params: dict[str, Any]) -> Any:
        reply = self._begin(verb, params)
        return reply.result() if self._must_wait() else reply

    def ask(self, verb: str, params: dict[str, Any]) -> Any:
        """Request something, and wait for the answer, even if that blocks a coroutine."""
        return self._begin(verb, params).result()

    def _begin(self, verb: str, params: dict[str, Any]) -> PendingReply:
        if not self._link.wire_guard.is_ours():
            raise RuntimeError("a process that the hook forked cannot ask the gateway; ask in the hook itself")
        number, future = next(self._numbers), Future[Any]()
        self._open[number] = future
        try:
            message = {"jsonrpc": "2.0", "id": number, "method": REQUEST_PREFIX + verb, "params": params}
            self._link.send(message | {"during": self.during.get()})
        except BaseException:
            del self._open[number]
            raise
        return PendingReply(future, self)

    def _must_wait(self) -> bool:
        if not self._link.in_loop_thread():
            return not _is_in_loop()
        return self._in_plain_code or asyncio.current_task() is None

    def wait(self, future: "Future[Any]") -> Any:
        while self._link.in_loop_thread() and not future.done():
            with self._link.signal_guard:
                for message in self._link.take_responses():
                    self.answer(message)
            if not future.done():
                self._link.wait(POLL_MS)
        return future.result()

    def answer(self, message: WireMessage) -> None:
        future = self._open.pop(message.id, None) if isinstance(message.id, int) else None
        if future is None:
            return
        if message.error is not None:
            text = str(message.error.get("message", "refused"))
            print(f"the gateway refused: {text}", file=sys.stderr)  # noqa: T201 - maybe no caller waits for the answer
            future.set_exception(RuntimeError(text))
        else:
            future.set_result(msgspec.json.decode(message.result))


# Make a request to the gateway, by its verb and parameters: over a worker's wire, or on the gateway's own loop.
MakeRequest = Callable[[str, dict[str, Any]], Any]


class HookStore(msgspec.Struct, eq=False):
    """A small persistent key-value store of this hook."""

    _make: MakeRequest

    def get(self, key: str, default: Any = None) -> Any:
        return self._make("store.get", {"key": key, "default": default})

    def set(self, key: str, value: Any) -> Any:
        return self._make("store.set", {"key": key, "value": value})

    def delete(self, key: str) -> Any:
        return self._make("store.delete", {"key": key})

    def keys(self) -> Any:
        return self._make("store.keys", {})


class HookCapabilities:
    """The requests that `uses:` in the manifest grants; the gateway refuses others, and says what to add there."""

    def __init__(self, make: MakeRequest) -> None:
        self._make = make
        self.store = HookStore(make)

    def facts(self) -> Any:
        """Return the setup of the gateway; every hook may read it, since it contains no secret."""
        return self._make("facts", {})

    def send(self, to: str, text: str, **more: Any) -> Any:
        """Send a text to a chat."""
        return self._make("send", {"to": to, "text": text} | more)

    def submit(self, text: str, **more: Any) -> Any:
        """Give the agent a task; `session` and `deliver` say where it works and who gets the result."""
        return self._make("submit", {"text": text} | more)

    def emit(self, name: str, /, **fields: Any) -> Any:
        """Fire an event of the hook's own for other hooks."""
        return self._make("emit", {"name": name, "fields": fields})


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
