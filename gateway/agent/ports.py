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
    """Fires an event at its interceptors and observers; raises what a hook with `on_error: raise` raised, or Pause."""

    def __call__(self, name: str, /, **fields: Any) -> Awaitable[Event]: ...


class EventEmitter(Protocol):
    """Tells the observers of an event, and waits for none of them."""

    def __call__(self, name: str, /, **fields: Any) -> None: ...


class UsagePort(Protocol):
    """Asked before each call of a model, and notified after it."""

    async def ask(self, model: str, tokens: int) -> str:
        """Return why a call with about so many tokens is not allowed, for the person; "" if it is."""

    def count(self, usage: Usage, model: str, tokens: int) -> Usage:
        """A call that was asked for with this model and so many tokens has used that; returns it with what it cost."""


class IgnoredUsage:
    """Usage that no one adds up."""

    async def ask(self, _model: str, _tokens: int) -> str:
        return ""

    def count(self, usage: Usage, _model: str, _tokens: int) -> Usage:
        return usage


async def ignore_step(step: Step) -> None:
    """For turns that need not survive a crash."""


async def load_no_approvals() -> None:
    """For turns whose approvals are all known at their start."""


async def load_no_tools(_action: str, _skill: Skill) -> Sequence[str]:
    """For turns whose skills bring nothing but their text."""
    return ()


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """The world of one turn.

    run, emit, wants: the hooks, in the turn's scope. decides: does a hook of this event do more than look on?
        reads: does a hook of an event read a field of it?
    record: awaited after each answer of the model, before each tool and after it; raising ends the turn at once.
    delta: text of the reply as it leaves the interceptors. discard: what was streamed of the present answer is void,
        since the model is asked again.
    steps, answers, asked, calls, resumed: what is known of an earlier run of the same turn: its records, the person's
        answers by question id or name, the prompts of those questions and the calls that they were about, and whether
        there was such a run at all. The answers are those that the hooks' scope reads; an interceptor of a question may
        change them.
    authors: the restricted hooks that said what is to be done, by the id of the call; "": in all of the turn.
    limit: these ports, as they are for what such hooks have done.
    changed_by: which hooks changed a tool's call, by its id. open_questions: those that this run of the turn has put.
    stop: cancelling it interrupts the turn, which then has the status `interrupted`; any other cancellation passes.
    approvals: what the person has approved for longer than once: `tool` or `tool:subject` -> `session` or `always`.
    load_approvals: awaited before a tool that asks; puts those that are not there yet into `approvals`.
    turn, session, facts: the bags and the common fields that tools see.
    on_skill: awaited when a skill was loaded or unloaded (`load`, `unload`); gives the names of the tools that came or
        went with it.
    chat: the conversation, where there is one that tools may speak in.
    grant: a tool as the person has it for whom the turn works; None: they do not. Sub-agents have no more. Without it
        they have every tool.
    keep_picture: keeps what a tool gave as a picture; gives words about it for the model, and what it can be shown.
    usage: counts the calls of the model, and says which may not be made.
    redact: takes secrets out of an error before anybody is told of it.
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
        """These ports with the rights of this call's authors; without an id, of what the turn does from now on."""
        hooks = self.authors[""] | self.authors[call_id]
        return self.limit(self, hooks) if hooks else self


class TurnResult(msgspec.Struct, frozen=True):
    """The result of a turn. With `questions`, the turn is paused: it is run again once they are answered.

    entries: what the turn adds to the transcript, the person's message included; nothing while it is paused.
    stop: why it went no further: `end_turn`, `result` (a hook gave it), `hops`, `loop`, `tokens`, `budget`, `seconds`,
        or the status.
    sends_files: may lines of the reply name files to go with it?
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
