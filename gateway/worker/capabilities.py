"""What a hook may do through the gateway: `context.gateway.send(...)` and the like.

The same call serves both kinds of handlers. In a plain `def` it returns the answer: nothing else can run on the loop
then, so the call itself reads the wire until the answer is there. In a coroutine it returns a `PendingReply`, to be
awaited or left: the request is on its way already.
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

POLL_MS = 100  # ms between two looks at an answer that another thread may have read


class PendingReply:
    """An answer that is on its way: `await` it, or take its `result()` in a thread."""

    def __init__(self, future: "Future[Any]", requests: "GatewayRequests") -> None:
        self._future = future
        self._requests = requests

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self._future).__await__()

    def result(self) -> Any:
        """Raises RuntimeError with what the gateway said when it refused."""
        return self._requests.wait(self._future)


class GatewayRequests:
    """The requests of this worker that the gateway has not answered yet."""

    own: "ClassVar[GatewayRequests | None]" = None  # for modules that a handler imports: nobody can hand them anything

    def __init__(self, link: WorkerLink) -> None:
        GatewayRequests.own = self
        self._link = link
        self._numbers = itertools.count(1)
        self._open: dict[int, Future[Any]] = {}
        self._in_plain_code = False
        self.patches: dict[str, None] = {}  # what its handler has changed of another program's modules, each once
        self.during: ContextVar[str] = ContextVar("during", default="")

    def call_handler(self, function: Callable[[], Any]) -> Any:
        """While it runs, the handler's own `def` holds the loop."""
        self._in_plain_code = True
        try:
            return function()
        finally:
            self._in_plain_code = False

    def make(self, verb: str, params: dict[str, Any]) -> Any:
        reply = self._begin(verb, params)
        return reply.result() if self._must_wait() else reply

    def ask(self, verb: str, params: dict[str, Any]) -> Any:
        """The answer itself, also where that holds up a coroutine."""
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
            print(f"the gateway refused: {text}", file=sys.stderr)  # noqa: T201 - nobody may be waiting for the answer
            future.set_exception(RuntimeError(text))
        else:
            future.set_result(msgspec.json.decode(message.result))


# Makes a request of the gateway, by its verb and parameters: over a worker's wire, or on the gateway's own loop.
MakeRequest = Callable[[str, dict[str, Any]], Any]


class HookStore:
    """A small key-value store of this hook alone, which lasts."""

    def __init__(self, make: MakeRequest) -> None:
        self._make = make

    def get(self, key: str, default: Any = None) -> Any:
        return self._make("store.get", {"key": key, "default": default})

    def set(self, key: str, value: Any) -> Any:
        return self._make("store.set", {"key": key, "value": value})

    def delete(self, key: str) -> Any:
        return self._make("store.delete", {"key": key})

    def keys(self) -> Any:
        return self._make("store.keys", {})


class HookCapabilities:
    """What `uses:` in the manifest grants; the gateway refuses the rest, and says what to write there."""

    def __init__(self, make: MakeRequest) -> None:
        self._make = make
        self.store = HookStore(make)

    def facts(self) -> Any:
        """How the gateway is set up; everybody may know that, for there is no secret in it."""
        return self._make("facts", {})

    def send(self, to: str, text: str, **more: Any) -> Any:
        """Say something in a chat."""
        return self._make("send", {"to": to, "text": text} | more)

    def submit(self, text: str, **more: Any) -> Any:
        """Give the agent something to do; `session` and `deliver` say where it works and who hears of it."""
        return self._make("submit", {"text": text} | more)

    def emit(self, name: str, /, **fields: Any) -> Any:
        """Tell other hooks of an event of one's own."""
        return self._make("emit", {"name": name, "fields": fields})


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
