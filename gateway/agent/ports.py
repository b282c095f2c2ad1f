"""The functions by which a turn reaches the world, and its result. It knows no session, no platform, no database."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec
from anyio import CancelScope

from gateway.agent.skills import Skill
from gateway.agent.tools import ChatPort, Tool
from gateway.events import AskedCall, Event, Question
from gateway.messages.steps import Step, TurnStatus
from gateway.messages.transcript import Entry, Picture, Usage

KeepPicture: TypeAlias = Callable[[bytes], Awaitable[tuple[str, Picture | None]]]


class EventRunner(Protocol):
    """Fires an event at its interceptors and observers; raises the error of a hook with `on_error: raise`, or Pause."""

    def __call__(self, name: str, /, **fields: Any) -> Awaitable[Event]: ...


class EventEmitter(Protocol):
    """Notifies the observers of an event, without waiting for them."""

    def __call__(self, name: str, /, **fields: Any) -> None: ...


class UsagePort(Protocol):
    """The counter of usage: consulted before each call of a model, and notified after it."""

    async def ask(self, model: str, tokens: int) -> str:
        """Return why a call with about so many tokens is not allowed, for the person; "" if it is."""

    def count(self, usage: Usage, model: str, tokens: int) -> Usage:
        """Count the usage of a call that `ask` allowed with this model and so many tokens. Returns it with its cost."""


class IgnoredUsage:
    """Usage that no one adds up."""

    async def ask(self, _model: str, _tokens: int) -> str:
        return ""

    def count(self, usage: Usage, _model: str, _tokens: int) -> Usage:
        return usage


async def ignore_step(step: Step) -> None:
    """Record no step, for turns that need not survive a crash."""


async def load_no_approvals() -> None:
    """Load no approvals, for turns whose approvals are all known at their start."""


async def load_no_tools(_action: str, _skill: Skill) -> Sequence[str]:
    """Load no tools, for turns whose skills have only text."""
    return ()


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """The world of one turn.

    run, emit, wants: the hooks, in the turn's scope. decides: True if a hook of this event may change something. reads:
        True if a hook of an event reads a field of it.
    record: awaited after each answer of the model, before each tool and after it; raising ends the turn at once.
    delta: text of the reply as it leaves the interceptors. discard: the streamed part of the present answer is void,
        since the model is called again.
    steps, answers, asked, calls, resumed: the earlier run of the same turn: its records, the person's answers by
        question id or name, the prompts of those questions and the calls that they were about, and True if such a run
        exists at all. The answers are those that the hooks' scope reads; an interceptor of a question may change them.
    authors: the restricted hooks that gave instructions, by the id of the call; "": for the whole turn.
    limit: returns these ports with the rights of such hooks.
    changed_by: the hooks that changed a tool's call, by its id. open_questions: those that this run of the turn has
        put.
    stop: cancelling it interrupts the turn, which then has the status `interrupted`; any other cancellation passes.
    approvals: the lasting approvals of the person: `tool` or `tool:subject` -> `session` or `always`.
    load_approvals: awaited before a tool that asks; adds missing ones to `approvals`.
    turn, session, facts: the bags and the common fields that tools see.
    on_skill: awaited when a skill was loaded or unloaded (`load`, `unload`); returns the names of the tools that came
        or went with it.
    chat: the conversation in which tools may send messages, if the turn has one.
    grant: returns a tool as the person of the turn may use it; None: they may not. Sub-agents have no more. Without it
        they have every tool.
    keep_picture: keeps a picture of a tool; returns words about it for the model, and a form that can be shown.
    usage: counts the calls of the model, and refuses those above the budget.
    redact: removes secrets from an error before it is shown.
    """

    run: EventRunner
    emit: EventEmitter
    wants: Callable[[str], bool]
    decides: Callable[[str], bool] = lambda _name: True
    reads: Callable[[str, str], bool] = lambda _event, _field: True
    record: Callable[[Step], Awaitable[None]] = ignore_step
    delta: Callable[[str], None] = lambda _text: None
    discard: Callable[[], None] = lambda: None
    turn_id: str = ""
    steps: Sequence[Step] = ()
    answers: MutableMapping[str, Any] = msgspec.field(default_factory=dict)
    asked: Mapping[str, str] = msgspec.field(default_factory=dict)
    calls: MutableMapping[str, tuple[AskedCall, ...]] = msgspec.field(default_factory=dict)
    changed_by: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    authors: defaultdict[str, set[str]] = msgspec.field(default_factory=lambda: defaultdict(set))
    limit: Callable[["Ports", Collection[str]], "Ports"] = lambda ports, _hooks: ports
    open_questions: set[str] = msgspec.field(default_factory=set)
    resumed: bool = False
    stop: CancelScope = msgspec.field(default_factory=CancelScope)
    approvals: MutableMapping[str, str] = msgspec.field(default_factory=dict)
    load_approvals: Callable[[], Awaitable[None]] = load_no_approvals
    turn: dict[str, Any] = msgspec.field(default_factory=dict)
    session: dict[str, Any] = msgspec.field(default_factory=dict)
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    on_skill: Callable[[str, Skill], Awaitable[Sequence[str]]] = load_no_tools
    chat: ChatPort | None = None
    grant: Callable[[Tool], Tool | None] | None = None
    keep_picture: KeepPicture | None = None
    redact: Callable[[str], str] = str
    usage: UsagePort = msgspec.field(default_factory=IgnoredUsage)

    def for_call(self, call_id: str = "") -> "Ports":
        """Return these ports with the rights of this call's authors; without an id, of the turn from now on."""
        hooks = self.authors[""] | self.authors[call_id]
        return self.limit(self, hooks) if hooks else self


class TurnResult(msgspec.Struct, frozen=True):
    """The result of a turn. With `questions`, the turn is paused: it runs again once they are answered.

    entries: the turn's additions to the transcript, the person's message included; empty while it is paused. stop: why
    it ended: `end_turn`, `result` (a hook gave it), `hops`, `loop`, `tokens`, `budget`, `seconds`, or the status.
    sends_files: True if lines of the reply may name files to go with it.
    """

    reply: str = ""
    entries: tuple[Entry, ...] = ()
    usage: Usage = msgspec.field(default_factory=Usage)
    status: TurnStatus = "ok"
    error: str = ""
    hook_ended: str = ""
    questions: tuple[Question, ...] = ()
    stop: str = "end_turn"
    sends_files: bool = False
