"""A hook server makes an ASGI application of handlers, for any ASGI server or framework.

    from gateway.hooks import Deny
    from gateway.hooks.server import HookServer

    def guard(event):
        if "sudo" in str(event["args"]):
            return Deny("Nothing here runs as root.")

    app = HookServer({"tool:before": guard})

The server answers the gateway's `url:` hooks and sherma's client: a sherma method reaches the handler of that name, or
the handler of the gateway's event for this method. A handler is a plain or async function of one event; it changes
fields in place, or returns a mapping, `End`, `Deny` or `Retry`, or raises an outcome.
"""

import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from typing import Any

import msgspec

from gateway.events import (
    OUTCOMES,
    Bags,
    Deny,
    Event,
    Pause,
    Question,
    find_marked,
    is_yes,
    outcome_from,
    outcome_to_dict,
)
from gateway.events.catalogue import get_event_spec
from gateway.hooks.patterns import EventSelector
from gateway.hooks.wires import sherma
from gateway.hooks.wires.field_encoding import JSON_ERRORS
from gateway.hooks.wires.signing import BadSignature, Verifier, key_of

__all__ = ["HookServer"]

Handler = Callable[[Event], Any]
AsgiScope = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[MutableMapping[str, Any]]]
AsgiSend = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RAISED, NOT_JSON, NO_REQUEST, NO_METHOD, NO_PARAMS = -32000, -32700, -32600, -32601, -32602
MAX_BODY_BYTES = 8 << 20
MAX_BATCH = 100

log = logging.getLogger(__name__)


class JsonRpcError(Exception):
    """The error of a JSON-RPC answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class HttpRefusal(Exception):
    """A refusal by an HTTP status, before JSON-RPC is read."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers


