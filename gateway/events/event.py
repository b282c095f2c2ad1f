"""The event that a hook receives, and the outcomes that it may return.

An event is a named dict. A hook changes its fields, or answers one of three outcomes, returned or raised from any
depth: `End` (the turn is over), `Deny` (this operation does not happen), `Retry` (it happens again). `event.ask` puts a
question to the person in the chat; it raises `Pause` unless the answer is known already.

This module needs the standard library alone and imports nothing of ours: the same file is loaded into the processes
that hooks run in, where it is the only part of the gateway that a handler sees.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any, ClassVar, Literal, SupportsIndex, TypeAlias, TypeVar

OnError: TypeAlias = Literal["skip", "raise", "deny"]
Decorated = TypeVar("Decorated", bound=Callable[..., Any])

MARKS_ATTRIBUTE = "__hook_marks__"
YES_WORDS = frozenset({"y", "yes", "true", "once", "session", "always"})  # in words, and as /approve has it


class End(Exception):
    """Ends the turn, with this reply."""

    decision: ClassVar[str] = "end"
    reply: str = ""
    reason: str = ""

    def __init__(self, reply: str = "", reason: str = "") -> None:
        super().__init__(reply)
        self.reply = reply
        self.reason = reason


class Deny(Exception):
    """This operation does not happen; the text goes to the model or the person. A soft one lets the other hooks speak.

    Errors of your own may derive from it (`class RateLimit(Deny)`), and say their `text` in the class.
    """

    decision: ClassVar[str] = "deny"
    text: str = ""
    soft: bool = False

    def __init__(self, text: str = "", soft: bool = False) -> None:
        super().__init__(text)
        self.text = text or self.text
        self.soft = soft or self.soft


class Retry(Exception):
    """Repeats the operation after `delay` seconds; the model receives the message first."""

    decision: ClassVar[str] = "retry"
    message: str | None = None
    delay: float = 0

    def __init__(self, message: str | None = None, delay: float = 0) -> None:
        super().__init__(message)
        self.message = message
        self.delay = delay


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool's call that a question is about, as it would run now.

    `digest` identifies tool and arguments: an approval is for this call, and for no other with the same id.
    `changed_by` names the hooks that changed the model's call.
    """

    call_id: str
    tool: str
    args: dict[str, Any]
    digest: str
    changed_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a hook to the person.

    `id` is made of the event's id, hook and name. A turn that runs again gives its events the same ids: so a hook then
    asks the same question, and an answer for one tool call never counts for another. With `can_last` an approval may
    last: for the session, or always; then `pattern` says which calls it covers, and without one it covers every call of
    the tool. `calls` are the calls that an approval lets run now.
    """

    name: str
    prompt: str
    hook: str
    id: str
    can_last: bool = False
    calls: tuple[AskedCall, ...] = ()
    pattern: str = ""

    @property
    def is_approval(self) -> bool:
        """True if the question is about a tool's run."""
        return bool(self.calls)


class Pause(BaseException):
    """The operation waits for answers. A `BaseException`, so that no `except Exception` of a hook swallows it."""

    decision: ClassVar[str] = "ask"

    def __init__(self, questions: tuple[Question, ...]) -> None:
        super().__init__("; ".join(question.prompt for question in questions))
        self.questions = questions


Outcome: TypeAlias = End | Deny | Retry
OUTCOMES = (End, Deny, Retry)


class Bags:
    """The storage of hooks: `own` for one hook and turn, `turn` for all of this turn, `session` with the conversation.

    `answers` holds the person's answers so far, by question id or name; None if hooks cannot ask. `authors` are the
    restricted hooks that gave instructions, by the id of the call; "": for the whole turn.
    """

    __slots__ = ("answers", "authors", "own", "session", "turn")

    def __init__(
        self,
        session: dict[str, Any] | None = None,
        answers: Mapping[str, Any] | None = None,
        turn: dict[str, Any] | None = None,
        own: dict[Hashable, dict[str, Any]] | None = None,
    ) -> None:
        self.session = {} if session is None else session
        self.answers = answers
        self.authors = defaultdict[str, set[str]](set)
        self.turn = {} if turn is None else turn
        self.own = {} if own is None else own


