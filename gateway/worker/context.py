"""The event that a hook gets, and the parts of it that count when the hook is done."""

import asyncio
import inspect
import sys
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, copy_context
from copy import deepcopy
from difflib import get_close_matches
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from gateway.events import OUTCOMES, Bags, Event, Pause, Question, outcome_to_dict
from gateway.worker.capabilities import HookCapabilities
from gateway.worker.link import encode
from gateway.worker.protocol import CallMeta

MAX_TURNS = 1_000  # the number of remembered turns
MAX_VAIN_WORDS, MAX_VAIN_WORD = 20, 100  # of an answer without effect, and the characters of each
# Types of values that cannot be changed in place.
IMMUTABLE_TYPES = (str, int, float, type(None))
# Keys that a Hermes handler adds to its context at a turn's start are there again at its end.
BEGIN, END = "agent:start", "agent:end"
EMPTY: Mapping[str, Any] = MappingProxyType({})


# The conversation of the running call, for Hermes's `get_session_env`.
session_variables: ContextVar[Mapping[str, str]] = ContextVar("HERMES_SESSION", default={})  # noqa: B039 - never written to


# Return the fields as another system has them; None if it has no such event.
ShowFields: TypeAlias = Callable[[str, Mapping[str, Any]], dict[str, Any] | None]


