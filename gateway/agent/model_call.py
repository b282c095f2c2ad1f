"""One answer of the model: asked for, streamed through the interceptors, judged by them, asked for again if need be."""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import structs

from gateway.agent.model import CHARACTERS, Chunk, Model, ModelRequest, ToolSpec, estimate_tokens
from gateway.agent.operation import Operation, OperationResult
from gateway.agent.ports import UsagePort
from gateway.agent.turn_state import Fields, TurnEnding, TurnState
from gateway.errors import BudgetRefusal, ModelError
from gateway.events import Retry
from gateway.events.outcomes import find_refusal, find_reply
from gateway.messages.transcript import SUMMARY_KEY, Entry, ToolCall, Usage, as_call, as_message, call_from, entry_from

log = logging.getLogger(__name__)

WINDOW_SHARE = 0.8  # of the window; the rest is for the answer, and for how wrong the estimate is
KEPT_MESSAGES = 6
LEFT_OUT = "[left out: the conversation has become too long]"
SUMMARY_PROMPT = (
    "Sum up the conversation below for yourself, so that you can go on with it. Keep names, numbers, decisions, what "
    "was promised and what is still open. At most 300 words, nothing else."
)


@dataclass(slots=True)
class ModelCall(Operation[Chunk]):
    """One answer of the model: asked for, streamed, and asked for again when a hook wants another one."""

    request: ModelRequest
    response: Chunk = field(default_factory=Chunk)  # of the last try, as far as there is one
    before = "llm:before"
    after = "llm:after"
    node_type = "call_llm"

    def begin(self) -> None:
        self.state.request.partial = ""

    def before_fields(self) -> dict[str, Any]:
        request, reads = self.request, self.state.ports.reads
        fields: dict[str, Any] = {}
        if reads(self.before, "messages"):
            fields["messages"] = [as_message(entry) for entry in request.messages]
        if reads(self.before, "tools"):
            fields["tools"] = [msgspec.to_builtins(spec) for spec in request.tools]
        return fields | {
            "system": request.system,
            "model": request.name or self.state.agent.model.name,
            "hop": self.state.hop,
            "tokens": estimate_tokens(request),
            "result": None,
        }

    async def act(self, event: Fields | None) -> Chunk:
        state, request = self.state, self.request
        if event is not None:
            request = _request_from(request, event, state.agent.model.name)
        # A tool that the hooks took from the request cannot be called, even if the model names it all the same.
        state.request.offered = frozenset([spec.name for spec in request.tools])
        try:
            return await _stream(state, await fit_request(state, request))
        except BudgetRefusal as refusal:
            said = next((entry.content for entry in reversed(state.new_entries) if entry.role == "assistant"), "")
            state.ending.finish = TurnEnding(f"{said}\n\n{refusal}".strip(), stop="budget")
            return Chunk(stop="budget")

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        response = self._response_of(result)
        return {
            **self.to_fields(response),
            "stop": result.exit_reason or response.stop or ("error" if result.error else ""),
            "usage": msgspec.structs.asdict(response.usage or Usage()),
            "hop": self.state.hop,
        }

    def take(self, result: OperationResult) -> None:
        response = self._response_of(result)
        if result.after_event is not None:
            response = _apply_rewrite(response, result.after_event)
        if not self.state.end(result.outcome, self.before) and find_refusal(result.outcome) is not None:
            self.denied(response.text)
        self.state.end(result.after_outcome, self.after, fallback=response.text)
        self.response = response
        if result.error is not None:
            self.state.request.partial = response.text  # in the words that the hooks left

    async def prepare_retry(self, retry: Retry) -> None:
        self.state.ports.discard()
        if retry.message:
            added = await self.state.add(Entry("user", retry.message))
            self.request = structs.replace(self.request, messages=(*self.request.messages, added))

    def conclude(self, result: OperationResult) -> Chunk:
        if result.error is not None:
            raise result.error
        return self.response

    def to_fields(self, value: Chunk) -> dict[str, Any]:
        return {"content": value.text, "tool_calls": [as_call(call) for call in value.tool_calls]}

    def from_fields(self, left: Any) -> Chunk:
        """Convert the answer of a hook: a text, or a mapping with `content` and `tool_calls`."""
        if isinstance(left, Chunk):
            return left
        if isinstance(left, dict):
            calls = tuple(call_from(call) for call in left.get("tool_calls") or ())
            return Chunk(str(left.get("content") or ""), calls, stop="result")
        return Chunk("" if left is None else str(left), stop="result")

    def denied(self, text: str) -> Chunk:
        """End the turn: after a denied call it has no answer to go on with."""
        if self.state.ending.finish is None:
            self.state.ending.finish = TurnEnding(text, "denied", "denied")
        return Chunk(text, stop="denied")

    def _response_of(self, result: OperationResult) -> Chunk:
        """Return the model's answer, a hook's, the text of a denial, or the text that had come before it broke off."""
        if result.is_from_hook:
            return self.from_fields(result.value)
        if isinstance(result.value, Chunk):
            return result.value
        text = find_reply(result.outcome)
        stop = "" if find_refusal(result.outcome) is None else "denied"
        return Chunk(self.state.request.partial if text is None else text, stop=stop)