class Event(dict[str, Any]):
    """An event: a dict of plain fields with a name, an outcome and the bags beside it.

    `writable` lists the fields that a hook may change (None: all); writing another is a KeyError that names it. `hook`
    is the hook that runs now, whose bag is `own`; `gateway` holds that hook's capabilities, None if it has none.
    """

    __slots__ = ("asked", "gateway", "hook", "kept", "name", "outcome", "writable")

    def __init__(
        self,
        name: str,
        fields: Mapping[str, Any] | Iterable[tuple[str, Any]] = (),
        writable: frozenset[str] | None = None,
        bags: Bags | None = None,
        hook: Hashable = "",
    ) -> None:
        dict.__init__(self, fields)
        self.name = name
        self.writable = writable
        self.hook = hook
        self.outcome: Outcome | Pause | None = None
        self.gateway: Any = None
        self.kept = bags
        self.asked: set[tuple[Hashable, str]] | None = None

    @property
    def bags(self) -> Bags:
        """The bags of this event's turn; an event outside of any turn has its own, and may ask."""
        if self.kept is None:
            self.kept = Bags(answers={})
        return self.kept

    @property
    def own(self) -> dict[str, Any]:
        """Private to this hook, for as long as the turn lasts."""
        return self.bags.own.setdefault(self.hook, {})

    @property
    def turn(self) -> dict[str, Any]:
        """Shared by all hooks and tools of the turn."""
        return self.bags.turn

    @property
    def session(self) -> dict[str, Any]:
        """The bag that is kept with the conversation, from turn to turn."""
        return self.bags.session

    def ask(self, prompt: str, name: str | None = None, answer: Any = None) -> Any:
        """Return the person's answer; without one, the hook runs again from its start once it is known.

        False is an answer, None is not. A hook asks twice under two names; without a name the prompt is the name.
        """
        question = self._question(prompt, name or prompt)
        answers = self.bags.answers
        if answers is None:
            raise RuntimeError(f"{question.hook} only observes {self.name}: a hook that asks must intercept it")
        for known in (answer, answers.get(question.id), answers.get(question.name)):
            if known is not None:
                return known
        raise Pause((question,))

    def _question(self, prompt: str, name: str) -> Question:
        if self.asked is None:
            self.asked = set()
        if (self.hook, name) in self.asked:
            raise ValueError(f"{self.hook} asks {name!r} twice at {self.name}: give each question a name of its own")
        self.asked.add((self.hook, name))
        return Question(name, prompt, str(self.hook), f"{self.get('id', self.name)}/{self.hook}/{name}")

    def _check(self, field: object) -> None:
        if self.writable is not None and field not in self.writable:
            allowed = ", ".join(sorted(self.writable)) or "nothing"
            raise KeyError(f"{self.name}: a hook cannot change {field!r}, only {allowed}")

    def __setitem__(self, field: str, value: Any) -> None:
        self._check(field)
        dict.__setitem__(self, field, value)

    def __delitem__(self, field: str) -> None:
        self._check(field)
        dict.__delitem__(self, field)

    def update(self, *others: Any, **fields: Any) -> None:
        """Update like `dict.update`, with a check: nothing is written if one of the fields is read-only."""
        changes = dict(*others, **fields)
        for field in changes:
            self._check(field)
        dict.update(self, changes)

    def __ior__(self, other: Any) -> "Event":  # type: ignore[override,misc]  # dict overloads it by type of `other`
        self.update(other)
        return self

    def setdefault(self, field: str, default: Any = None) -> Any:
        """Work like `dict.setdefault`; reading an existing field is always allowed."""
        if field not in self:
            self[field] = default
        return self[field]

    def pop(self, field: str, *default: Any) -> Any:
        """Pop like `dict.pop`, with a check."""
        self._check(field)
        return dict.pop(self, field, *default)

    def popitem(self) -> tuple[str, Any]:
        """Pop like `dict.popitem`, with a check."""
        self._check(next(reversed(self), None))
        return dict.popitem(self)

    def clear(self) -> None:
        """Clear like `dict.clear`, with a check."""
        for field in self:
            self._check(field)
        dict.clear(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickle or deep-copy the event as the plain dict of its fields."""
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {dict.__repr__(self)})"


@dataclass(frozen=True, slots=True)
class HookMark:
    """The arguments of `@on` for a function."""

    names: tuple[str, ...]
    order: float = 0
    when: Mapping[str, Any] | None = None
    on_error: OnError = "skip"
    timeout: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """All fields but the names, as a registry's `on` takes them."""
        return {"order": self.order, "when": self.when, "on_error": self.on_error, "timeout": self.timeout}


def on(
    *names: str,
    order: float = 0,
    when: Mapping[str, Any] | None = None,
    on_error: OnError = "skip",
    timeout: float | None = None,
) -> Callable[[Decorated], Decorated]:
    """Mark a function or method as a hook for these events; who collects the marks registers it."""
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("@on needs the name of an event, as in @on('tool:before')")
    mark = HookMark(names, order, when, on_error, timeout)

    def decorate(function: Decorated) -> Decorated:
        setattr(function, MARKS_ATTRIBUTE, (mark, *getattr(function, MARKS_ATTRIBUTE, ())))
        return function

    return decorate


def find_marked(owner: Any) -> Iterator[tuple[Callable[..., Any], HookMark]]:
    """Yield the marked functions of a module or methods of an object, in the source's order; parent classes first."""
    homes = [owner] if isinstance(owner, ModuleType) else [*reversed(type(owner).__mro__)]
    for name in dict.fromkeys(name for home in homes for name in vars(home)):
        written = next(vars(home)[name] for home in reversed(homes) if name in vars(home))
        for mark in getattr(getattr(written, "__func__", written), MARKS_ATTRIBUTE, ()):
            yield getattr(owner, name), mark


def outcome_to_dict(outcome: Any) -> Any:
    """Return an outcome as plain data, the form that it has on every wire, and any other answer as it is."""
    match outcome:
        case End():
            return {"decision": "end", "reply": outcome.reply, "reason": outcome.reason}
        case Deny():
            return {"decision": "deny", "message": outcome.text, "soft": outcome.soft}
        case Retry():
            return {"decision": "retry", "message": outcome.message, "delay": outcome.delay}
        case Pause():
            return {"decision": "ask", "name": outcome.questions[0].name, "prompt": outcome.questions[0].prompt}
    return outcome


def outcome_from(answer: Any, fields: Container[str] = ()) -> Outcome | Question | Mapping[str, Any] | None:
    """Interpret a hook's answer: unchanged (None), an outcome, a question, or a mapping of changed fields.

    `fields` are those that the event has: one named `decision` may become any word that is not a decision of ours.
    Raises TypeError or ValueError for any other answer.
    """
    if answer is None or isinstance(answer, OUTCOMES):
        return answer
    if not isinstance(answer, Mapping):
        raise TypeError(f"a hook answers None, a mapping, End, Deny or Retry, not {type(answer).__name__}")
    if "decision" not in answer:
        return answer
    word = str(answer["decision"]).strip().lower()
    if word not in DECISIONS and "decision" in fields:
        return answer
    if word not in DECISIONS:
        near = get_close_matches(word, DECISIONS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(DECISIONS)}"
        raise ValueError(f"unknown decision {answer['decision']!r}{hint}")
    return DECISIONS[word]({key: value for key, value in answer.items() if key != "decision"})


def is_yes(answer: Any) -> bool:
    """Return True if this answer of a person lets an operation through: only a clear approval does."""
    return answer is True or (isinstance(answer, str) and answer.strip().lower() in YES_WORDS)


def _first_text(fields: Mapping[str, Any], *keys: str) -> str:
    return next((str(fields[key]) for key in keys if fields.get(key) is not None), "")


def _parse_rewrite(fields: dict[str, Any]) -> Mapping[str, Any] | None:
    """Translate Hermes's `command_name` and `raw_args` into `command` and `args`; an empty command rewrites nothing."""
    changes = {key: value for key, value in fields.items() if key not in ("command_name", "raw_args")}
    if "command_name" in fields:
        changes["command"] = str(fields["command_name"]).strip().removeprefix("/")
        if not changes["command"]:
            return None
    if "raw_args" in fields:
        changes["args"] = fields["raw_args"]
    return changes


def _parse_retry(fields: dict[str, Any]) -> Retry:
    return Retry(_first_text(fields, "message", "text") or None, float(fields.get("delay") or 0))


def _parse_question(fields: dict[str, Any]) -> Question:
    prompt = _first_text(fields, "prompt", "message", "text")
    if not prompt:
        raise ValueError("the decision 'ask' needs a prompt")
    return Question(_first_text(fields, "name") or prompt, prompt, "", "")


DECISIONS: Mapping[str, Callable[[dict[str, Any]], Outcome | Question | Mapping[str, Any] | None]] = {
    "allow": lambda fields: fields or None,
    "deny": lambda fields: Deny(_first_text(fields, "message", "text", "reason"), bool(fields.get("soft"))),
    "end": lambda fields: End(_first_text(fields, "reply", "message", "text"), _first_text(fields, "reason")),
    "retry": _parse_retry,
    "ask": _parse_question,
    "handled": lambda fields: {"result": _first_text(fields, "message", "text")},
    "rewrite": _parse_rewrite,
}
