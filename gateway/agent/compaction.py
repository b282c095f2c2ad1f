"""Long conversations: before the model's window is full, the older part becomes a summary, written by the model itself.

It happens between the interceptors of a call and the call, when the request is too long; the messages before this turn
are summed up, save the last few. The summary is kept in the conversation's bag and stands in their place from then on,
growing with each time. What is too long even so loses the text of its oldest tool results.
"""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from gateway.agent.model import ModelRequest
from gateway.agent.token_estimate import estimate_tokens
from gateway.agent.turn_state import TurnState
from gateway.errors import ModelError
from gateway.transcript import Entry

log = logging.getLogger(__name__)

SUMMARY_KEY = "summary"
WINDOW_SHARE = 0.8  # of the window; the rest is for the answer, and for how wrong the estimate is
KEPT_MESSAGES = 6
LEFT_OUT = "[left out: the conversation has become too long]"
SUMMARY_PROMPT = (
    "Sum up the conversation below for yourself, so that you can go on with it. Keep names, numbers, decisions, what "
    "was promised and what is still open. At most 300 words, nothing else."
)


def apply_summary(history: Sequence[Entry], session: dict[str, Any]) -> tuple[tuple[Entry, ...], int]:
    """The history as the model is shown it, and how many of its entries the summary before it stands for."""
    known = session.get(SUMMARY_KEY)
    if not isinstance(known, dict) or not 0 < known.get("upto", 0) <= len(history):
        return tuple(history), 0
    return (_summary_entry_from(str(known["text"])), *history[known["upto"] :]), int(known["upto"])


async def fit_request(run: TurnState, request: ModelRequest) -> ModelRequest:
    """The request, short enough for the model's window."""
    room = int(run.agent.context_window * WINDOW_SHARE)
    if not room or estimate_tokens(request) <= room:
        return request
    count = _count_summarizable(run, request)
    if count:
        before = str((run.ports.session.get(SUMMARY_KEY) or {}).get("text", ""))
        text = await _sum_up(run, before, request.messages[:count])
        system = request.system.replace(_summary_entry_from(before).content, "").rstrip()
        system = "\n".join([part for part in (system, _summary_entry_from(text).content) if part])
        request = replace(request, messages=request.messages[count:], system=system)
        _keep_summary(run, count, text)
    return _drop_tool_results(request, room)


def _count_summarizable(run: TurnState, request: ModelRequest) -> int:
    """So many messages at the beginning are from before this turn and can be summed up."""
    before = [entry for entry in run.view if entry.role != "system"]
    same = 0
    while same < min(len(before), len(request.messages)) and before[same] == request.messages[same]:
        same += 1
    count = max(same - KEPT_MESSAGES, 0)
    while count < same and request.messages[count].role == "tool":  # a result stays with its call
        count += 1
    return count


async def _sum_up(run: TurnState, before: str, messages: Sequence[Entry]) -> str:
    """What the model makes of them; that they are gone, when it fails."""
    lines = "\n".join(f"{entry.role}: {entry.content}" for entry in messages if entry.content)
    text = f"{before}\n{lines[-run.agent.context_window * 3 :]}".strip()
    parts: list[str] = []
    try:
        asked = ModelRequest((Entry("user", text),), SUMMARY_PROMPT, name=run.model_name)
        async with aclosing(run.agent.model.stream(asked)) as chunks:  # type: ignore[type-var]  # an async generator
            async for chunk in chunks:
                parts.append(chunk.text)
                run.usage += chunk.usage or type(run.usage)()
    except ModelError as error:
        log.warning("a conversation could not be summed up (%s); its older part is left out", error)
        return f"{before}\n{LEFT_OUT}".strip()
    return "".join(parts).strip()


def _keep_summary(run: TurnState, count: int, text: str) -> None:
    """From now on the summary stands in the place of what it sums up: in this turn, and in those to come."""
    place = seen = 0
    while seen < count:
        seen += run.view[place].role != "system"
        place += 1
    if run.summed is not None:
        had_note = 1 if run.summed else 0
        run.summed += place - had_note
        times = int((run.ports.session.get(SUMMARY_KEY) or {}).get("times", 0)) + 1
        run.ports.session[SUMMARY_KEY] = {"upto": run.summed, "text": text, "times": times}
        run.ports.emit("session:compress", old_session_id="", in_place=True, compression_count=times)
    run.view = (_summary_entry_from(text), *run.view[place:])


def _drop_tool_results(request: ModelRequest, room: int) -> ModelRequest:
    messages = list(request.messages)
    for place, entry in enumerate(messages[:-1]):
        if estimate_tokens(replace(request, messages=tuple(messages))) <= room:
            break
        if entry.role == "tool" and len(entry.content) > len(LEFT_OUT):
            messages[place] = replace(entry, content=LEFT_OUT)
    return replace(request, messages=tuple(messages))


def _summary_entry_from(text: str) -> Entry:
    return Entry("system", f"Earlier in this conversation: {text}")
