"""Models of Anthropic in their own language, through the official library; an extra, since it is large.

As with OpenAI's: the library gives keys, headers, connections and typed errors, and does not retry; the request is
encoded and the stream is read by us.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from gateway.agent.libraries import load_library
from gateway.agent.model import Chunk, ModelRequest
from gateway.agent.models.anthropic_format import STOP_REASONS, MessageAccumulator, build_request_body, parse_event
from gateway.agent.models.openai_format import TokenPrice
from gateway.agent.models.provider import as_model_error
from gateway.agent.models.sse import SseDecoder
from gateway.errors import ModelError

PATH = "/v1/messages"
HEADERS = {"Content-Type": "application/json", "Accept": "text/event-stream"}


@dataclass(slots=True)
class AnthropicModel:
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
        body, answer, events = (
            build_request_body(request, self.name, self.extra),
            MessageAccumulator(self.price),
            SseDecoder(),
        )
        try:
            response = await self._post(body)
        except Exception as error:
            raise as_model_error(error) from error
        try:
            async for piece in response.aiter_bytes():
                for data in events.feed(piece):
                    if text := answer.add(parse_event(data)):
                        yield Chunk(text)
        except ModelError:
            raise
        except Exception as error:  # of the library: what breaks after the last word has broken nothing
            if not answer.is_over:
                raise as_model_error(error) from error
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        if not answer.stop:
            raise ModelError("the model's answer was cut off before its end", kind="network")
        if answer.stop == "refusal":
            raise ModelError("the model refused to answer", kind="filter")
        yield Chunk(tool_calls=answer.calls(), usage=answer.usage, stop=STOP_REASONS.get(answer.stop, answer.stop))

    async def aclose(self) -> None:
        """Close the connections; the model can be used again afterwards."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _post(self, body: bytes) -> Any:
        if self._client is None:
            # A second for the first model of a process: not on the loop, where others wait.
            modules = await anyio.to_thread.run_sync(load_library, "anthropic")
            self._client = self._client or self._connected(*modules)
        return await self._client.post(
            PATH,
            cast_to=self._response,  # the bare response: the library then leaves the body to us
            content=body,
            options={"headers": HEADERS},
            stream=True,
            stream_cls=None,
        )

    def _connected(self, sdk: Any, http: Any) -> Any:
        self._response = http.Response
        return sdk.AsyncAnthropic(
            api_key=self.api_key or "none",
            base_url=self.base_url or "https://api.anthropic.com",
            default_headers=dict(self.headers),
            timeout=http.Timeout(self.stall, connect=self.connect),
            max_retries=0,
        )