def _apply_rewrite(response: Chunk, after: Fields) -> Chunk:
    try:
        calls = tuple(call_from(call) for call in after.get("tool_calls") or ())
    except ValueError as error:
        log.warning("llm:after left tool calls that are none (%s); the model's own are kept", error)
        calls = response.tool_calls
    text = str(after.get("content") or "")
    stop = "result" if response.text and not text else response.stop  # what a hook took away is not the model's silence
    return structs.replace(response, text=text, tool_calls=calls, stop=stop)


async def call_model(
    model: Model, request: ModelRequest, usage: UsagePort, add: Callable[[Usage], None]
) -> AsyncGenerator[Chunk]:
    """Stream the pieces of an answer. Each call is charged, even if its answer is cut off or discarded.

    Raises:
        BudgetRefusal: the budget does not allow it.
    """
    name, tokens = request.name or model.name, estimate_tokens(request)
    if refusal := await usage.ask(name, tokens):
        raise BudgetRefusal(refusal)
    used, length, is_failed = None, 0, False
    try:
        async with aclosing(model.stream(request)) as chunks:  # type: ignore[type-var]  # an async generator
            async for chunk in chunks:
                length += len(chunk.text)
                used = chunk.usage or used
                yield chunk
    except ModelError:
        is_failed = True
        raise
    finally:
        if used is not None:
            used = structs.replace(used, calls=1, model=used.model or name)
        elif length or not is_failed:  # cut off, or without a report of its usage
            used = Usage(tokens, length // CHARACTERS, calls=1, model=name, estimated=1)
        add(usage.count(used or Usage(), name, tokens))


def _call_own_model(state: TurnState, request: ModelRequest) -> AsyncGenerator[Chunk]:
    return call_model(state.agent.model, request, state.ports.usage, state.add_usage)


async def _stream(state: TurnState, request: ModelRequest) -> Chunk:
    calls: list[ToolCall] = []
    before, stop, index = state.usage, "", 0
    async with aclosing(_call_own_model(state, request)) as chunks:
        async for chunk in chunks:
            if chunk.text:
                text = await _filter_chunk(state, chunk.text, index)
                state.request.partial += text
                if text and state.origin.streams:
                    state.ports.delta(text)
                index += 1
            if state.ending.finish is not None:  # a hook of `llm:chunk` ended the turn: the stream is closed
                break
            calls += chunk.tool_calls
            stop = chunk.stop or stop
    return Chunk(state.request.partial, tuple(calls), state.usage - before, stop)


async def _filter_chunk(state: TurnState, text: str, index: int) -> str:
    if not state.ports.wants("llm:chunk"):
        return text
    fields = {"chunk": text, "text": state.request.partial, "index": index, "hop": state.hop}
    event, outcome = await state.fire("llm:chunk", fields)
    if outcome is not None:
        state.end(outcome, "llm:chunk")
        return ""
    left = event.get("chunk")
    return "" if left is None else str(left)


def _request_from(request: ModelRequest, event: Fields, default: str) -> ModelRequest:
    """Build the request that the interceptors left. System messages among the messages join the system prompt."""
    try:
        left = event.get("messages", request.messages)
        entries = list(request.messages) if left is request.messages else [entry_from(one) for one in left or ()]
        tools = request.tools
        if "tools" in event:
            tools = tuple(msgspec.convert(spec, ToolSpec) for spec in event["tools"] or ())
    except ValueError as error:
        log.warning("llm:before left a request that is none (%s); the original is sent", error)
        return request
    system = [str(event.get("system") or ""), *(entry.content for entry in entries if entry.role == "system")]
    model = str(event.get("model") or "")
    return ModelRequest(
        messages=tuple(entry for entry in entries if entry.role != "system"),
        system="\n".join(part for part in system if part),
        tools=tools,
        name=request.name if model == default else model,
        options=request.options,
    )


def apply_summary(history: Sequence[Entry], session: dict[str, Any]) -> tuple[tuple[Entry, ...], int]:
    """Return the history as the model sees it, and the number of entries that the summary replaces."""
    known = session.get(SUMMARY_KEY)
    if not isinstance(known, dict) or not 0 < known.get("upto", 0) <= len(history):
        return tuple(history), 0
    return (_summary_entry_from(str(known["text"])), *history[known["upto"] :]), int(known["upto"])


async def fit_request(state: TurnState, request: ModelRequest) -> ModelRequest:
    """Shorten the request until it fits the model's window.

    The model itself summarizes the entries from before this turn, and the summary is kept with the session. If that is
    not enough, the tool results of this turn lose their text, the oldest first.
    """
    limit = int(state.agent.context_window * WINDOW_SHARE)
    if not limit or estimate_tokens(request) <= limit:
        return request
    count = _count_summarizable(state, request)
    if count:
        before = str((state.ports.session.get(SUMMARY_KEY) or {}).get("text", ""))
        text = await _sum_up(state, before, request.messages[:count])
        system = request.system.replace(_summary_entry_from(before).content, "").rstrip()
        system = "\n".join([part for part in (system, _summary_entry_from(text).content) if part])
        request = structs.replace(request, messages=request.messages[count:], system=system)
        _keep_summary(state, count, text)
    return _drop_tool_results(request, limit)


def _count_summarizable(state: TurnState, request: ModelRequest) -> int:
    """Count the messages at the beginning that are from before this turn, and can be summarized."""
    before = [entry for entry in state.view if entry.role != "system"]
    same = 0
    while same < min(len(before), len(request.messages)) and before[same] == request.messages[same]:
        same += 1
    count = max(same - KEPT_MESSAGES, 0)
    while count < same and request.messages[count].role == "tool":  # a result stays with its call
        count += 1
    return count


async def _sum_up(state: TurnState, before: str, messages: Sequence[Entry]) -> str:
    """Return the model's summary of these messages; if that fails, a note that they are left out."""
    lines = "\n".join(f"{entry.role}: {entry.content}" for entry in messages if entry.content)
    text = f"{before}\n{lines[-state.agent.context_window * 3 :]}".strip()
    parts: list[str] = []
    try:
        asked = ModelRequest((Entry("user", text),), SUMMARY_PROMPT, name=state.request.model_name)
        async with aclosing(_call_own_model(state, asked)) as chunks:
            parts += [chunk.text async for chunk in chunks]
    except ModelError as error:
        log.warning("a conversation could not be summed up (%s); its older part is left out", error)
        return f"{before}\n{LEFT_OUT}".strip()
    return "".join(parts).strip()


def _keep_summary(state: TurnState, count: int, text: str) -> None:
    """Replace the summarized entries with the summary, in this turn and in later ones."""
    place = seen = 0
    while seen < count:
        seen += state.view[place].role != "system"
        place += 1
    if state.summarized is not None:
        state.summarized += place - bool(state.summarized)  # the summary before it takes a place of the view
        times = int((state.ports.session.get(SUMMARY_KEY) or {}).get("times", 0)) + 1
        state.ports.session[SUMMARY_KEY] = {"upto": state.summarized, "text": text, "times": times}
        state.ports.emit("session:compress", old_session_id="", in_place=True, compression_count=times)
    state.view = (_summary_entry_from(text), *state.view[place:])


def _drop_tool_results(request: ModelRequest, limit: int) -> ModelRequest:
    messages = list(request.messages)
    for place, entry in enumerate(messages[:-1]):
        if estimate_tokens(structs.replace(request, messages=tuple(messages))) <= limit:
            break
        if entry.role == "tool" and len(entry.content) > len(LEFT_OUT):
            messages[place] = structs.replace(entry, content=LEFT_OUT, parts=())
    return structs.replace(request, messages=tuple(messages))


def _summary_entry_from(text: str) -> Entry:
    return Entry("system", f"Earlier in this conversation: {text}")