class HookServer:
    """Handlers by event name or glob, or an object: its methods marked with `@on`, or named after sherma's hooks.

    With a `secret`, the server accepts only requests signed with it (Standard Webhooks, like the manifest's
    `secret_env`).
    """

    def __init__(
        self, handlers: Mapping[str, Handler] | object, *, secret: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self._handlers = tuple((name, EventSelector([name]), call) for name, call in _collect_handlers(handlers))
        self._verifier = Verifier(key_of(secret), clock) if secret else None
        if not self._handlers:
            raise ValueError("a hook server needs a handler: HookServer({'tool:before': guard})")

    @property
    def asgi(self) -> "HookServer":
        """Return the ASGI application: the server itself. Uvicorn takes a bound method for an ASGI 2 application."""
        return self

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """Serve one connection, at any path."""
        if scope["type"] == "lifespan":
            await _handle_lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})
        else:
            await _send_response(send, *await self._answer_http(scope, receive))

    async def _answer_http(self, scope: AsgiScope, receive: AsgiReceive) -> tuple[int, dict[str, str], bytes]:
        try:
            body = await self._body(scope, receive)
        except HttpRefusal as refused:
            headers = {"content-type": "text/plain; charset=utf-8", **refused.headers}
            return refused.status, headers, f"{refused}\n".encode()
        answer = await self.answer(body)
        return (204, {}, b"") if answer is None else (200, {"content-type": "application/json"}, answer)

    async def answer(self, body: bytes) -> bytes | None:
        """Answer a JSON-RPC request; return None if the request contains only notifications."""
        try:
            asked = msgspec.json.decode(body)
        except JSON_ERRORS:
            return _encode_error(None, JsonRpcError(NOT_JSON, "the body is not JSON"))
        if not isinstance(asked, list):
            return await self._one(asked)
        if not asked:
            return _encode_error(None, JsonRpcError(NO_REQUEST, "an empty batch"))
        if len(asked) > MAX_BATCH:
            return _encode_error(None, JsonRpcError(NO_REQUEST, f"a batch of more than {MAX_BATCH}"))
        answers = [answer for request in asked if (answer := await self._one(request)) is not None]
        return b"[" + b",".join(answers) + b"]" if answers else None

    async def _one(self, request: Any) -> bytes | None:
        number = request.get("id") if isinstance(request, dict) else None
        wants_answer = not isinstance(request, dict) or "id" in request
        try:
            answer = _encode_result(number, await self._call_method(request))
        except JsonRpcError as fault:
            answer = _encode_error(number, fault)
        except Exception as error:  # a hook is foreign code: its caller gets the error, the server continues
            log.exception("the handler of %s failed", str(request.get("method"))[:100])
            answer = _encode_error(number, JsonRpcError(RAISED, str(error) or type(error).__name__))
        return answer if wants_answer else None

    async def _call_method(self, request: Any) -> Any:
        if not isinstance(request, dict) or not isinstance(request.get("method"), str):
            raise JsonRpcError(NO_REQUEST, "a request is an object with a method")
        name, params, meta = request["method"], request.get("params", {}), request.get("meta", {})
        if not isinstance(params, dict):
            raise JsonRpcError(NO_PARAMS, "params are an object: the event's fields")
        answers = meta.get("answers", {}) if isinstance(meta, dict) else {}
        if name in sherma.METHOD_NAMES or not name:
            return await self._call_sherma(name, params)
        if not any(name in selector for _, selector, _ in self._handlers) and get_event_spec(name) is None:
            raise JsonRpcError(NO_METHOD, f"no handler for {name[:200]}")
        return await self._run(name, params, answers)

    async def _call_sherma(self, name: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Answer a sherma client's call by the handler of that name, or else by the handlers of the matching event.

        The answer can contain changed fields, but no outcome.
        """
        method = sherma.find_method_by_name(name)
        is_named = any(known == name for known, _, _ in self._handlers)
        if is_named:
            result = await self._run(name, params, {})
        elif method is None:
            return None
        else:
            result = await self._run(method.point, method.event(params), {})
        if result is not None and "decision" in result:
            raise JsonRpcError(RAISED, f"{result['decision']} cannot be said to sherma: {result.get('message') or ''}")
        return result if is_named or method is None or result is None else method.reply(result, params) or None

    async def _run(self, name: str, params: dict[str, Any], answers: Any) -> Any:
        """Call the handlers of this event one after the other, exact names first, and return the result."""
        found = get_event_spec(name)
        writable = found.writable if found else None
        bags = Bags(answers=answers if isinstance(answers, dict) else {})
        event = Event(name, msgspec.json.decode(msgspec.json.encode(params)), writable, bags, hook=name)
        chain = [handler for pattern, _, handler in self._handlers if pattern == name]
        chain += [handler for pattern, selector, handler in self._handlers if pattern != name and name in selector]
        try:
            for handler in chain:
                answer = handler(event)
                answer = outcome_from(await answer if inspect.isawaitable(answer) else answer, event)
                if isinstance(answer, OUTCOMES):
                    return outcome_to_dict(answer)
                if isinstance(answer, Question) and not is_yes(event.ask(answer.prompt, answer.name)):
                    return outcome_to_dict(Deny(f"Not allowed: {answer.prompt}"))
                if isinstance(answer, Mapping):
                    event.update(answer)
        except (*OUTCOMES, Pause) as outcome:
            return outcome_to_dict(outcome)
        return {field: value for field, value in event.items() if field not in params or params[field] != value} or None

    async def _body(self, scope: AsgiScope, receive: AsgiReceive) -> bytes:
        """Read the body of a request. Raises HttpRefusal."""
        if scope["method"] != "POST":
            raise HttpRefusal(405, "hooks are called by POST", allow="POST")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise HttpRefusal(415, "the body must be application/json")
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HttpRefusal(400, "the client went away")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MAX_BODY_BYTES:
                raise HttpRefusal(413, f"the body is longer than {MAX_BODY_BYTES >> 20} MB")
        try:
            if self._verifier:
                self._verifier.verify(headers, bytes(body))
        except BadSignature as error:
            raise HttpRefusal(401, str(error)) from None
        return bytes(body)


def _collect_handlers(handlers: Mapping[str, Handler] | object) -> Iterator[tuple[str, Handler]]:
    if isinstance(handlers, Mapping):
        for name, handler in handlers.items():
            if not callable(handler):
                raise TypeError(f"the handler of {name} cannot be called")
            yield str(name), handler
        return
    for method, mark in find_marked(handlers):
        for name in mark.names:
            yield name, method
    for name in sorted(sherma.METHOD_NAMES):
        if callable(named := getattr(handlers, name, None)):
            yield name, named


def _encode_result(number: Any, result: Any) -> bytes:
    try:
        return msgspec.json.encode({"jsonrpc": "2.0", "result": result, "id": number})
    except JSON_ERRORS as error:
        raise JsonRpcError(RAISED, f"the handler's answer is not JSON: {error}") from None


def _encode_error(number: Any, fault: JsonRpcError) -> bytes:
    error = {"code": fault.code, "message": str(fault)}
    return msgspec.json.encode({"jsonrpc": "2.0", "error": error, "id": number})


async def _handle_lifespan(receive: AsgiReceive, send: AsgiSend) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _send_response(send: AsgiSend, status: int, headers: Mapping[str, str], body: bytes) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    if status != 204:
        raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
