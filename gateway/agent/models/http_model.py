"""The common half of all models behind an HTTP endpoint, independent of the provider.

`gateway.agent.models.endpoint_client` has the connections, and is loaded at their first use: that takes 50 ms and 5 MB.
No library of a provider is needed. Retries are made in one place, `gateway.agent.models.fallback`.

Failures are a `ModelError`, by one taxonomy for all providers: auth, quota, rate, overload, context, network, timeout,
filter, missing, request, response; `other` for the rest.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import anyio
import msgspec

from gateway.agent.model import Chunk, ModelRequest, estimate_tokens
from gateway.agent.models.prices import UNKNOWN_PRICE, TokenPrice
from gateway.agent.models.refusal import LONGEST_REASON, RefusedRequest
from gateway.agent.pictures import load_pictures
from gateway.agent.tools import RAW_ARGS
from gateway.config.home import get_process_environment
from gateway.config.providers import list_other_urls
from gateway.config.settings import ModelSettings
from gateway.errors import ConfigError, ModelError
from gateway.late_imports import load_modules
from gateway.logs.redaction import REPLACEMENT
from gateway.messages.transcript import ToolCall, Usage
from gateway.threads import run_in_thread
from gateway.worker.json_decoder import JsonDecoder

if TYPE_CHECKING:
    from gateway.agent.models.endpoint_client import EndpointClient, EndpointResponse

log = logging.getLogger(__name__)

CLIENT = "gateway.agent.models.endpoint_client"
NO_PICTURES = re.compile(r"image|vision|multi-?modal|content.{0,40}must be a string", re.IGNORECASE)
LONGEST_EVENT = 8_000_000
LONGEST_STREAM = 100_000_000  # bytes: 128,000 tokens come in half of that
PROBE_SECONDS = 5.0
SHORTEST_SECRET = 6
DRAIN_SECONDS = 0.5  # for what may still come after the last word

Decoded = TypeVar("Decoded")

_decode = JsonDecoder[Any]().decode


class _ListedModel(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_ListedModel] | None = None


_decode_names = JsonDecoder[_ModelList](_ModelList).decode


@dataclass(slots=True)
class HttpModel(ABC):
    """One model behind an endpoint. `stall` is the longest silence; `extra` is added to every request's body.

    A provider's class encodes a request (of its options only those in `options`), and assembles an answer. `prices` are
    those of other models of the endpoint. Without `pictures` the model gets their paths. `environ` names the proxies,
    and the trusted certificates.
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
    environ: Mapping[str, str] = field(default_factory=get_process_environment, repr=False)
    _client: "EndpointClient | None" = field(default=None, init=False, repr=False)

    answer_type: ClassVar[type["StreamedAnswer"]]
    default_url: ClassVar[str]
    path: ClassVar[str]
    models_path: ClassVar[str]  # of the list of models
    options: ClassVar[Collection[str]]  # the names of those that the endpoint understands
    filter_stop: ClassVar[str]  # the provider's word for an answer that it withheld
    stop_names: ClassVar[Mapping[str, str]] = MappingProxyType({})  # where the provider's words differ from ours

    @abstractmethod
    def encode_request(self, request: ModelRequest, pictures: Mapping[str, str]) -> bytes:
        """Encode the body of the HTTP request, with these pictures: by their digest, in base64."""

    @abstractmethod
    def list_key_headers(self) -> Mapping[str, str]:
        """Return the headers that identify us; without a key, none."""

    def encode_body(self, request: ModelRequest, body: Mapping[str, Any]) -> bytes:
        """Encode the body with the fields that all providers share; the request's own options win over `extra`."""
        options = {name: value for name, value in request.options.items() if name in self.options}
        start = {"model": request.name or self.name, "stream": True}
        return msgspec.json.encode({**start, **body, **self.extra, **options})

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Stream the answer. Any failure is a ModelError."""
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

    async def warm(self) -> None:
        """Load all that the first request needs, and resolve the name.

        Nothing is connected: most servers would close it soon, and it would tell the provider of each start.
        """
        try:
            client = await self._open_client()
            await client.resolve()
        except Exception as error:  # noqa: BLE001 - libraries and the network; the first request reports it
            log.debug("%s stays cold: %s", self.name, error)
        else:
            log.debug("%s is warm", self.name)

    async def aclose(self) -> None:
        """Close the connections; the model can be used again afterwards."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, request: ModelRequest) -> "EndpointResponse":
        """Send the request. If the endpoint refuses the pictures, send it again with their paths instead.

        The endpoint is not remembered as one that cannot see: it may refuse one person's broken file alone.
        """
        shown = request.messages if self.pictures else ()
        pictures = await run_in_thread(load_pictures, shown)
        try:
            return await self._post(self.encode_request(request, pictures))
        except RefusedRequest as refusal:
            if not (pictures and _refuses_pictures(refusal)):
                raise
            log.info("%s takes no pictures, or not these (%s); it gets their paths instead", self.name, refusal)
        return await self._post(self.encode_request(request, {}))

    async def _post(self, body: bytes) -> "EndpointResponse":
        client = await self._open_client()
        return await client.post(self.path, body)

    async def _open_client(self) -> "EndpointClient":
        if self._client is None:
            # Some 80 ms for the first model of a process: not on the loop, where others wait.
            made = await run_in_thread(self._make_client)
            self._client = self._client or made
        return self._client

    def _make_client(self) -> "EndpointClient":
        (module,) = load_modules(CLIENT)
        headers = {**self.list_key_headers(), **self.headers}
        client: EndpointClient = module.EndpointClient(
            self.base_url or self.default_url, headers, self.stall, self.connect, self.environ
        )
        return client

    async def list_names(self) -> list[str]:
        """Return the models that the endpoint lists; an endpoint may have no list. Raises ModelError."""
        try:
            address = (self.base_url or self.default_url).rstrip("/")
            return await _fetch_names(await self._open_client(), f"{address}{self.models_path}")
        except RefusedRequest as refusal:
            if refusal.kind in ("auth", "overload"):
                raise self._clean(as_model_error(refusal)) from refusal
            if right := await self._find_right_url(refusal):
                raise self._explain_url(refusal, right) from refusal
            return []
        except Exception as error:
            raise self._clean(as_model_error(error)) from error

    async def _explain(self, error: Exception) -> ModelError:
        """Explain the failure of a request; if the address is wrong, find the right one."""
        if isinstance(error, RefusedRequest):
            is_of_url = self.base_url and error.status in (404, 405) and "model" not in str(error).lower()
            if is_of_url or error.target:
                return self._explain_url(error, await self._find_right_url(error))
        return self._clean(as_model_error(error))

    def _explain_url(self, refusal: RefusedRequest, right: str) -> ModelError:
        remedy = f"write base_url: {right}" if right else "see that base_url is right"
        what = f"{self.base_url or self.default_url} is not where a model answers ({refusal})"
        return self._clean(ModelError(what, kind="missing", remedy=remedy))

    async def _find_right_url(self, refusal: RefusedRequest) -> str:
        """Return the first address near the configured one that lists models, or wants a key to do so."""
        if refusal.target:
            return refusal.target.removesuffix(self.path).removesuffix(self.models_path)
        client = await self._open_client()
        for url in list_other_urls(self.base_url, self.models_path) if self.base_url else ():
            try:
                with anyio.fail_after(PROBE_SECONDS):
                    if await _fetch_names(client, f"{url}{self.models_path}"):
                        return url
            except RefusedRequest as refused:
                if refused.status in (401, 403):
                    return f"{url}, and a key that is right" if self.api_key else f"{url}, and a key"
            except (ModelError, TimeoutError, ValueError):
                continue
        return ""

    def _clean(self, error: ModelError) -> ModelError:
        """Remove the keys of this model from an error: some endpoints repeat what they received."""
        text = error.what
        login = urlsplit(self.base_url)
        for secret in (self.api_key, login.password or "", *self.headers.values()):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, REPLACEMENT)
        return ModelError(text, kind=error.kind, retry_after=error.retry_after, remedy=error.remedy)


