"""Models of Anthropic in their own language."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from gateway.agent.model import ModelRequest
from gateway.agent.models.http_model import (
    HttpModel,
    PartialToolCall,
    StreamedAnswer,
    decode_event,
)
from gateway.agent.pictures import describe_withheld_pictures
from gateway.config.providers import PROVIDERS
from gateway.errors import ModelError
from gateway.messages.transcript import Entry, Usage
from gateway.worker.json_decoder import JsonDecoder

API_VERSION = "2023-06-01"
LONGEST_ANSWER = 8192  # tokens, where the configuration says nothing: the endpoint wants a number
ERROR_KINDS = {
    "overloaded_error": "overload",
    "api_error": "overload",
    "rate_limit_error": "rate",
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "quota",
    "not_found_error": "missing",
    "timeout_error": "timeout",
}


class _MessageUsage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _MessageStart(msgspec.Struct):
    usage: _MessageUsage | None = None


class _Content(msgspec.Struct):
    """A block as it begins, or what is added to it."""

    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _StreamError(msgspec.Struct):
    type: str = ""
    message: str = ""


class MessageStreamEvent(msgspec.Struct):
    """One event of a stream."""

    type: str
    index: int = 0
    message: _MessageStart | None = None
    content_block: _Content | None = None
    delta: _Content | None = None
    usage: _MessageUsage | None = None
    error: _StreamError | None = None


_decoder = JsonDecoder[MessageStreamEvent](MessageStreamEvent)


class MessageAccumulator(StreamedAnswer):
    """An answer that is being put together from its events."""

    __slots__ = ()

    def add(self, data: bytes) -> str:
        """Take in the data of one event. Returns the text in it; raises ModelError when the answer broke off."""
        event = decode_event(_decoder, data)
        if event.error is not None:
            kind = ERROR_KINDS.get(event.error.type, "request")
            raise ModelError(f"the model's endpoint broke off: {event.error.message or event.error.type}", kind=kind)
        self.has_begun = True
        match event.type:
            case "message_start" if event.message and event.message.usage:
                self._count(event.message.usage)
            case "content_block_start" if event.content_block:
                if event.content_block.type == "tool_use":
                    self._calls[event.index] = PartialToolCall(event.content_block.id, event.content_block.name)
                return event.content_block.text
            case "content_block_delta" if event.delta:
                if event.index in self._calls:
                    self._calls[event.index].pieces.append(event.delta.partial_json)
                return event.delta.text
            case "message_delta":
                self.stop = (event.delta and event.delta.stop_reason) or self.stop
                if event.usage:
                    self._count(event.usage)
            case "message_stop":
                self.is_over = True
        return ""

    def _count(self, usage: _MessageUsage) -> None:
        """Count the usage. Counts cover the whole answer so far; those of the cache have prices of their own."""
        known = self.usage or Usage()
        cached = max(known.cached_tokens, usage.cache_read_input_tokens or 0)
        cache_written = max(known.cache_written_tokens, usage.cache_creation_input_tokens or 0)
        plain = known.input_tokens - known.cached_tokens - known.cache_written_tokens
        self.usage = self.price.usage_of(
            max(plain, usage.input_tokens or 0) + cached + cache_written,
            max(known.output_tokens, usage.output_tokens or 0),
            cached=cached,
            cache_written=cache_written,
        )


def _messages(entries: Iterable[Entry], pictures: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Convert the entries. People and tools have one role here, so that adjacent entries of both become one message."""
    role, blocks = "", list[dict[str, Any]]()
    for entry in entries:
        next_role = "assistant" if entry.role == "assistant" else "user"
        if next_role != role and blocks:
            yield {"role": role, "content": blocks}
            blocks = []
        role = next_role
        blocks += _blocks(entry, pictures)
    if blocks:
        yield {"role": role, "content": blocks}


def _blocks(entry: Entry, pictures: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    text = describe_withheld_pictures(entry, pictures)
    blocks: list[dict[str, Any]] = [
        {"type": "image", "source": {"type": "base64", "media_type": part.mime, "data": data}}
        for part in entry.parts
        if (data := pictures.get(part.digest))
    ]
    if entry.role == "tool":
        content = [{"type": "text", "text": text}, *blocks] if blocks else text
        result = {"type": "tool_result", "tool_use_id": entry.call_id, "content": content}
        yield result | ({"is_error": True} if entry.error else {})
        return
    yield from blocks
    if text.strip():
        yield {"type": "text", "text": text}
    for call in entry.tool_calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.args}


class AnthropicModel(HttpModel):
    """One model, at Anthropic's own endpoint or one that speaks its language."""

    answer_type = MessageAccumulator
    default_url = PROVIDERS["anthropic"].base_url
    path = "/v1/messages"
    models_path = "/v1/models"
    filter_stop = "refusal"
    options = frozenset({"temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "tool_choice", "thinking"})
    stop_names = MappingProxyType(
        {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
    )

    def list_key_headers(self) -> Mapping[str, str]:
        return {"anthropic-version": API_VERSION} | ({"x-api-key": self.api_key} if self.api_key else {})

    def encode_request(self, request: ModelRequest, pictures: Mapping[str, str]) -> bytes:
        """Encode the request. The instructions may be kept by the endpoint's cache."""
        body: dict[str, Any] = {"max_tokens": LONGEST_ANSWER, "messages": list(_messages(request.messages, pictures))}
        if request.system:
            body["system"] = [{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}]
        if request.tools:
            body["tools"] = [
                {"name": spec.name, "description": spec.description, "input_schema": spec.schema}
                for spec in request.tools
            ]
        return self.encode_body(request, body)


MODEL = AnthropicModel
