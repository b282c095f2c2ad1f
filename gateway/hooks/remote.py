"""A hook behind a URL: JSON-RPC 2.0, one request a call, over HTTP or over NATS.

The only error for any answer is `HookFailed`; the caller's `on_error` decides what follows. A reply changes a field
only if the gateway sent the field, hooks may write the field at this event, and the value in the reply differs (a
server that answers null for a field that it did not get changes nothing).
"""

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec

from gateway.errors import HookError
from gateway.events import Event, outcome_from
from gateway.hooks.http_transport import HttpTransport
from gateway.hooks.nats_transport import NatsTransport, is_nats_url
from gateway.hooks.wires import sherma
from gateway.hooks.wires.event_calls import CallTerms, intercept
from gateway.hooks.wires.field_encoding import to_plain
from gateway.hooks.wires.signing import sign
from gateway.hooks.wires.wire import Disconnection, HookAnswer, HookFailed, Wire, answer_of, unused_part_of
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.protocol import CallMeta

__all__ = ["Remote", "RemoteSpec", "interceptor"]

# Arguments of a model client contain keys, and are sent to no other host.
NEVER_SENT = frozenset({"model:create"})
TIMEOUT = 30.0  # the default, in seconds, for an answer

_decode = JsonDecoder[Any]().decode


@dataclass(frozen=True, slots=True)
class RemoteSpec:
    """The address of a remote hook, and its protocol. `is_local`: the operator wrote the URL.

    `key` signs requests; `password` belongs to the user at NATS servers.
    """

    name: str
    url: str
    dialect: str = "gateway"
    key: bytes | None = field(default=None, repr=False)
    is_local: bool = False
    password: str = field(default="", repr=False)


class Remote(msgspec.Struct, eq=False):
    """The wire to one URL."""

    _spec: RemoteSpec
    _transport: HttpTransport | NatsTransport
    _clock: Callable[[], float]
    _ids: Callable[[], str]
    _calls: Iterator[int] = msgspec.field(default_factory=lambda: itertools.count(1))
    _in_flight: int = 0
    _idle: anyio.Event = msgspec.field(default_factory=anyio.Event)
    gone: Disconnection = msgspec.field(default_factory=Disconnection)

    @classmethod
    async def open(
        cls,
        spec: RemoteSpec,
        clock: Callable[[], float],
        ids: Callable[[], str],
        resolve: Callable[..., Any] = anyio.getaddrinfo,
    ) -> "Remote":
        """Prepare the wire; no request is sent yet.

        Raises:
            HookError: the URL leads to a forbidden address.
        """
        if not is_nats_url(spec.url):
            transport = await HttpTransport.open(spec.name, spec.url, None if spec.is_local else resolve)
            return cls(spec, transport, clock, ids)
        if not spec.is_local:
            raise HookError(
                f"{spec.name}: the url leads to NATS servers, which only a manifest of this machine may name"
            )
        return cls(spec, NatsTransport(spec.name, spec.url, spec.password), clock, ids)

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        sent, odd = _to_sendable(fields)
        if not can_send(self._spec.dialect, name, sent):
            return HookAnswer()
        method = sherma.find_method(name, sent) if self._spec.dialect == "sherma" else None
        number = next(self._calls)
        request: dict[str, Any] = {"jsonrpc": "2.0", "method": method.name if method else name}
        request["params"] = method.params(sent) if method else sent
        if not method and (plain_meta := msgspec.to_builtins(meta)):
            request["meta"] = plain_meta
        body = msgspec.json.encode({**request, "id": number})
        headers = sign(self._spec.key, self._ids(), self._clock(), body) if self._spec.key else {}
        reply = await self.post(body, headers, timeout)
        result = self._result(reply, number, {} if method else sent)
        if method and result and "decision" in result:
            what = (
                f"the answer decides ({str(result['decision'])[:40]!r}), and sherma's methods take changed fields alone"
            )
            raise self._failed(what, "garbled")
        if not meta.decides and result is not None:
            return unused_part_of(HookAnswer(result))
        if result is None:
            return HookAnswer()
        return _read_answer(method.changes(result) if method else result, sent, odd, meta)

    async def stop(self, grace: float) -> None:
        self.gone.tell("the hook was stopped")
        with anyio.move_on_after(grace):
            while self._in_flight:
                self._idle = anyio.Event()
                await self._idle.wait()
        await self._transport.close()

    async def post(self, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
        """Post a request and return the body of a good answer. Raises HookFailed otherwise."""
        if self.gone:
            raise HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="refused")
        self._in_flight += 1
        try:
            with anyio.fail_after(timeout):
                return await self._transport.exchange(body, headers)
        except TimeoutError:
            raise self._failed(f"no answer within {timeout:g} s", "timeout") from None
        finally:
            self._in_flight -= 1
            self._idle.set()

    def _result(self, body: bytes, number: int, sent: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            reply = _decode(body)
        except ValueError as error:
            begin = body[:60].decode("utf-8", "backslashreplace")
            raise self._failed(f"the answer is not JSON ({error}); it begins with {begin!r}", "garbled") from None
        if not isinstance(reply, dict):
            raise self._failed(f"the answer is a {type(reply).__name__}, not an object", "garbled")
        if (fault := reply.get("error")) is not None:
            message = fault.get("message", fault) if isinstance(fault, dict) else fault
            raise self._failed(f"the hook's server says: {str(message)[:1000]}", "raised")
        if reply.get("id") != number:
            raise self._failed(f"the answer is to request {str(reply.get('id'))[:40]!r}, not to {number}", "garbled")
        result = reply.get("result")
        if result is not None and not isinstance(result, dict):
            raise self._failed(f"the result is a {type(result).__name__}, not null or an object", "garbled")
        try:
            outcome_from(result, sent)
        except (TypeError, ValueError) as error:
            raise self._failed(str(error), "garbled") from None
        return result

    def _failed(self, what: str, kind: Any) -> HookFailed:
        return HookFailed(f"{self._spec.name} at {self._spec.url}: {what}", kind=kind)


def can_send(dialect: str, name: str, fields: Mapping[str, Any]) -> bool:
    """Return True if a remote hook of this dialect gets the event: the dialect needs a word for the event."""
    return name not in NEVER_SENT and (dialect != "sherma" or sherma.find_method(name, fields) is not None)


def _to_sendable(fields: bytes | Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the fields as plain data, and the names of fields that became text, which a reply may not change."""
    if isinstance(fields, bytes):
        decoded: dict[str, Any] = msgspec.json.decode(fields)
        return decoded, frozenset()
    return to_plain(fields)


def _read_answer(result: Mapping[str, Any], sent: Mapping[str, Any], odd: frozenset[str], meta: CallMeta) -> HookAnswer:
    if outcome_from(result, sent) is not result:
        return answer_of(result)
    differs = {name: value for name, value in result.items() if name in sent and sent[name] != value}
    writable = (sent.keys() if meta.writable is None else frozenset(meta.writable)) - odd
    changed = {name: value for name, value in differs.items() if name in writable}
    return HookAnswer(changed=changed, refused=tuple(sorted(differs.keys() - changed.keys())))


def interceptor(wire: Wire, timeout: float = TIMEOUT) -> Callable[[Event], Awaitable[Any]]:
    """Return a hook for `registry.on` behind a wire.

    remote = await Remote.open(RemoteSpec("guard", "http://127.0.0.1:8000/hooks", is_local=True), time.time, new_id)
    registry.on("tool:before", interceptor(remote))
    """

    async def call(event: Event) -> Any:
        return await intercept(wire, event, CallTerms(timeout))

    return call
