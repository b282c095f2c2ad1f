"""A hook behind a URL: JSON-RPC 2.0, one POST a call, over connections that are kept.

Whatever the other side answers, the only error is `HookFailed`; the caller's `on_error` decides what follows. A reply
changes a field only when we sent it, the event lets a hook write it, and it is there in the reply with another value
(a server that answers null for what it was not sent changes nothing).

A URL that the operator wrote into a manifest of this machine may lead anywhere. Any other is only followed to public
addresses: a name is resolved once, by us, and the connection goes to that very address. Redirects are never followed.
"""

import functools
import itertools
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
import msgspec

from gateway.addresses import is_public
from gateway.errors import HookError
from gateway.events import Event, outcome_from
from gateway.hooks.wires import sherma
from gateway.hooks.wires.event_calls import intercept
from gateway.hooks.wires.field_encoding import to_plain
from gateway.hooks.wires.signing import sign
from gateway.hooks.wires.wire import Disconnection, HookAnswer, HookFailed, Wire, answer_of, unused_part_of
from gateway.late_imports import load_modules
from gateway.worker.json_decoder import JsonDecoder
from gateway.worker.protocol import CallMeta
from gateway.yaml_source.tree import to_printable

__all__ = ["Remote", "RemoteSpec", "interceptor"]

# Imported when the first remote hook is opened: it costs some 100 ms and 12 MB that most homes never need.
HTTP_LIBRARY = "aiohttp"
MAX_ANSWER_BYTES = 4 << 20
# What a model client is made with holds keys: they are sent to no other machine.
NEVER_SENT = frozenset({"model:create"})
MAX_CONNECTIONS = 32
TIMEOUT = 30.0  # seconds for an answer, where no other is given

_decode = JsonDecoder[Any]().decode


@functools.cache
def _load_aiohttp() -> ModuleType:
    return load_modules(HTTP_LIBRARY)[0]


@dataclass(frozen=True, slots=True)
class RemoteSpec:
    """Where a remote hook is and how it is spoken to. `key` signs; `is_local`: the operator wrote the URL."""

    name: str
    url: str
    dialect: str = "gateway"
    key: bytes | None = field(default=None, repr=False)
    is_local: bool = False


class PublicResolver:
    """Names to addresses, public ones alone; the connection is made to what is returned here, so nothing can change."""

    def __init__(self, resolve: Callable[..., Any]) -> None:
        self._resolve = resolve

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[dict[str, Any]]:
        """Raises OSError when no address of this name may be used."""
        infos = await self._resolve(host, port, family=family, type=socket.SOCK_STREAM)
        found = [(kind, address) for kind, _, _, _, address in infos if is_public(str(address[0]))]
        if not found:
            raise OSError(None, f"{host} is not on the public internet")
        flags = socket.AI_NUMERICHOST
        return [
            {"hostname": host, "host": address[0], "port": port, "family": kind, "proto": 0, "flags": flags}
            for kind, address in found
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


class Remote:
    """The wire to one URL."""

    def __init__(self, spec: RemoteSpec, clock: Callable[[], float], ids: Callable[[], str]) -> None:
        self._spec = spec
        self._clock = clock
        self._ids = ids
        self._calls = itertools.count(1)
        self._session: Any = None
        self._in_flight = 0
        self._idle = anyio.Event()
        self.gone = Disconnection()

    @classmethod
    async def open(
        cls,
        spec: RemoteSpec,
        clock: Callable[[], float],
        ids: Callable[[], str],
        resolve: Callable[..., Any] = anyio.getaddrinfo,
    ) -> "Remote":
        """Make ready to call; the other side is not asked yet.

        Raises:
            HookError: the URL leads where it must not.
        """
        host = urlsplit(spec.url).hostname or ""
        is_ip_address = ":" in host or host.replace(".", "").isdigit()
        if not spec.is_local and is_ip_address and not is_public(host):
            raise HookError(f"{spec.name}: the url leads to {host}, which is not on the public internet")
        remote = cls(spec, clock, ids)
        http = await anyio.to_thread.run_sync(_load_aiohttp)
        resolver = None if spec.is_local else PublicResolver(resolve)
        remote._session = http.ClientSession(
            connector=http.TCPConnector(limit=MAX_CONNECTIONS, resolver=resolver, use_dns_cache=spec.is_local),
            cookie_jar=http.DummyCookieJar(),
            auto_decompress=False,
            timeout=http.ClientTimeout(total=None, sock_connect=10),
            headers={"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"},
        )
        return remote

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
        if self._session is not None:
            await self._session.close()

    async def post(self, body: bytes, headers: Mapping[str, str], timeout: float) -> bytes:
        """The body of a good answer. HookFailed for any other, and for none."""
        if self.gone:
            raise HookFailed(f"{self._spec.name}: {self.gone.reason}", kind="refused")
        self._in_flight += 1
        try:
            with anyio.fail_after(timeout):
                async with self._session.post(
                    self._spec.url, data=body, headers=headers, allow_redirects=False
                ) as response:
                    return await self._body(response)
        except TimeoutError:
            raise self._failed(f"no answer within {timeout:g} s", "timeout") from None
        except (OSError, _load_aiohttp().ClientError) as error:
            raise self._failed(f"{type(error).__name__}: {str(error)[:300]}", "died") from None
        finally:
            self._in_flight -= 1
            self._idle.set()

    async def _body(self, response: Any) -> bytes:
        if 300 <= response.status < 400:
            to = to_printable(str(response.headers.get("Location", "another place")), 300)
            raise self._failed(f"HTTP {response.status}: it sends us on to {to}; write that as the url", "died")
        if response.status >= 400:
            raise self._failed(f"HTTP {response.status} {(response.reason or '')[:100]}".rstrip(), "died")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise self._failed("a compressed answer, which was not asked for", "garbled")
        data = bytearray()
        async for part in response.content.iter_any():
            data += part
            if len(data) > MAX_ANSWER_BYTES:
                raise self._failed(f"an answer of more than {MAX_ANSWER_BYTES >> 20} MB", "garbled")
        return bytes(data)

    def _result(self, body: bytes, number: int, sent: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            reply = _decode(body)
        except ValueError as error:
            begin = body[:60].decode("utf-8", "backslashreplace")
            raise self._failed(f"the answer is no JSON ({error}); it begins with {begin!r}", "garbled") from None
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
    """Whether a remote hook of this dialect is told of an event: what it has no word for is never sent."""
    return name not in NEVER_SENT and (dialect != "sherma" or sherma.find_method(name, fields) is not None)


def _to_sendable(fields: bytes | Mapping[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """The fields as plain data, and those that had to be dumped: these can be read there, and not be sent back."""
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
    """A hook for `registry.on` behind a wire.

    remote = await Remote.open(RemoteSpec("guard", "http://127.0.0.1:8000/hooks", is_local=True), time.time, new_id)
    registry.on("tool:before", interceptor(remote))
    """

    async def call(event: Event) -> Any:
        return await intercept(wire, event, timeout)

    return call
