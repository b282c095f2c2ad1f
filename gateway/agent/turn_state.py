"""One run of an agent: its state, and how an operation stands between its two events.

The promise of pairing is kept here alone: whatever happens to an operation or to the interceptors before it (an error,
an outcome, a pause, a cancellation), the event after it is fired exactly once, and then what happened goes on its way.
After a cancellation all that is left to fire shares a short grace, shielded from it.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio

from gateway.agent.agent import Agent, TurnLimits
from gateway.agent.error_fields import error_as_fields, error_from_fields
from gateway.agent.ports import Ports, TurnResult, TurnStatus
from gateway.agent.replay import Replay
from gateway.events import Deny, End, Outcome, Pause, Retry
from gateway.steps import Step, ToolFinished
from gateway.transcript import Entry, Usage, as_message, entry_from

log = logging.getLogger(__name__)

RETRIES = 5
EXIT_GRACE = 2.0
WITHHELD = "[withheld]"

Fields: TypeAlias = Mapping[str, Any]


class StepNotRecorded(BaseException):
    """The journal refused a step. A `BaseException`, so that no tool turns it into a result for the model."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class TurnEnding:
    """How a run ends: its reply, and why there is no more to do."""

    reply: str
    status: TurnStatus = "ok"
    stop: str = "end_turn"
    hook_ended: str = ""
    said: bool = False  # the reply stands in the transcript already


@dataclass(slots=True)
class TurnState:
    """The mutable state of one run, for the functions of this package."""

    agent: Agent
    ports: Ports
    view: tuple[Entry, ...]  # what the model is shown of the time before this invocation
    replay: Replay
    note: str = ""  # what a sub-agent is told besides its instructions
    context_text: str = ""  # what the context files say
    missing: tuple[str, ...] = ()  # what the model is told of tools that cannot be had
    resumed: bool = False
    streams: bool = True
    prefix: str = ""
    summed: int | None = None  # so many entries of the history a summary stands for; None: hooks changed the history
    entries: list[Entry] = field(default_factory=list)
    base: int = 0  # how many of the entries are in the view already
    context: list[str] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    hop: int = 0
    limits: TurnLimits = field(default_factory=TurnLimits)
    options: Mapping[str, Any] = field(default_factory=dict)
    model_name: str = ""
    partial: str = ""  # what was streamed of the present answer
    offered: frozenset[str] | None = None  # the tools that the last request named
    recorded: dict[str, Entry] = field(default_factory=dict)  # tool results by call id, as they stand in the journal
    transferred: TurnResult | None = None  # what the agent made of it to whom the conversation was handed
    finish: TurnEnding | None = None
    exit_deadline: float | None = None

    @property
    def is_behind(self) -> bool:
        """Did an earlier life of the turn get beyond this hop? Then all that the hop did is done, its events too."""
        return self.hop + 1 in self.replay.answers

    async def fire(self, name: str, fields: dict[str, Any]) -> tuple[Fields, Outcome | None]:
        """The event as its hooks leave it; without hooks, the fields as they are."""
        if not self.ports.wants(name):
            return fields, None
        if self.resumed:
            fields["resumed"] = True
        event = await self.ports.run(name, agent=self.agent.name, **fields)
        outcome = event.outcome
        return event, None if isinstance(outcome, Pause) else outcome

    async def fire_on_exit(self, name: str, fields: dict[str, Any]) -> None:
        """Fire an event on the way out; nothing that its hooks say changes where we are going."""
        with anyio.move_on_after(self.grace(), shield=True):
            try:
                await self.fire(name, fields)
            except Pause:
                log.info("%s asked a question while the turn was being left; it is dropped", name)
            except Exception:  # a hook is foreign code, and must not replace the reason of the leaving
                log.exception("%s failed while the turn was being left", name)

    def grace(self) -> float:
        """What is left of the time in which a run that is being left may still tell its hooks."""
        now = anyio.current_time()
        if self.exit_deadline is None:
            self.exit_deadline = now + EXIT_GRACE
        return max(self.exit_deadline - now, 0.01)

    def end(self, outcome: Outcome | None, point: str, fallback: str = "") -> bool:
        """Does the outcome end the run? The first one that does decides how."""
        if isinstance(outcome, End) and self.finish is None:
            reason = outcome.reason or f"ended at {point}"
            self.finish = TurnEnding(outcome.reply or fallback, "ended", "ended", reason)
        return isinstance(outcome, End)

    async def add(self, entry: Entry) -> Entry:
        """Put an entry into the transcript, as the interceptors of `message:add` leave it; denied, a placeholder."""
        kept = withhold(entry, WITHHELD)
        try:
            kept = await self._passed(entry)
        finally:
            self.entries.append(kept)
        return kept

    async def record(self, step: Step) -> None:
        """Write down what is done. Whoever cannot, no longer owns the turn and must not act on it."""
        if isinstance(step, ToolFinished) and step.judged:
            self.recorded[step.call_id] = step.entry
        try:
            await self.ports.record(step)
        except Exception as error:
            raise StepNotRecorded(error) from error

    async def _passed(self, entry: Entry) -> Entry:
        if not self.ports.wants("message:add"):
            return entry
        fields, outcome = await self.fire("message:add", {"message": as_message(entry)})
        if isinstance(outcome, Deny):
            return withhold(entry, outcome.text or WITHHELD)
        try:
            return _keep_identity(entry, entry_from(fields["message"]))
        except ValueError as error:
            log.warning("message:add left no message behind (%s); the original is kept", error)
            return entry


