"""The state of one run of an agent, and the results of an interrupted run of the same turn."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway.agent.agent import Agent, TurnLimits
from gateway.agent.ports import Ports, TurnResult
from gateway.agent.tools import find_tool
from gateway.events import Outcome, Pause
from gateway.events.outcomes import find_end, find_refusal
from gateway.messages.steps import LlmStep, Step, ToolFinished, ToolStarted, TurnStatus
from gateway.messages.transcript import Entry, Usage, as_message, entry_from

log = logging.getLogger(__name__)

EXIT_GRACE = 2.0
WITHHELD = "[withheld]"
SEND_FILE = "send_file"  # the tool of that name

Fields: TypeAlias = Mapping[str, Any]


class StepNotRecorded(BaseException):
    """The journal refused a step. A `BaseException`, so that no tool turns it into a result for the model."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Replay(msgspec.Struct, frozen=True):
    """Finished answers by hop, tools by call id. If one has several records, the last one counts.

    `unjudged`: tools that have run, and about whose results an interceptor asked a person.
    """

    answers: dict[int, LlmStep] = msgspec.field(default_factory=dict)
    started: dict[str, ToolStarted] = msgspec.field(default_factory=dict)
    finished: dict[str, ToolFinished] = msgspec.field(default_factory=dict)
    unjudged: dict[str, ToolFinished] = msgspec.field(default_factory=dict)


def build_replay(steps: Sequence[Step], turn_id: str) -> Replay:
    """Return the records of this turn; those of its sub-agents have the id of the call appended to that of the turn."""
    known = Replay()
    for step in steps:
        if step.turn_id != turn_id:
            continue
        match step:
            case LlmStep():
                known.answers[step.hop] = step
            case ToolStarted():
                known.started[step.call_id] = step
            case ToolFinished():
                (known.finished if step.judged else known.unjudged)[step.call_id] = step
    return known


class TurnEnding(msgspec.Struct, frozen=True):
    """The end of an invocation: its reply, and its reason."""

    reply: str
    status: TurnStatus = "ok"
    stop: str = "end_turn"
    hook_ended: str = ""
    is_in_transcript: bool = False


class ModelNotes(msgspec.Struct):
    """Notes for the model beside the transcript.

    The `handoff_note` follows the instructions of a sub-agent. `missing`: why some tools cannot be had.
    """

    handoff_note: str = ""
    context_text: str = ""  # what the context files say
    missing: tuple[str, ...] = ()
    context: list[str] = []


class RequestState(msgspec.Struct):
    """The settings of the agent's requests, and the state of the present one.

    `partial` is the streamed text of the answer; `offered` are the tools that the last request named.
    """

    limits: TurnLimits = msgspec.field(default_factory=TurnLimits)
    options: Mapping[str, Any] = {}
    model_name: str = ""
    partial: str = ""
    offered: frozenset[str] | None = None


class ToolResults(msgspec.Struct):
    """The results of tools, by call id: the recorded ones, and denials by a hook or a person.

    `withheld` are the names of tools that the person may not use.
    """

    denials: dict[str, str] = {}
    recorded_results: dict[str, Entry] = {}
    withheld: frozenset[str] = frozenset()


class ExitState(msgspec.Struct):
    """The ending of the run. `transferred` is the result of the agent to which the conversation was handed."""

    transferred: TurnResult | None = None
    finish: TurnEnding | None = None
    exit_deadline: float | None = None


class RunOrigin(msgspec.Struct):
    """The way a run began: it may resume an earlier one, or stream its text. The `prefix` names a sub-agent's call."""

    resumed: bool = False
    streams: bool = True
    prefix: str = ""


