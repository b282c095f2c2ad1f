"""The common half of all models behind an HTTP endpoint, whoever the provider is.

The provider's library gives keys, addresses, headers, connections and typed errors. It is loaded when the model is
first used, and told not to retry: that is done in one place, `gateway.agent.models.fallback`. The request is encoded
and the stream is read by us, since the library's typed objects cost more time than all the rest of a turn.

What goes wrong is a `ModelError`, by one taxonomy for all providers: auth, quota, rate, overload, context, network,
timeout, filter, missing, request, response; `other` for the rest.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import anyio
import anyio.to_thread
import msgspec

from gateway.agent.libraries import load_library
from gateway.agent.model import Chunk, ModelRequest, estimate_tokens
from gateway.agent.models.prices import UNKNOWN_PRICE, TokenPrice
from gateway.agent.pictures import load_pictures
from gateway.agent.tools import RAW_ARGS
from gateway.config.providers import list_other_urls
from gateway.config.settings import ModelSettings
from gateway.errors import ConfigError, ModelError
from gateway.logs.redaction import REPLACEMENT
from gateway.transcript import ToolCall, Usage
from gateway.worker.json_decoder import JsonDecoder

log = logging.getLogger(__name__)

BY_STATUS: Mapping[int, str] = {
    400: "request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "missing",
    408: "timeout",
    413: "context",
    422: "request",
    429: "rate",
}
TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|maximum context|too many tokens|prompt is too long")
NO_CREDIT = re.compile(r"insufficient[_ ](quota|credit|balance|funds)|exceeded your current quota|billing")
NO_PICTURES = re.compile(r"image|vision|multi-?modal|content.{0,40}must be a string", re.IGNORECASE)
FILTERED = re.compile(r"content[_ ](filter|policy)|safety system")
LONGEST_ERROR = 500
LONGEST_EVENT = 8_000_000
LONGEST_STREAM = 100_000_000  # bytes: 128,000 tokens come in half of that
PROBE_SECONDS = 5.0
SHORTEST_SECRET = 6
DRAIN_SECONDS = 0.5  # for what may still come after the last word

Decoded = TypeVar("Decoded")

_decode = JsonDecoder[Any]().decode


@dataclass(slots=True)
class HttpModel(ABC):
    """One model behind an endpoint. `stall` is how long nothing may come; `extra` stands in every request's body.

    A provider's class says which library it needs, how a request is encoded (of its options only those in `options`),
    and what puts an answer together. `prices` are those of other models that the endpoint has. Without `pictures` it is
    told where they lie.
    """

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    stall: float = ModelSettings().timeout
    connect: float = 15.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    pictures: bool = True
    price: TokenPrice = field(default_factory=TokenPrice)
    prices: Mapping[str, TokenPrice] = field(default_factory=dict)
    _client: Any = field(default=None, init=False, repr=False)
    _response: Any = field(default=None, init=False, repr=False)

    answer_type: ClassVar[type["StreamedAnswer"]]
    library: ClassVar[str]
    client_name: ClassVar[str]  # of the class in the library
    default_url: ClassVar[str]
    path: ClassVar[str]
    models_path: ClassVar[str]  # of the list of models
    options: ClassVar[Collection[str]]  # the names of those that the endpoint understands
    filter_stop: ClassVar[str]  # the provider's word for an answer that it withheld
    stop_names: ClassVar[Mapping[str, str]] = MappingProxyType({})  # where the provider's words differ from ours

    @abstractmethod
    def encode_request(self, request: ModelRequest, pictures: Mapping[str, str]) -> bytes:
        """The body of the HTTP request, with these pictures: by their digest, in base64."""

    def encode_body(self, request: ModelRequest, body: Mapping[str, Any]) -> bytes:
        """The body with what all providers name alike; the request's own options win over `extra`."""
        options = {name: value for name, value in request.options.items() if name in self.options}
        start = {"model": request.name or self.name, "stream": True}
        return msgspec.json.encode({**start, **body, **self.extra, **options})

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The answer, as it comes. Whatever goes wrong is a ModelError."""
        name, length = request.name or self.name, 0
        answer = self.answer_type(self.price if name == self.name else self.prices.get(name, UNKNOWN_PRICE))
        try:
            response = await self._ask(request)
        except Exception as error:
            raise await self._explain(error) from error
        events = _read_events(response)
        try:
            async for data in events:
                if text := answer.add(data):
                    length += len(text)
                    yield Chunk(text)
                if answer.is_over:
                    break
        except Exception as error:
            raise self._clean(as_model_error(error)) from error
        finally:
            await _close_response(response, events if answer.is_over else None)
        if not answer.stop:
            raise _describe_missing_end(answer)
        if answer.stop == self.filter_stop:
            raise ModelError("the model's provider withheld the answer", kind="filter")
        stop = self.stop_names.get(answer.stop, answer.stop)
        usage = msgspec.structs.replace(
            answer.usage or answer.price.estimate(estimate_tokens(request), length), model=name
        )
        yield Chunk(tool_calls=answer.calls(), usage=usage, stop=stop)

    async def aclose(self) -> None:
        """Close the connections; the model can be used again afterwards."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, request: ModelRequest) -> Any:
        """The response. An endpoint that refuses the pictures is asked once more, and told where they lie instead.

        It is not remembered as one without eyes: another time it may be one person's broken file that it refuses.
        """
        shown = request.messages if self.pictures else ()
        pictures = await anyio.to_thread.run_sync(load_pictures, shown)
        try:
            return await self._post(self.encode_request(request, pictures))
        except Exception as error:  # a class of the library's, known by its status; any other goes on its way
            if not (pictures and _refuses_pictures(error)):
                raise
            log.info("%s takes no pictures, or not these (%s); it is told where they lie", self.name, _text_of(error))
        return await self._post(self.encode_request(request, {}))

    async def _post(self, body: bytes) -> Any:
        if self._client is None:
            # A second for the first model of a process: not on the loop, where others wait.
            sdk, http, *_ = await anyio.to_thread.run_sync(load_library, self.library)
            self._client = self._client or self._connect(sdk, http)
        return await self._client.post(
            self.path,
            cast_to=self._response,  # the bare response: the library then leaves the body to us
            content=body,
            options={"headers": {"Content-Type": "application/json", "Accept": "text/event-stream"}},
            stream=True,
            stream_cls=None,
        )

    async def _explain(self, error: Exception) -> ModelError:
        """What went wrong with a request, and which address would have been right where this one is not."""
        found = as_model_error(error)
        if self.base_url and getattr(error, "status_code", None) in (404, 405) and "model" not in str(found).lower():
            right = await self._find_right_url()
            remedy = f"write base_url: {right}" if right else "see that base_url is right"
            found = ModelError(f"{self.base_url} is not where a model answers ({found}); {remedy}", kind="missing")
        return self._clean(found)

    async def _find_right_url(self) -> str:
        """The first address near the configured one that lists models; empty where there is none."""
        for url in list_other_urls(self.base_url, self.models_path):
            with suppress(Exception), anyio.fail_after(PROBE_SECONDS):
                response = await self._client.get(f"{url}{self.models_path}", cast_to=self._response)
                if "data" in msgspec.json.decode(await response.aread(), type=dict):
                    return url
        return ""

    def _clean(self, error: ModelError) -> ModelError:
        """The error without the keys of this model: some endpoints say what they were sent."""
        text = str(error)
        for secret in (self.api_key, *self.headers.values()):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, REPLACEMENT)
        return ModelError(text, kind=error.kind, retry_after=error.retry_after)

    def _connect(self, sdk: Any, http: Any) -> Any:
        self._response = http.Response
        return getattr(sdk, self.client_name)(
            api_key=self.api_key or "none",
            base_url=self.base_url or self.default_url,
            default_headers=dict(self.headers),
            timeout=http.Timeout(self.stall, connect=self.connect),
            max_retries=0,
        )