def withhold(entry: Entry, text: str) -> Entry:
    return Entry(entry.role, text, entry.tool_calls, entry.call_id, entry.name, entry.error)


def _keep_identity(old: Entry, new: Entry) -> Entry:
    """Interceptors change what is said, not what a message is: a result without its call would break the transcript."""
    return Entry(old.role, new.content, old.tool_calls, old.call_id, old.name, new.error)


@dataclass(slots=True)
class OperationResult:
    """What became of an operation: its value or error, the outcome that prevented it, and its event afterwards.

    `after` is None when nobody wanted to be told. `given`: a hook gave the value. `left`: why the run is being left.
    """

    before: Fields = field(default_factory=dict)
    value: Any = None
    error: Exception | None = None
    outcome: Outcome | None = None
    given: bool = False
    left: str = ""
    after: Fields | None = None
    verdict: Outcome | None = None

    @property
    def retry(self) -> Retry | None:
        return self.verdict if isinstance(self.verdict, Retry) else None


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that happens between two events.

    `ask` and `tell` give their fields, and are not called when nobody wants them. `act` gets the event as the hooks
    left it, or None when there were none.
    """

    before: str
    after: str
    ask: Callable[[], dict[str, Any]]
    act: Callable[[Fields | None], Awaitable[Any]]
    tell: Callable[[OperationResult], dict[str, Any]]
    instead: Callable[[OperationResult], Awaitable[None]] | None = None  # what is done when hooks prevent it


async def run_operation(run: TurnState, operation: Operation) -> OperationResult:
    """Carry out an operation between its events. What the hooks made of its error is in `error`; it is not raised."""
    done = OperationResult()
    try:
        event = await _fire_before(run, operation, done)
        if done.given or done.outcome or done.error:
            if operation.instead:
                await operation.instead(done)
        else:
            done.value = await operation.act(event)
    except Exception as error:  # noqa: BLE001 - whatever a tool, a model or a hook raises, the event after it says so
        done.error = error
    except BaseException as leaving:
        done.left = "paused" if isinstance(leaving, Pause) else "interrupted"
        if run.ports.wants(operation.after):
            await run.fire_on_exit(operation.after, {"error": None, **operation.tell(done)})
        raise
    if run.ports.wants(operation.after):
        told = error_as_fields(done.error)
        done.after, done.verdict = await run.fire(operation.after, {"error": told, **operation.tell(done)})
        done.error = error_from_fields(done.after.get("error"), done.error, told)
    return done


async def _fire_before(run: TurnState, operation: Operation, done: OperationResult) -> Fields | None:
    """The event before the operation, as the hooks leave it; what they decided stands in `done`."""
    if not run.ports.wants(operation.before):
        return None
    try:
        done.before, done.outcome = await run.fire(operation.before, operation.ask())
    except Exception as error:  # noqa: BLE001 - a hook with `on_error: raise` makes the operation fail
        done.error = error
    if done.outcome is None and (given := done.before.get("result")) is not None:
        done.value, done.given = given, True
    return done.before


async def wait_before_retry(retry: Retry) -> None:
    if retry.delay > 0:
        await anyio.sleep(retry.delay)
