"""The middleware of plugins: the callbacks of `register_middleware`, called at the events around a tool's call.

A `tool_execution` is called in the tool's place and calls the tool itself, by `next_call`. Here the tool runs in the
gateway, between two events; so the middleware has a thread of its own, which waits in `next_call` for the second one.
If it answers without `next_call`, its answer is the result, and the tool does not run.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from copy import deepcopy
from typing import Any, TypeAlias

import msgspec

from gateway.events import Event, HookMark
from gateway.hermes.plugin.arguments import build_request_args, remember_answer, shown_result_of
from gateway.hermes.plugin.hook_table import TELEMETRY_SCHEMA, HermesHook
from gateway.hermes.plugin.results import apply_args, apply_request, apply_tool_result

BEFORE, AFTER = "tool:before", "tool:after"
MOST_WAITING = 200  # calls at a time; a stopped turn leaves its calls open
# In Hermes the first comes before all hooks, the second after them, around the tool itself.
TOOL_REQUEST = HermesHook(
    "tool_request", (BEFORE,), "changes the arguments", build_request_args, apply_request, guards=True, order=-50
)
TOOL_EXECUTION = HermesHook(
    "tool_execution", (BEFORE, AFTER), "is called in the tool's place", build_request_args, apply_request, guards=True
)
LAST, FIRST = 1000, -50
MIDDLEWARE: Mapping[str, HermesHook] = {row.name: row for row in (TOOL_REQUEST, TOOL_EXECUTION)}

Callback: TypeAlias = Callable[..., Any]
StartThread: TypeAlias = Callable[[Event, Callable[[], Any]], "Future[Any]"]


class _Call(msgspec.Struct, eq=False):
    """One call of a tool, with the middleware around it."""

    _callbacks: Sequence[Callback]
    _told: Mapping[str, Any]
    _report: Callable[..., object]
    args: Future[Any] = msgspec.field(default_factory=Future)  # for the tool
    result: Future[Any] = msgspec.field(default_factory=Future)  # of the tool
    answer: Future[Any] = msgspec.field(default_factory=Future)  # for the model

    def run(self) -> Any:
        return self._call_from(0, self._told["args"])

    def _call_from(self, place: int, args: Any) -> Any:
        """Call the middleware from this place on; if one fails after the tool has run, the tool's result counts."""
        if place == len(self._callbacks):
            self.args.set_result(args)
            return self.result.result()
        was_called, results = False, []

        def next_call(changed: Any = None) -> Any:
            nonlocal was_called
            if was_called:
                raise RuntimeError("next_call() was called more than once: a tool runs once")
            was_called = True
            results.append(self._call_from(place + 1, args if changed is None else changed))
            return results[0]

        try:
            return self._callbacks[place](**{**self._told, "args": args, "next_call": next_call})
        except Exception as error:  # whatever a plugin raises
            if not results:
                raise
            self._report([error])
            return results[0]


class OpenCalls(msgspec.Struct, eq=False):
    """The calls that a plugin's `tool_execution` surrounds, by turn and call."""

    _callbacks: Sequence[Callback]
    _start: StartThread
    _report: Callable[[Sequence[Exception]], object]
    _waiting: dict[tuple[Any, Any], _Call] = {}

    def marks(self, on_error: Any) -> dict[str, tuple[Callable[[Event], Any], HookMark]]:
        return {
            f"{TOOL_EXECUTION.name} {BEFORE}": (self.begin, HookMark((BEFORE,), LAST, on_error=on_error)),
            f"{TOOL_EXECUTION.name} {AFTER}": (self.end, HookMark((AFTER,), FIRST, on_error=on_error)),
        }

    async def begin(self, event: Event) -> None:
        """Start the middleware, and wait until it wants the tool, or has answered without it."""
        told = {**deepcopy(build_request_args(event) or {}), "telemetry_schema_version": TELEMETRY_SCHEMA}
        call = _Call(self._callbacks, told, self._report)
        before = deepcopy(told["args"])
        call.answer = self._start(event, call.run)
        try:
            either = (asyncio.wrap_future(call.args), asyncio.wrap_future(call.answer))
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            _leave(call)
            raise
        if call.args.done():
            self._keep(_key_of(event), call)
            if isinstance(args := call.args.result(), dict) and args != before:
                apply_args(event, args)
            return
        answer = call.answer.result()
        event["result"] = text = to_text(answer)
        remember_answer(event, text)

    async def end(self, event: Event) -> None:
        """Pass the tool's result to the middleware that waits for it."""
        call = self._waiting.pop(_key_of(event), None)
        if call is None:
            return
        if event.get("denied"):  # another hook or a person did not allow it
            _leave(call)
            return
        shown = shown_result_of(event).json
        call.result.set_result(shown)
        answer = await asyncio.wrap_future(call.answer)
        if answer != shown:
            text = to_text(answer)
            apply_tool_result(event, [text], set())
            remember_answer(event, text)

    def _keep(self, key: tuple[Any, Any], call: _Call) -> None:
        if (former := self._waiting.pop(key, None)) is not None:
            _leave(former)
        self._waiting[key] = call
        while len(self._waiting) > MOST_WAITING:
            _leave(self._waiting.pop(next(iter(self._waiting))))


def to_text(answer: Any) -> str:
    """Return an answer as the model reads it."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)


def _key_of(event: Event) -> tuple[Any, Any]:
    return event.get("turn_id"), event.get("call_id")


def _leave(call: _Call) -> None:
    """End the thread of the call with an error."""
    if not call.result.done():
        call.result.set_exception(RuntimeError("the call was ended before the tool had run"))
