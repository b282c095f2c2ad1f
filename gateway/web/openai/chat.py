"""`/v1/chat/completions`: the request, and the answer in its format."""

from typing import Annotated, Any, ClassVar

import msgspec

from gateway.messages.transcript import Usage
from gateway.records.records import ProgramCall
from gateway.web.openai.calls import CallAnswer
from gateway.web.openai.payload import (
    CallPrompt,
    PayloadFormat,
    PayloadMessage,
    StreamOptions,
    check_format,
    check_tool_choice,
    read_prompt,
    refuse_fields,
)

REFUSED = ("logprobs", "top_logprobs", "audio", "stop", "web_search_options")
WITHHELD = "content_filter"


class ChatRequest(msgspec.Struct):
    """The body fields that count; others are ignored, except those in `REFUSED`."""

    model: str
    messages: Annotated[list[PayloadMessage], msgspec.Meta(min_length=1)]
    user: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    response_format: PayloadFormat | None = None
    modalities: list[str] | None = None
    tool_choice: Any = None
    function_call: Any = None

    previous: ClassVar[str] = ""  # no call continues another one
    is_stored: ClassVar[bool] = False

    def check(self, given: dict[str, Any]) -> None:
        """Raise CallRefusal for an unsupported request."""
        refuse_fields(given, (*REFUSED, *(["n"] if self.n not in (None, 1) else [])))
        refuse_fields(given, ["modalities"] if self.modalities not in (None, ["text"]) else [])
        check_format(self.response_format, "response_format")
        check_tool_choice(self.tool_choice)
        check_tool_choice(self.function_call, "function_call")

    def read_prompt(self) -> CallPrompt:
        """Read the prompt; raises CallRefusal."""
        return read_prompt(self.messages, "messages")

    def make_words(self, call: ProgramCall) -> "ChatWords":
        return ChatWords(call, has_usage=bool(self.stream_options and self.stream_options.include_usage))


class ChatWords:
    """The answer to one call."""

    def __init__(self, call: ProgramCall, *, has_usage: bool) -> None:
        self._call = call
        self._has_usage = has_usage

    def answer(self, answer: CallAnswer) -> dict[str, Any]:
        """Return the whole answer."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason_of(answer)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": count_usage(answer.usage)}

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def add(self, piece: str) -> bytes:
        return self._chunk({"content": piece})

    def end(self, answer: CallAnswer) -> bytes:
        head, usage = self._head("chat.completion.chunk"), count_usage(answer.usage)
        counted = encode_event({**head, "choices": [], "usage": usage}) if self._has_usage else b""
        return self._chunk({}, reason_of(answer)) + counted + b"data: [DONE]\n\n"

    def fail(self, error: dict[str, Any]) -> bytes:
        return encode_event({"error": error})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._has_usage else {}
        return encode_event({**self._head("chat.completion.chunk"), "choices": [choice], **usage})

    def _head(self, kind: str) -> dict[str, Any]:
        call = self._call
        return {"id": f"chatcmpl-{call.id}", "object": kind, "created": int(call.at), "model": call.agent}


def reason_of(answer: CallAnswer) -> str:
    return WITHHELD if answer.is_withheld or answer.status == "denied" else "stop"


def count_usage(usage: Usage) -> dict[str, int]:
    """Count the tokens of the whole turn, with all model calls."""
    given, made = usage.input_tokens, usage.output_tokens
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def encode_event(data: dict[str, Any], name: str = "") -> bytes:
    """Encode an event of a stream as a server-sent event."""
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"
