"""The search for the hooks that put file lines into an answer: each hook must be allowed to send its file.

A line counts if no field of the event named the line's file before the hook was called.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from gateway.events import Event
from gateway.events.outcomes import find_reply
from gateway.files.lines import MARK, split_file_lines
from gateway.hooks.hook import Hook
from gateway.hooks.recorder import PIECE
from gateway.hooks.subscriptions import EventPlan

ANY_FILE = ""  # attributed to each hook that changed a piece: a line may span several pieces
PROMPT = frozenset({"messages", "message_full", "system", "tools", "context"})  # fields for the model


class LineWatcher:
    """A comparison of the file lines of an event between its interceptors.

    `brought` maps each file to the hooks that brought it; `plan` is the event's plan.
    """

    def __init__(self, plan: EventPlan, name: str, fields: Mapping[str, Any], brought: dict[str, set[str]]) -> None:
        self.plan = plan.with_calls(self._watch)
        self._is_piece = name == PIECE
        self._brought = brought
        self._hook = ""
        self._chunk = fields.get("chunk")
        self._seen = set(find_files(fields))

    def look(self, event: Event) -> None:
        if self._is_piece and event.get("chunk") != self._chunk:
            self._chunk = event.get("chunk")
            self._note(ANY_FILE)
        now = {*find_files(event), *find_files({"said": find_reply(event.outcome)})}
        for file in now - self._seen:
            self._note(file)
        self._seen = now

    def _note(self, file: str) -> None:
        if self._hook:
            self._brought.setdefault(file, set()).add(self._hook)

    def _watch(self, hook: Hook) -> Callable[[Event], Awaitable[Any]]:
        async def watched(event: Event) -> Any:
            self.look(event)
            self._hook = "" if hook.owner is hook else str(hook)  # "" is code of the gateway
            answer = hook.call(event)
            return await answer if hasattr(answer, "__await__") else answer

        return watched


def find_files(value: Any) -> Iterator[str]:
    """Yield the files that lines in these fields name."""
    if isinstance(value, str):
        yield from split_file_lines(value)[1] if MARK in value else ()
    elif isinstance(value, Mapping):
        for field, inner in value.items():
            if field not in PROMPT:
                yield from find_files(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from find_files(inner)