def keep_context_in_threads() -> None:
    """Give each thread the context variables of its starter, and each job of a pool those of its submitter.

    Python itself carries them only into tasks. With this, the acts of a hook in a thread count as caused by its event,
    and no chain is endless.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_in_context(thread: threading.Thread) -> None:
        # for subclasses that override it
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    def submit_in_context(
        pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> "Future[Any]":
        return submit(pool, copy_context().run, function, *args, **kwargs)

    # only in the process of a hook
    threading.Thread.start = start_in_context  # type: ignore[assignment, method-assign]
    # only in the process of a hook
    ThreadPoolExecutor.submit = submit_in_context  # type: ignore[assignment, method-assign]


class UnknownKey(KeyError):
    """A key that a handler wanted and that does not exist, with the one that was probably meant."""

    def __init__(self, what: str, key: Any, known: Iterable[str]) -> None:
        super().__init__(key)
        near = get_close_matches(str(key), [*known], 1)
        self._text = f"{what} has no {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")

    def __str__(self) -> str:
        return self._text


class HookOptions(dict[str, Any]):
    """The options of a hook, as HOOK.yaml and the configuration set them."""

    def __missing__(self, name: str) -> Any:
        raise UnknownKey("context.options", name, self)


class HandlerContext(Event):
    """An event with the hook's options. It remembers a question even if the hook swallowed the pause.

    A hook for another system sees that system's keys and no others: `kept_back` are the remaining fields, which can be
    read by name, or as attributes.
    """

    __slots__ = ("data_folder", "kept_back", "options", "question")

    def __init__(
        self, name: str, fields: Mapping[str, Any], bags: Bags, hook: str, kept_back: Mapping[str, Any] = EMPTY
    ) -> None:
        super().__init__(name, fields, None, bags, hook)
        self.kept_back = kept_back
        self.options: Mapping[str, Any] = {}
        self.data_folder = ""
        self.question: Question | None = None

    def __repr__(self) -> str:
        """Return the text of a plain dict for another system's hook, which may log it."""
        return Event.__repr__(self) if self.kept_back is EMPTY else dict.__repr__(self)

    def ask(self, prompt: str, name: str | None = None, answer: Any = None) -> Any:
        try:
            return super().ask(prompt, name, answer)
        except Pause as pause:
            self.question = pause.questions[0]
            raise

    @property
    def data(self) -> Path:
        """Return the folder for this hook's own files."""
        folder = Path(self.data_folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def __missing__(self, field: str) -> Any:
        if field in self.kept_back:
            return self.kept_back[field]
        raise UnknownKey(self.name, field, (*self, *self.kept_back))

    def get(self, field: str, default: Any = None) -> Any:
        return dict.get(self, field, self.kept_back.get(field, default))

    def __getattr__(self, name: str) -> Any:
        if name in HandlerContext.__slots__ or name not in self.kept_back:
            raise AttributeError(f"context has no attribute {name!r}{self._suggest_instead(name)}")
        return self.kept_back[name]

    def _suggest_instead(self, name: str) -> str:
        """Return what a handler probably meant: a field, an attribute, or a request to the gateway."""
        meant = {request: f"context.gateway.{request}" for request in dir(self.gateway) if request[0] != "_"}
        meant |= {field: f"context[{field!r}]" for field in (*self, *self.kept_back)}
        meant |= {own: f"context.{own}" for own in ("ask", "data", "gateway", "options", "session", "turn")}
        near = get_close_matches(name, meant, 1)
        return f"; did you mean {meant[near[0]]}?" if near else ""


NO_PARAMS = msgspec.Raw(b"{}")
_decode_raw_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class TurnMemory:
    """The hook's data for each turn: its own bag, and the keys that it added at the turn's start."""

    def __init__(self) -> None:
        self._own: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._added: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def own(self, turn: str) -> dict[str, Any]:
        return _remember(self._own, turn)

    def recall(self, turn: str) -> dict[str, Any]:
        """Return the keys that were added when this turn started."""
        return self._added.get(turn, {})

    def keep(self, turn: str, added: Mapping[str, Any]) -> None:
        _remember(self._added, turn).update(added)

    def export(self) -> dict[str, Any]:
        """Return the part that can move to another process."""
        return {"own": _encodable_part_of(self._own), "added": _encodable_part_of(self._added)}

    def restore(self, exported: Mapping[str, Mapping[str, Any]]) -> None:
        """Restore the previous process's data; newer values of this one take precedence."""
        for kept, mine in ((exported["own"], self._own), (exported["added"], self._added)):
            for turn, values in kept.items():
                mine[turn] = {**values, **mine.get(turn, {})}


def _remember(turns: OrderedDict[str, dict[str, Any]], turn: str) -> dict[str, Any]:
    """Return the data of this turn; without a turn an empty dict."""
    if not turn:
        return {}
    kept = turns.setdefault(turn, {})
    turns.move_to_end(turn)
    while len(turns) > MAX_TURNS:
        turns.popitem(last=False)
    return kept


class HandlerCall:
    """One call, from its message to its answer; `params` is the original text, if the call decides."""

    def __init__(
        self,
        event: str,
        fields: dict[str, Any],
        meta: CallMeta,
        hook: str,
        memory: TurnMemory,
        show: ShowFields | None = None,
        params: msgspec.Raw = NO_PARAMS,
    ) -> None:
        self.meta = meta
        self._params = params
        self._memory = memory
        self._fields = fields
        self._turn_before = deepcopy(meta.turn_bag) if meta.turn_bag else {}
        self._session_before = deepcopy(meta.session_bag) if meta.session_bag else {}
        self._bags = bags = Bags(meta.session_bag, meta.answers, meta.turn_bag, {hook: memory.own(meta.turn)})
        shown = show(event, self._fields) if show else None
        if shown is None:
            self.context = HandlerContext(event, self._fields, bags, hook)
        else:
            kept_back = {name: value for name, value in self._fields.items() if name not in shown}
            self._fields |= shown
            self.context = HandlerContext(event, shown, bags, hook, kept_back)
        if event == END:
            dict.update(self.context, memory.recall(meta.turn) | dict(self.context))

    def equip(self, options: Mapping[str, Any], gateway: HookCapabilities, data: str) -> None:
        self.context.options = options
        self.context.data_folder = data
        self.context.gateway = gateway

    async def run(self, function: Callable[[], Any], context: Context | None = None) -> dict[str, Any]:
        """Run the hook and return its answer.

        Raises the hook's exception, or TypeError with the name of a field that is not JSON.

        `context` holds the variables, if those of the task belong to another call.
        """
        try:
            result = function() if context is None else context.run(function)
            if result is not None and inspect.isawaitable(result):
                result = await (result if context is None else asyncio.create_task(_wait(result), context=context))
        except OUTCOMES as outcome:
            result = outcome
        except BaseException:  # a question, which the hook may have swallowed or turned into another error
            if self.context.question is None:
                raise
        if self.context.question is not None:
            return {"result": None, "ask": self.context.question}
        return self._answer(result)

    def _answer(self, result: Any) -> dict[str, Any]:
        context, meta = self.context, self.meta
        added = context.keys() - self._fields.keys() if meta.decides or context.name == BEGIN else set()
        if added and context.name == BEGIN:
            self._memory.keep(meta.turn, {name: context[name] for name in added})
        answer: dict[str, Any] = {"result": None}
        value = None if result is None else outcome_to_dict(result)
        if meta.decides:
            if isinstance(value, Mapping) and "decision" in value:
                value = _without_odd_values(value)
            if value is not None and value is not context:
                answer["result"] = encode_value("the result", value)
            self._add_changes(answer, added)
        else:
            self._add_vain_answer(answer, value)
        if self._turn_before or self._bags.turn:
            _add_delta(answer, "turn_bag", self._turn_before, self._bags.turn)
        if self._session_before or self._bags.session:
            _add_delta(answer, "session_bag", self._session_before, self._bags.session)
        return answer

    def _add_changes(self, answer: dict[str, Any], added: Set[str]) -> None:
        writable = self._fields.keys() if self.meta.writable is None else self._fields.keys() & self.meta.writable
        changed = {name: now for name in writable if (now := self._changed(name)) is not None}
        if self.meta.writable is None:
            changed |= {name: encode_value(f"the field {name!r}", self.context[name]) for name in added}
        refused = [name for name in self._fields.keys() - writable if not self._is_as_before(name)]
        # At the beginning of a turn, a handler of Hermes keeps keys for its end.
        if self.meta.writable and self.context.name != BEGIN:
            refused += [name for name in added if get_close_matches(name, self.meta.writable, 1)]
        if changed:
            answer["changed"] = changed
        if refused:
            answer["refused"] = refused

    def _add_vain_answer(self, answer: dict[str, Any], value: Any) -> None:
        """Add enough of an observer's answer, which has no effect, for a remark."""
        if value is not None and isinstance(value, Mapping) and value is not self.context:
            words = {"decision": str(value["decision"])} if "decision" in value else dict.fromkeys(value)
            answer["result"] = {str(word)[:MAX_VAIN_WORD]: said for word, said in [*words.items()][:MAX_VAIN_WORDS]}
        context = self.context
        seen = {**context.kept_back, **context} if context.kept_back else context
        if seen == self._fields:  # by identity first: nearly always
            return
        if refused := [name for name in self._fields if not self._is_as_before(name)]:
            answer["refused"] = refused

    def _changed(self, name: str) -> msgspec.Raw | None:
        """Return the field's new value if it changed; a list may have been changed in place."""
        value = self.context.get(name)
        if value is self._fields[name] and isinstance(value, IMMUTABLE_TYPES):
            return None
        now, before = encode_value(f"the field {name!r}", value), self._raw_fields[name]
        is_same = bytes(now) == bytes(before) or msgspec.json.decode(now) == msgspec.json.decode(before)
        return None if is_same else now

    @cached_property
    def _raw_fields(self) -> dict[str, msgspec.Raw]:
        return _decode_raw_fields(self._params)

    def _is_as_before(self, name: str) -> bool:
        value, before = self.context.get(name), self._fields[name]
        return value is before or (type(value) is type(before) and bool(value == before))


async def _wait(result: Awaitable[Any]) -> Any:
    return await result


def encode_value(what: str, value: Any) -> msgspec.Raw:
    """Encode a value as JSON. Raises TypeError with the name of the value."""
    try:
        return msgspec.Raw(encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise TypeError(f"{what} is not JSON: {error}") from None


def _without_odd_values(decision: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a decision without values that JSON cannot hold, so that the decision itself is not lost."""
    kept = {}
    for key, value in decision.items():
        try:
            encode({key: value})
        except (TypeError, ValueError, RecursionError, OverflowError) as error:
            if key != "decision":
                print(f"warning: {key!r} of the answer is left out: {error}", file=sys.stderr)  # noqa: T201 - its log
                continue
        kept[key] = value
    return kept


def _add_delta(answer: dict[str, Any], name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    put = {
        key: encode_value(f"{name}[{key!r}]", value) for key, value in after.items() if before.get(key, before) != value
    }
    gone = [key for key in before if key not in after]
    if put or gone:
        answer[name] = {"put": put, "gone": gone}


def _encodable_part_of(turns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, msgspec.Raw]]:
    kept: dict[str, dict[str, msgspec.Raw]] = {}
    for turn, values in turns.items():
        for key, value in values.items():
            try:
                kept.setdefault(turn, {})[key] = encode_value(key, value)
            except TypeError:
                continue  # a live object stays in its process
    return kept
