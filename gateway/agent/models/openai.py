"""Models behind any endpoint that speaks OpenAI's chat completions, through the official library.

The library gives keys, addresses, headers, connections and typed errors. The request is encoded and the stream is read
by us: its typed objects cost more time than all the rest of a turn. It does not retry: that is done in one place, which
is `resilient`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from gateway.agent.libraries import load_library
from gateway.agent.model import Chunk, ModelRequest
from gateway.agent.models.openai_format import CompletionAccumulator, TokenPrice, build_request_body, parse_chunk
from gateway.agent.models.provider import as_model_error
from gateway.agent.models.sse import SseDecoder
from gateway.errors import ModelError

DONE_MARKER = b"[DONE]"
DRAIN_SECONDS = 0.5  # seconds for what may still come after the last word
PATH = "/chat/completions"


@dataclass(slots=True)
class OpenAIModel:
    """One model. `stall` is how long nothing may come; `extra` stands in every request's body."""

    name: str
    api_key: str = field(default="", repr=False)
    base_url: str = ""
    stall: float = 180.0
    connect: float = 15.0
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    price: TokenPrice = field(default_factory=TokenPrice)
    _client: Any = field(default=None, init=False, repr=False)
    _response: Any = field(default=None, init=False, repr=False)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The answer, as it comes. Whatever goes wrong is a ModelError."""
        body = build_request_body(request, self.name, self.extra)
        answer = CompletionAccumulator(self.price)
        try:
            response = await self._post(body)
        except Exception as error:
            raise as_model_error(error) from error
        events, is_done = _read_events(response), False
        try:
            async for data in events:
                if is_done := data == DONE_MARKER:
                    break
                if text := answer.add(parse_chunk(data)):
                    yield Chunk(text)
        except ModelError:
            raise
        except Exception as error:
            raise as_model_error(error) from error
        finally:
            await _close_response(response, events if is_done else None)
        if not answer.stop:
            raise ModelError("the model's answer was cut off before its end", kind="network")
        if answer.stop == "content_filter":
            raise ModelError("the model's provider withheld the answer", kind="filter")
        yield Chunk(tool_calls=answer.calls(), usage=answer.usage, stop=answer.stop)

    async def aclose(self) -> None:
        """Close the connections; the model can be used again afterwards."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, body: bytes) -> Any:
        if self._client is None:
            # Half a second for the first model of a process: not on the loop, where others wait.
            modules = await anyio.to_thread.run_sync(load_library, "openai")
            self._client = self._client or self._connected(*modules)
        return await self._client.post(
            PATH,
            cast_to=self._response,  # the bare response: the library then leaves the body to us
            content=body,
            options={"headers": {"Content-Type": "application/json", "Accept": "text/event-stream"}},
            stream=True,
            stream_cls=None,
        )

    def _connected(self, sdk: Any, http: Any) -> Any:
        self._response = http.Response
        return sdk.AsyncOpenAI(
            api_key=self.api_key or "none",
            base_url=self.base_url or "https://api.openai.com/v1",
            default_headers=dict(self.headers),
            timeout=http.Timeout(self.stall, connect=self.connect),
            max_retries=0,
        )


async def _close_response(response: Any, events: AsyncIterator[bytes] | None) -> None:
    """Close the response; one that is read to its very end leaves its connection to the next call."""
    with anyio.CancelScope(shield=True):
        if events is not None:
            with anyio.move_on_after(DRAIN_SECONDS), suppress(Exception):
                async for _ in events:
                    pass
        await response.aclose()


async def _read_events(response: Any) -> AsyncIterator[bytes]:
    """The data of the response's events. A server that does not stream sends one: the whole answer."""
    if "event-stream" not in response.headers.get("content-type", "event-stream"):
        yield await response.aread()
        return
    events = SseDecoder()
    async for piece in response.aiter_bytes():
        for data in events.feed(piece):
            yield data
    if rest := events.rest():
        yield rest
