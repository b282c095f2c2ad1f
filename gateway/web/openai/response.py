"""`/v1/responses`: the request, and the answer in its format."""

from typing import Any

import msgspec

from gateway.messages.transcript import Usage
from gateway.records.records import ProgramCall
from gateway.web.openai.calls import CallAnswer
from gateway.web.openai.chat import WITHHELD, encode_event, reason_of
from gateway.web.openai.error import refuse_field
from gateway.web.openai.payload import (
    CallPrompt,
    PayloadFormat,
    PayloadMessage,
    PayloadPart,
    check_format,
    check_tool_choice,
    read_prompt,
    refuse_fields,
)

PREFIX = "resp_"
REFUSED = ("background", "conversation", "prompt", "top_logprobs")
UNREAD = ("reasoning", "function_call")  # parts of another model's answer


class ResponseItem(msgspec.Struct):
    """One item of the history or the input."""

    type: str = "message"
    role: str | None = None
    content: str | list[PayloadPart] | None = None
    output: str | list[PayloadPart] | None = None


class ResponseText(msgspec.Struct):
    """The options of the answer's text."""

    format: PayloadFormat | None = None


class ResponseRequest(msgspec.Struct):
    """The body fields that count; others are ignored, except those in `REFUSED`."""

    model: str
    input: str | list[ResponseItem]
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    user: str | None = None
    stream: bool | None = None
    text: ResponseText | None = None
    tool_choice: Any = None

    @property
    def previous(self) -> str:
        """The id of the call that this one continues."""
        return (self.previous_response_id or "").removeprefix(PREFIX)

    @property
    def is_stored(self) -> bool:
        return self.store is not False

    def check(self, payload: dict[str, Any]) -> None:
        """Raise CallRefusal for an unsupported request."""
        refuse_fields(payload, REFUSED)
        check_format(self.text.format if self.text else None, "text.format")
        check_tool_choice(self.tool_choice)

    def read_prompt(self) -> CallPrompt:
        """Read the prompt; raises CallRefusal."""
        items = [ResponseItem(role="user", content=self.input)] if isinstance(self.input, str) else self.input
        prompt = read_prompt([as_message(item, at) for at, item in enumerate(items)], "input")
        if not self.instructions:
            return prompt
        told = read_prompt([PayloadMessage("system", self.instructions), PayloadMessage("user", "-")], "instructions")
        return prompt._replace(history=(*told.history, *prompt.history))

    def make_words(self, call: ProgramCall) -> "ResponseWords":
        return ResponseWords(call)


class ResponseWords(msgspec.Struct, eq=False):
    """The answer to one call."""

    _call: ProgramCall
    _told: int = 0  # events
    _text: str = ""  # shown so far

    def answer(self, answer: CallAnswer | None) -> dict[str, Any]:
        """Return the whole answer; None: it does not exist yet."""
        if answer is None:
            return self._response("in_progress")
        output = [self._item(answer.text, "completed")] if answer.text else []
        is_withheld = reason_of(answer) == WITHHELD
        status = "incomplete" if is_withheld else "completed"
        why = {"incomplete_details": {"reason": WITHHELD}} if is_withheld else {}
        return self._response(status) | {"output": output, "usage": count_usage(answer.usage), **why}

    def begin(self) -> bytes:
        response = self._response("in_progress")
        return (
            self._event("response.created", response=response)
            + self._event("response.in_progress", response=response)
            + self._event("response.output_item.added", output_index=0, item=self._item(None, "in_progress"))
            + self._event("response.content_part.added", **self._place(), part=text_part_of(""))
        )

    def add(self, piece: str) -> bytes:
        self._text += piece
        return self._event("response.output_text.delta", **self._place(), delta=piece, logprobs=[])

    def end(self, answer: CallAnswer) -> bytes:
        whole = self.answer(answer)
        return (
            self._event("response.output_text.done", **self._place(), text=self._text, logprobs=[])
            + self._event("response.content_part.done", **self._place(), part=text_part_of(self._text))
            + self._event("response.output_item.done", output_index=0, item=self._item(self._text, "completed"))
            + self._event(f"response.{whole['status']}", response=whole)
        )

    def fail(self, error: dict[str, Any]) -> bytes:
        failed = {"code": error["code"] or "server_error", "message": error["message"]}
        return self._event("response.failed", response=self._response("failed") | {"error": failed})

    def _event(self, name: str, **fields: Any) -> bytes:
        told = encode_event({"type": name, "sequence_number": self._told, **fields}, name)
        self._told += 1
        return told

    def _place(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self._call.id}", "output_index": 0, "content_index": 0}

    def _item(self, text: str | None, status: str) -> dict[str, Any]:
        content = [] if text is None else [text_part_of(text)]
        return {
            "id": f"msg_{self._call.id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _response(self, status: str) -> dict[str, Any]:
        call = self._call
        return {
            "id": f"{PREFIX}{call.id}",
            "object": "response",
            "created_at": int(call.at),
            "status": status,
            "model": call.agent,
            "output": [],
            "error": None,
            "incomplete_details": None,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "text": {"format": {"type": "text"}},
            "store": call.stored,
            "user": call.user or None,
            "usage": None,
        }


def as_message(item: ResponseItem, at: int) -> PayloadMessage:
    """Convert an item to a message; raises CallRefusal for an unsupported kind."""
    match item.type:
        case "message":
            return PayloadMessage(item.role or "", item.content)
        case "function_call_output":
            return PayloadMessage("tool", item.output)
        case kind if kind in UNREAD:
            return PayloadMessage("assistant")
    raise refuse_field(f"input[{at}].type", f"{item.type[:40]!r} is not taken here", "unsupported_content")


def text_part_of(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def count_usage(usage: Usage) -> dict[str, Any]:
    """Count the tokens of the whole turn, with all model calls."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