def _refuses_pictures(error: Exception) -> bool:
    status = getattr(error, "status_code", None)
    return status == 413 or (isinstance(status, int) and NO_PICTURES.search(_text_of(error)) is not None)


def _describe_missing_end(answer: "StreamedAnswer") -> ModelError:
    if answer.has_begun:
        return ModelError("the model's answer was cut off before its end", kind="network")
    return ModelError("the model's endpoint sent what is no answer: there is nothing in it", kind="response")


async def _close_response(response: Any, events: AsyncIterator[bytes] | None) -> None:
    """Close the response; one that is read to its very end leaves its connection to the next call."""
    with anyio.CancelScope(shield=True):
        if events is not None:
            with anyio.move_on_after(DRAIN_SECONDS), suppress(Exception):
                async for _ in events:
                    pass
        await response.aclose()


def _read_events(response: Any) -> AsyncIterator[bytes]:
    """The data of the response's events. A server that does not stream sends one: the whole answer."""
    is_stream = "event-stream" in response.headers.get("content-type", "event-stream")
    pieces = limit_stream(response.aiter_bytes())
    return read_sse(pieces) if is_stream else read_whole(pieces)


async def limit_stream(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > LONGEST_STREAM:
            raise ValueError(f"it has {LONGEST_STREAM // 1_000_000} MB, and no end")
        yield piece


async def read_whole(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """All as one piece. Raises ValueError when it is too long."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        _check_length(len(body))
    yield bytes(body)


async def read_sse(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of each of the server-sent events in these pieces. Raises ValueError when one has no end."""
    rest, event, length = bytearray(), list[bytes](), 0
    async for piece in pieces:
        *ends, begin = piece.split(b"\n")
        for end in ends:
            line = bytes(rest + end).removesuffix(b"\r")
            rest.clear()
            if line.startswith(b"data:"):
                event.append(line[5:].removeprefix(b" "))
                length += len(line)
                _check_length(length)
            elif not line and event:
                yield b"\n".join(event)
                event, length = [], 0
        rest += begin
        _check_length(len(rest))
    if rest.startswith(b"data:"):
        event.append(bytes(rest[5:].strip()))
    if last := b"\n".join(event) or bytes(rest):
        yield last  # what came without the end of its event


def _check_length(length: int) -> None:
    if length > LONGEST_EVENT:
        raise ValueError("a line of the stream has no end")


@dataclass(slots=True)
class PartialToolCall:
    """A tool call that is still streaming in; `pieces` are those of its arguments so far."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def complete(self) -> ToolCall:
        """The call, now that all of it is there. Arguments that are no JSON object are kept as they came."""
        args: Any = {}
        text = "".join(self.pieces)
        if text.strip():
            try:
                args = _decode(text.encode())
            except ValueError:
                args = None
        return ToolCall(self.id, self.name, args if isinstance(args, dict) else {RAW_ARGS: text})


@dataclass(slots=True)
class StreamedAnswer(ABC):
    """An answer that is being put together from the events of a stream. `stop` is the provider's own word."""

    price: TokenPrice = field(default_factory=TokenPrice)
    usage: Usage | None = None
    stop: str = ""
    is_over: bool = False
    has_begun: bool = False  # something of an answer has come
    _calls: dict[int, PartialToolCall] = field(default_factory=dict)

    @abstractmethod
    def add(self, data: bytes) -> str:
        """Take in the data of one event. Returns the text in it; raises ModelError when it is none, or an error."""

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, complete, in the order in which the model began them."""
        return tuple(call.complete() for call in self._calls.values())


def decode_event(decoder: JsonDecoder[Decoded], data: bytes) -> Decoded:
    """One event of a stream. Raises ModelError when it has another shape."""
    try:
        return decoder.decode(data)
    except ValueError as error:
        raise ModelError(f"the model's endpoint sent what is no answer: {error}", kind="response") from None


def as_model_error(error: Exception) -> ModelError:
    """The error of a provider's library as one of ours; the libraries' own classes are known by name and status."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, ConfigError):  # the library is not installed
        return ModelError(str(error), kind="missing")
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return ModelError(_text_of(error), kind=_kind(status, error), retry_after=_retry_after(error))
    name = f"{type(error).__name__} {type(error.__cause__).__name__}"
    if "Timeout" in name:
        return ModelError("the model's endpoint took too long to answer", kind="timeout")
    if re.search(r"Connect|Protocol|Network|ReadError|WriteError|Closed", name):
        cause = error.__cause__ or error
        return ModelError(f"the model's endpoint could not be reached: {cause}"[:LONGEST_ERROR], kind="network")
    if isinstance(error, ValueError):
        return ModelError(f"the model's endpoint sent what is no answer: {error}"[:LONGEST_ERROR], kind="response")
    return ModelError(f"{type(error).__name__}: {error}"[:LONGEST_ERROR])


def _kind(status: int, error: Exception) -> str:
    words = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {error}".lower()
    if NO_CREDIT.search(words) and status in (402, 403, 429):
        return "quota"
    if status in (400, 413, 422):
        if TOO_LONG.search(words):
            return "context"
        if FILTERED.search(words):
            return "filter"
    return BY_STATUS.get(status, "overload" if status >= 500 else "request")


def _text_of(error: Exception) -> str:
    """The endpoint's own words, cut: some send a whole page of HTML."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    words = body.get("message") if isinstance(body, dict) else None
    return f"HTTP {getattr(error, 'status_code', '?')}: {words or error}"[:LONGEST_ERROR]


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