async def _fetch_names(client: "EndpointClient", url: str) -> list[str]:
    """Return the models in the list at this address. Raises ModelError, RefusedRequest, or ValueError for no list."""
    response = await client.get(url)
    try:
        (body,) = [body async for body in read_whole(response.read_pieces())]
    finally:
        await _close_response(response, None)
    return sorted(one.id for one in _decode_names(body).data or ())


def _refuses_pictures(refusal: RefusedRequest) -> bool:
    return refusal.status == 413 or NO_PICTURES.search(str(refusal)) is not None


def _describe_missing_end(answer: "StreamedAnswer") -> ModelError:
    if answer.has_begun:
        return ModelError("the model's answer was cut off before its end", kind="network")
    return ModelError("the model's endpoint sent an empty answer", kind="response")


async def _close_response(response: "EndpointResponse", events: AsyncIterator[bytes] | None) -> None:
    """Close the response; one that is read to its very end leaves its connection to the next call."""
    with anyio.CancelScope(shield=True):
        if events is not None:
            with anyio.move_on_after(DRAIN_SECONDS), suppress(Exception):
                async for _ in events:
                    pass
        await response.aclose()


def _read_events(response: "EndpointResponse") -> AsyncIterator[bytes]:
    """Read the data of the response's events. A server that does not stream sends one: the whole answer."""
    is_stream = "event-stream" in response.headers.get("content-type", "event-stream")
    pieces = limit_stream(response.read_pieces())
    return read_sse(pieces) if is_stream else read_whole(pieces)


async def limit_stream(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > LONGEST_STREAM:
            raise ValueError(f"it has {LONGEST_STREAM // 1_000_000} MB, and no end")
        yield piece


async def read_whole(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read everything as one piece. Raises ValueError if it is too long."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        _check_length(len(body))
    yield bytes(body)


async def read_sse(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the data of each server-sent event in these pieces. Raises ValueError if an event has no end."""
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


class PartialToolCall(msgspec.Struct):
    """A tool call that is still streaming in; `pieces` are those of its arguments so far."""

    id: str = ""
    name: str = ""
    pieces: list[str] = msgspec.field(default_factory=list)

    def complete(self) -> ToolCall:
        """Return the complete call. Arguments that are not a JSON object are kept as they came."""
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
    """An answer that is assembled from the events of a stream. `stop` is the provider's own word."""

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
        """Return the complete tool calls, in the order in which the model began them."""
        return tuple(call.complete() for call in self._calls.values())


def decode_event(decoder: JsonDecoder[Decoded], data: bytes) -> Decoded:
    """Decode one event of a stream. Raises ModelError if it has another shape."""
    try:
        return decoder.decode(data)
    except ValueError as error:
        raise ModelError(f"the model's endpoint sent what is not an answer: {error}", kind="response") from None


def as_model_error(error: Exception) -> ModelError:
    """Convert any error of a request into one of ours."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, RefusedRequest):
        return ModelError(str(error), kind=error.kind, retry_after=error.retry_after)
    if isinstance(error, ConfigError):  # a proxy or certificates of the environment
        return ModelError(str(error), kind="missing")
    if isinstance(error, ValueError):
        return ModelError(f"the model's endpoint sent what is not an answer: {error}"[:LONGEST_REASON], kind="response")
    return ModelError(f"{type(error).__name__}: {error}"[:LONGEST_REASON])
