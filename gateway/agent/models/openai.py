"""Models behind any endpoint that speaks OpenAI's chat completions."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gateway.agent.model import ModelRequest
from gateway.agent.models.http_model import (
    HttpModel,
    PartialToolCall,
    StreamedAnswer,
    decode_event,
)
from gateway.agent.models.prices import TokenPrice
from gateway.agent.pictures import describe_withheld_pictures
from gateway.config.providers import PROVIDERS
from gateway.errors import ModelError
from gateway.messages.transcript import Entry, Usage
from gateway.worker.json_decoder import JsonDecoder

DONE_MARKER = b"[DONE]"
OPTIONS = frozenset(
    {
        "temperature", "top_p", "max_tokens", "max_completion_tokens", "frequency_penalty", "presence_penalty", "seed",
        "stop", "reasoning_effort", "response_format", "tool_choice", "parallel_tool_calls",
    }
)  # fmt: skip


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _ToolCallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionDelta | None = None


class _ChoiceDelta(msgspec.Struct):
    content: Any = None
    tool_calls: list[_ToolCallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _ChoiceDelta | None = None
    message: _ChoiceDelta | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct):
    reasoning_tokens: int | None = None


class _CompletionUsage(msgspec.Struct):
    """The details are part of the two counts."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class CompletionChunk(msgspec.Struct):
    """One event of a stream, or a whole answer where the server does not stream."""

    choices: list[_Choice] | None = None
    usage: _CompletionUsage | None = None
    error: Any = None


_decoder = JsonDecoder[CompletionChunk](CompletionChunk)


class CompletionAccumulator(StreamedAnswer):
    """An answer that is being put together from its pieces."""

    __slots__ = ()

    def add(self, data: bytes) -> str:
        """Take in the data of one event. Returns the text in it; raises ModelError when it is none, or an error."""
        if data == DONE_MARKER:
            self.is_over = True
            return ""
        piece = decode_event(_decoder, data)
        if piece.error:
            raise _error_from(piece.error)
        if piece.usage:
            self.usage = _count(piece.usage, self.price)
        text = ""
        for choice in (piece.choices or ())[:1]:
            self.has_begun = True
            self.stop = choice.finish_reason or self.stop
            if delta := choice.delta or choice.message:
                text = delta.content if isinstance(delta.content, str) else ""
                self._grow(delta.tool_calls or ())
        return text

    def _grow(self, calls: Iterable[_ToolCallDelta]) -> None:
        for call in calls:
            place = call.index if call.index is not None else self._place(call)
            growing = self._calls.setdefault(place, PartialToolCall())
            growing.id = growing.id or call.id or ""
            if call.function:
                growing.name = growing.name or call.function.name or ""
                arguments = call.function.arguments
                growing.pieces.append(arguments if isinstance(arguments, str) else _encode_arguments(arguments))

    def _place(self, call: _ToolCallDelta) -> int:
        """Find the number of the call. Some servers do not number calls: a new id or name begins a new one."""
        last = max(self._calls, default=-1)
        begins = bool(call.id and (last < 0 or self._calls[last].id != call.id))
        return last + 1 if begins or last < 0 else last


def _count(used: _CompletionUsage, price: TokenPrice) -> Usage:
    cached = used.prompt_tokens_details and used.prompt_tokens_details.cached_tokens
    thought = used.completion_tokens_details and used.completion_tokens_details.reasoning_tokens
    read, written = used.prompt_tokens or 0, used.completion_tokens or 0
    return price.usage_of(read, written, cached=cached or 0, reasoning=thought or 0)


def _messages(entries: Iterable[Entry], pictures: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    """Convert the entries.

    A tool's result is only text here: its pictures follow all of its batch, in their own message.
    """
    given: list[dict[str, Any]] = []
    for entry in entries:
        if given and entry.role != "tool":
            yield {"role": "user", "content": given}
            given = []
        yield _message(entry, pictures)
        if entry.role == "tool" and (images := _list_images(entry, pictures)):
            given += [{"type": "text", "text": f"[what {entry.name} gave as pictures]"}, *images]
    if given:
        yield {"role": "user", "content": given}


def _message(entry: Entry, pictures: Mapping[str, str]) -> dict[str, Any]:
    text = describe_withheld_pictures(entry, pictures)
    if entry.role == "tool":
        return {"role": "tool", "tool_call_id": entry.call_id, "content": text}
    if entry.parts:
        images = _list_images(entry, pictures)
        return {"role": entry.role, "content": [{"type": "text", "text": text}, *images] if images else text}
    if not entry.tool_calls:
        return {"role": entry.role, "content": entry.content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _encode_arguments(call.args)}}
        for call in entry.tool_calls
    ]
    return {"role": entry.role, "content": entry.content or None, "tool_calls": calls}


def _list_images(entry: Entry, pictures: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{data}"}}
        for part in entry.parts
        if (data := pictures.get(part.digest))
    ]


def _encode_arguments(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def _error_from(error: Any) -> ModelError:
    text = what = str(error)
    if isinstance(error, dict):
        text, what = str(error.get("message") or error), f"{error.get('type')} {error.get('code')}"
    words = {"rate": "rate", "429": "rate", "overload": "overload", "context": "context", "quota": "quota"}
    kind = next((kind for word, kind in words.items() if word in what.lower()), "overload")
    return ModelError(f"the model's endpoint broke off: {text}", kind=kind)


class OpenAIModel(HttpModel):
    """One model, at OpenAI's own endpoint or any other that speaks its language."""

    answer_type = CompletionAccumulator
    default_url = PROVIDERS["openai"].base_url
    path = "/chat/completions"
    models_path = "/models"
    filter_stop = "content_filter"
    options = OPTIONS

    def list_key_headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}

    def encode_request(self, request: ModelRequest, pictures: Mapping[str, str]) -> bytes:
        messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
        messages += _messages(request.messages, pictures)
        body: dict[str, Any] = {"messages": messages, "stream_options": {"include_usage": True}}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": spec.name, "description": spec.description, "parameters": spec.schema},
                }
                for spec in request.tools
            ]
        return self.encode_body(request, body)


MODEL = OpenAIModel
