"""What a handler gets as its event, and what of it counts when the handler is done."""

from collections import OrderedDict
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import msgspec

from gateway.events import OUTCOMES, Bags, Event, Pause, Question, outcome_to
from gateway.hooks.wires.process.capabilities import Gateway
from gateway.hooks.wires.process.link import encode

TURNS = 1_000  # how many turns are remembered
# A Hermes handler that adds keys to its context when a turn begins finds them when it ends.
BEGIN, END = "agent:start", "agent:end"


class Meta(msgspec.Struct):
    """What the daemon says of a call beside its fields; the names are those of the wire's `CallMeta`."""

    event: str = ""
    decides: bool = False
    writable: frozenset[str] | None = None
    target: str = ""
    turn: str = ""
    answers: dict[str, Any] | None = None
    turn_bag: dict[str, Any] = {}
    session_bag: dict[str, Any] = {}
    session: dict[str, str] = {}


class Context(Event):
    """An event with the hook's options, which remembers that it asked even where the pause was swallowed."""

    __slots__ = ("options", "question")

    def __init__(self, name: str, fields: Mapping[str, Any], bags: Bags, hook: str) -> None:
        super().__init__(name, fields, None, bags, hook)
        self.options: Mapping[str, Any] = {}
        self.question: Question | None = None

    def ask(self, prompt: str, name: str | None = None, answer: Any = None) -> Any:
        try:
            return super().ask(prompt, name, answer)
        except Pause as pause:
            self.question = pause.questions[0]
            raise


class Memory:
    """What this hook keeps for each turn: its own bag, and the keys that it added at the turn's begin."""

    def __init__(self) -> None:
        self._own: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._added: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def own(self, turn: str) -> dict[str, Any]:
        if not turn:
            return {}
        own = self._own.setdefault(turn, {})
        self._own.move_to_end(turn)
        while len(self._own) > TURNS:
            self._own.popitem(last=False)
        return own

    def recall(self, event: str, turn: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of the turn's begin, at its end; they never cover a field."""
        added = self._added.get(turn, {}) if event == END else {}
        return {key: value for key, value in added.items() if key not in fields}

    def keep(self, event: str, turn: str, added: Mapping[str, Any]) -> None:
        if event == BEGIN and turn and added:
            self._added.setdefault(turn, {}).update(added)
            while len(self._added) > TURNS:
                self._added.popitem(last=False)

    def told(self) -> dict[str, Any]:
        """What can be carried to another process."""
        return {"own": _encodable(self._own), "added": _encodable(self._added)}

    def adopt(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        """What the process before this one had kept; what this one has kept since stands."""
        for kept, mine in ((told["own"], self._own), (told["added"], self._added)):
            for turn, values in kept.items():
                mine[turn] = {**values, **mine.get(turn, {})}


class Call:
    """One call, from what came over the wire to the answer that goes back."""

    def __init__(self, event: str, raw: Mapping[str, msgspec.Raw], meta: Meta, hook: str, memory: Memory) -> None:
        self.meta = meta
        self._raw = raw
        self._memory = memory
        self._fields = {name: msgspec.json.decode(value) for name, value in raw.items()}
        self._before = deepcopy(meta.turn_bag), deepcopy(meta.session_bag)
        bags = Bags(meta.session_bag, meta.answers, meta.turn_bag, {hook: memory.own(meta.turn)})
        recalled = memory.recall(event, meta.turn, self._fields)
        self.context = Context(event, self._fields | recalled, bags, hook)

    def equip(self, options: Mapping[str, Any], gateway: Gateway) -> None:
        self.context.options = options
        self.context.gateway = gateway

    def asked(self) -> dict[str, Any] | None:
        question = self.context.question
        return None if question is None else {"result": None, "ask": question}

    def answer(self, result: Any) -> dict[str, Any]:
        """Raises TypeError, with the field's name, for what is no JSON."""
        context, meta = self.context, self.meta
        added = {key: value for key, value in context.items() if key not in self._fields}
        self._memory.keep(context.name, meta.turn, added)
        answer: dict[str, Any] = {"result": None}
        if meta.decides:
            value = outcome_to(result) if isinstance(result, OUTCOMES) else result
            answer["result"] = None if value is context else raw("the result", value)
            answer |= self._changes(added if meta.writable is None else {})
        for name, before, bag in zip(
            ("turn_bag", "session_bag"), self._before, (context.turn, context.session), strict=True
        ):
            delta = _delta(name, before, bag)
            if delta:
                answer[name] = delta
        return answer

    def _changes(self, added: Mapping[str, Any]) -> dict[str, Any]:
        changed = {name: raw(f"the field {name!r}", value) for name, value in added.items()}
        refused = []
        for name, before in self._fields.items():
            value = self.context.get(name)
            if self.meta.writable is None or name in self.meta.writable:
                now = raw(f"the field {name!r}", value)
                if not _says_the_same(now, self._raw[name]):
                    changed[name] = now
            elif value is not before and value != before:
                refused.append(name)
        return {name: value for name, value in (("changed", changed), ("refused", refused)) if value}


def raw(what: str, value: Any) -> msgspec.Raw:
    """A value as JSON. Raises TypeError that says what it is."""
    try:
        return msgspec.Raw(encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise TypeError(f"{what} is no JSON: {error}") from None


def _says_the_same(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    return bytes(one) == bytes(other) or msgspec.json.decode(one) == msgspec.json.decode(other)


def _delta(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    put = {key: raw(f"{name}[{key!r}]", value) for key, value in after.items() if before.get(key, before) != value}
    gone = [key for key in before if key not in after]
    return {"put": put, "gone": gone} if put or gone else {}


def _encodable(turns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, msgspec.Raw]]:
    kept: dict[str, dict[str, msgspec.Raw]] = {}
    for turn, values in turns.items():
        for key, value in values.items():
            try:
                kept.setdefault(turn, {})[key] = raw(key, value)
            except TypeError:
                continue  # a live object stays where it is
    return kept