class TurnState(msgspec.Struct):
    """The mutable state of one agent's part in a turn, for the functions of this package."""

    agent: Agent
    ports: Ports
    view: tuple[Entry, ...]  # what the model is shown of the time before this invocation
    replay: Replay
    origin: RunOrigin = msgspec.field(default_factory=RunOrigin)
    summarized: int | None = None  # so many entries of the history are replaced by a summary; None: hooks changed it
    entries: list[Entry] = []
    base: int = 0  # so many of the entries are part of the view: an invocation before this one made them
    node_state: dict[str, Any] = {}  # the bag that the hooks of nodes share
    usage: Usage = msgspec.field(default_factory=Usage)
    hop: int = 0
    told: ModelNotes = msgspec.field(default_factory=ModelNotes)
    request: RequestState = msgspec.field(default_factory=RequestState)
    results: ToolResults = msgspec.field(default_factory=ToolResults)
    ending: ExitState = msgspec.field(default_factory=ExitState)

    @property
    def is_behind(self) -> bool:
        """True if an earlier try of the turn got beyond this hop: then all work of the hop is done, its events too."""
        return self.hop + 1 in self.replay.answers

    @property
    def new_entries(self) -> list[Entry]:
        """The entries that this invocation has added so far, which the view does not hold."""
        return self.entries[self.base :]

    @property
    def sends_files(self) -> bool:
        """True if lines of the answer may name files to send: the agent that wrote it has the tool for that."""
        if self.ending.transferred is not None:
            return self.ending.transferred.sends_files
        tool, grant = find_tool(self.agent.tools, SEND_FILE), self.ports.grant
        return tool is not None and (grant is None or grant(tool) is not None)

    def add_usage(self, used: Usage) -> None:
        self.usage += used

    async def fire(self, name: str, fields: dict[str, Any]) -> tuple[Fields, Outcome | None]:
        """Fire an event and return the fields as its hooks left them; if none may change it, the same fields."""
        if not self.ports.wants(name):
            return fields, None
        if self.origin.resumed:
            fields["resumed"] = True
        if not self.ports.decides(name):
            self.ports.emit(name, agent=self.agent.name, **fields)
            return fields, None
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
        """Return the seconds that hooks have left to receive the end of a turn."""
        now = anyio.current_time()
        if self.ending.exit_deadline is None:
            self.ending.exit_deadline = now + EXIT_GRACE
        return max(self.ending.exit_deadline - now, 0.01)

    def end(self, outcome: Outcome | None, point: str, fallback: str = "") -> bool:
        """Return True if the outcome ends the run. The first one that does decides how."""
        end = find_end(outcome)
        if end and self.ending.finish is None:
            self.ending.finish = TurnEnding(end.reply or fallback, "ended", "ended", end.reason or f"ended at {point}")
        return end is not None

    async def add(self, entry: Entry) -> Entry:
        """Put an entry into the transcript, as the interceptors of `message:add` leave it; denied, a placeholder."""
        if not self.ports.wants("message:add"):
            self.entries.append(entry)
            return entry
        kept: Entry | None = None
        try:
            kept = await self._fire_message_add(entry)
            if entry.role == "user" and (hooks := self.ports.authors[""]):
                kept = msgspec.structs.replace(kept, authors=tuple(sorted(hooks)))
        finally:
            self.entries.append(kept or msgspec.structs.replace(entry, content=WITHHELD, parts=()))
        return kept

    async def record(self, step: Step) -> None:
        """Record a step. After a failure the turn belongs to another process, and must not act on it."""
        if isinstance(step, ToolFinished) and step.judged:
            self.results.recorded_results[step.call_id] = step.entry
        try:
            await self.ports.record(step)
        except Exception as error:
            raise StepNotRecorded(error) from error

    async def _fire_message_add(self, entry: Entry) -> Entry:
        fields = {"message": as_message(entry)}
        event, outcome = await self.fire("message:add", fields)
        if event is fields:
            return entry
        if (refusal := find_refusal(outcome, WITHHELD)) is not None:
            return msgspec.structs.replace(entry, content=refusal, parts=())
        try:
            left = entry_from(event["message"])
            # They change what it says, not what it is: a result without its call would break the transcript.
            parts = tuple(part for part in entry.parts if part in left.parts)
            return msgspec.structs.replace(entry, content=left.content, error=left.error, parts=parts)
        except ValueError as error:
            log.warning("message:add left no message behind (%s); the original is kept", error)
            return entry
