"""The durations of turns, stage by stage, from the journal's records while this process runs.

The records have all the times, so no turn does extra work to be measured. The times are the journal's own: a stage
lasts from one record to the next. Each node counts its own turns.
"""

from typing import Any

import anyio.abc
import msgspec

from gateway.engine.interface import Engine, Record
from gateway.histogram import Histogram
from gateway.records import subjects
from gateway.records.own_turns import OwnTurns
from gateway.web.metric_text import HistogramMetric, Metric

STAGES = {
    "wait": "from a message to the beginning of its turn",
    "model": "from what stood before to the model's whole answer",
    "tool": "one tool",
    "turn": "from its beginning to its end",
    "send": "from a reply to the network's word that it has it",
}
MOST_OPEN = 10_000  # stages without an end yet; a turn that asks a person may take for ever


class ReplyFact(msgspec.Struct, frozen=True):
    """The id of a pending reply."""

    id: str = ""


class NetworkFact(msgspec.Struct, frozen=True):
    """The network of a message."""

    platform: str = ""


class InboundFact(msgspec.Struct, frozen=True):
    """The place of a message."""

    address: NetworkFact = NetworkFact()


class JournalFact(msgspec.Struct, frozen=True):
    """The fields of a record that count here."""

    kind: str
    by: str = ""
    call_id: str = ""
    reply_id: str = ""
    reply: ReplyFact = ReplyFact()
    message: InboundFact = InboundFact()
    last: bool = True
    permanent: bool = True
    status: str = "ok"
    answer: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(JournalFact).decode


class TurnTimes:
    """The sums since the start of this process."""

    def __init__(self, node: str = "") -> None:
        self._own = OwnTurns(node)
        self._counts = True  # True if the current record is about this node
        self.stages = {stage: Histogram() for stage in STAGES}
        self.answers = Histogram()  # from a message to the end of its turn
        self.turns: dict[tuple[str, ...], float] = {}  # by status
        self.messages: dict[tuple[str, ...], float] = {}  # by network
        self.sends: dict[tuple[str, ...], float] = {}  # by network and outcome
        self._begun: dict[tuple[str, str], float] = {}  # start times, by stage and the id of its thing

    async def run(self, engine: Engine, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Note records until cancelled. Records that a full queue drops are not counted: these are statistics."""
        tail = await engine.tail(*subjects.MESSAGE_SUBJECTS)
        task_status.started()
        async for record in tail:
            self.note(record)

    def note(self, record: Record) -> None:
        try:
            fact = _decode(record.data)
        except msgspec.DecodeError:
            return  # a record of a later version; readers that need it report it
        chain, at = subjects.token_of_subject(record.subject), record.ts
        self._counts = self._own.has(chain, fact.kind, fact.by, fact.reply.id or fact.reply_id)
        match fact.kind:
            case "in":
                self._begun.setdefault(("wait", chain), at)
                self._add(self.messages, fact.message.address.platform)
            case "claim":
                self._begin("answer", chain, self._begun.get(("wait", chain), at))
                self._end("wait", chain, at)
                self._begin("turn", chain, at)
                self._begin("model", chain, at)
            case "llm":
                self._end("model", chain, at)
            case "tool_started":
                self._begin("tool", chain + fact.call_id, at)
            case "tool_finished":
                self._end("tool", chain + fact.call_id, at)
                self._begin("model", chain, at)
            case "done":
                self._end_turn(chain, fact, at)
            case "out":
                self._begin_send(record.subject, fact, at)
            case "sent" | "failed":
                self._end_send(record.subject, fact, at)

    def _end_turn(self, chain: str, fact: JournalFact, at: float) -> None:
        self._begun.pop(("wait", chain), None)
        if fact.answer:
            self._end("model", chain, at)
        self._begun.pop(("model", chain), None)
        asked = self._begun.pop(("answer", chain), None)
        if self._end("turn", chain, at):
            self._add(self.turns, fact.status)
            if asked is not None and self._counts:
                self.answers.observe(max(0.0, at - asked))

    def _begin_send(self, subject: str, fact: JournalFact, at: float) -> None:
        self._begin("send", fact.reply.id, at)
        if subjects.is_sent(subject):
            self._end_send(subject, fact, at)

    def _end_send(self, subject: str, fact: JournalFact, at: float) -> None:
        network = subject.split(".")[2].removesuffix(subjects.ARRIVED)
        if fact.kind == "failed":
            self._add(self.sends, network, "given up" if fact.permanent else "failed")
        elif fact.last:
            self._add(self.sends, network, "sent")
        if fact.last and fact.permanent:
            self._end("send", fact.reply_id or fact.reply.id, at)

    def _add(self, sums: dict[tuple[str, ...], float], *key: str) -> None:
        if self._counts:
            sums[key] = sums.get(key, 0.0) + 1

    def _begin(self, stage: str, what: str, at: float) -> None:
        self._begun[stage, what] = at
        if len(self._begun) > MOST_OPEN:
            del self._begun[next(iter(self._begun))]

    def _end(self, stage: str, what: str, at: float) -> bool:
        began = self._begun.pop((stage, what), None)
        if began is not None and self._counts:
            self.stages[stage].observe(max(0.0, at - began))
        return began is not None

    def metrics(self) -> tuple[Metric | HistogramMetric, ...]:
        stages = ", ".join(f"{stage}: {what}" for stage, what in STAGES.items())
        return (
            Metric("turns", "counter", "Turns that have ended, by how.", self.turns, ("status",)),
            HistogramMetric("stage_seconds", f"Durations; {stages}.", "stage", self.stages),
            Metric(
                "sends", "counter", "Replies, by network and what came of them.", self.sends, ("network", "outcome")
            ),
        )
