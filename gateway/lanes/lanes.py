"""The lanes of this node: each session that has work has a lane, and a limited number of turns runs at once.

A doorbell is a pending record of the consumer `turns`; it wakes the lane of its session. Each node holds one lease,
`worker.<node>`, that shows that the node is alive. If the lease of a node has expired, any other node may continue its
turns. The lease only saves work: the chain alone decides what a node may write.
"""

import asyncio
import logging
import math
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import anyio
import anyio.abc
import msgspec

from gateway.backoff import find_pause
from gateway.engine.interface import Consumer, ConsumerSpec, Engine, Lease, NewRecord, Record, Tail, append_new
from gateway.engine.keyed_workers import KeyedWorkers, TooNewRecords
from gateway.errors import Conflict, Duplicate, EngineError
from gateway.lanes.context import ACK_WAIT, PAGE, InterruptsTurn, LaneContext, LaneSettings
from gateway.lanes.edits import make_partial_end, read_pending
from gateway.lanes.lane import Lane
from gateway.lanes.peers import LaneRequest, Peers, lease_key_of
from gateway.lanes.slots import Slots
from gateway.lanes.turn import RunTurn
from gateway.lanes.turn_claim import NewMessage, is_plain
from gateway.messages.message import Message
from gateway.records import records, subjects
from gateway.sessions.repository import SessionRepository
from gateway.turn_marks import TurnMarks

log = logging.getLogger(__name__)

CONSUMER = "turns"
TELL_PAUSE = 0.05  # between two notices to a backlog: answers go first
GLANCE = 0.25  # between two requests to a node to stop a turn
MAX_INFLIGHT = 20_000  # lanes that hold a doorbell, including lanes that wait for an answer


class QueuePosition(msgspec.Struct, frozen=True):
    """The place of a new message: messages before it in its session, and lanes that wait for a slot."""

    is_running: bool
    is_waiting: bool
    messages: int
    lanes: int


class Lanes:
    """The lanes of this node. `run` serves until cancelled; `drain` lets running turns end first."""

    def __init__(
        self,
        engine: Engine,
        sessions: SessionRepository,
        work: RunTurn,
        settings: LaneSettings,
        *,
        node: str = "",
        clock: Callable[[], float] | None = None,
        marks: TurnMarks | None = None,
    ) -> None:
        limits = settings.sessions.turns, settings.sessions.turns_per_person
        slots = Slots(*limits), Slots(*limits)
        node = node or uuid.uuid4().hex
        marks, clock = marks or TurnMarks(), clock or engine.clock.latest
        peers = Peers(engine, node)
        self._context = LaneContext(engine, sessions, work, settings, *slots, node, clock, marks, anyio.Lock(), peers)
        self.too_new = TooNewRecords()
        self._workers = self._make_workers()
        self._most_waiting = math.inf
        self._may_number = engine.append_numbered is not None and settings.attempts > 0  # a claim is a try
        self._tasks: anyio.abc.TaskGroup | None = None
        self._ended = anyio.Event()

    @property
    def running(self) -> int:
        """The number of turns that run on this node."""
        return self._context.slots.running

    @property
    def waiting(self) -> int:
        """The number of lanes that wait for a slot."""
        return self._context.slots.waiting + self._workers.waiting

    def list_waiting(self) -> list[Message]:
        """List the messages whose turns run or wait on this node, without internal messages."""
        jobs = (lane.job for lane in self._workers.list_live())
        return [job.messages[-1] for job in jobs if job and job.messages[-1].kind != "internal"]

    def list_live(self) -> dict[str, str]:
        """Return the sessions with a lane on this node, each with the damage of its journal records, or "".

        A session with damage cannot continue.
        """
        return {lane.key: lane.damage for lane in self._workers.list_live()}

    async def accept(
        self, message: Message, key: str, *extra: NewRecord, bot: str = "", told: Sequence[NewRecord] = ()
    ) -> int | None:
        """Append a message, before it is confirmed to its network; return its sequence, or None for a duplicate.

        The same append writes `extra` (a network's cursor), even for a duplicate, and the overheard messages `told`.

        Raises:
            Conflict: another process moved the cursor. The journal may have the message, but never twice.
            EngineError: the journal takes no appends; nothing was written, and the network must keep the message.
        """
        if await self.is_full():
            raise EngineError("too many conversations wait for an answer already; the network keeps this message")
        if (seq := await self._accept_in_lane(message, key, *told, *extra, bot=bot)) is None:
            (seq,) = await self.accept_all([(message, key)], *extra, bot=bot, told=told)
        return seq

    async def _accept_in_lane(self, message: Message, key: str, *extra: NewRecord, bot: str) -> int | None:
        """Let a new lane append the message and the claim of its turn at once; return None if it wrote nothing.

        Messages of one session that come at the same moment stay in order.
        """
        if lane := self._workers.worker(key):
            if lane.arrival:
                await asyncio.wait([lane.arrival.seq])
        elif self._tasks and not self._workers.is_closed and self._may_number and is_plain(message):
            put = make_inbound_put(message, key, bot, self._context.clock())
            lane = self._workers.begin(key, self._tasks)
            lane.arrival = NewMessage(message, put, extra)
            self._most_waiting += 1
            return await lane.arrival.seq
        return None

    async def depth(self) -> int:
        """Count the doorbells: at least one for each session that has work."""
        return await self._context.engine.depth(CONSUMER)

    async def is_full(self) -> bool:
        """Return True if so many messages wait that the networks should keep further messages.

        The function reads the journal only if the last known count and the messages since then reach the limit.
        """
        if self._most_waiting > self._context.settings.backlog:
            self._most_waiting = await self.depth()
        return self._most_waiting > self._context.settings.backlog

    async def accept_all(
        self, arrived: Sequence[tuple[Message, str]], *extra: NewRecord, bot: str = "", told: Sequence[NewRecord] = ()
    ) -> list[int | None]:
        """Accept several messages, each with its session key, in one append."""
        puts = [make_inbound_put(message, key, bot, self._context.clock()) for message, key in arrived]
        self._most_waiting += len(puts)
        try:
            return list((await self._context.engine.append(*puts, *told, *extra))[: len(puts)])
        except Duplicate:
            sequences = await append_new(self._context.engine, *puts)
        if extra:
            await self._context.engine.append(*extra)
        return sequences

    async def answer(
        self,
        key: str,
        name: str,
        answer: Any,
        by: str = "",
        *extra: NewRecord,
        by_name: str = "",
        msg_id: str | None = None,
        digest: str = "",
    ) -> bool:
        """Append a person's answer to a question; return False, and write nothing, if this question is not open.

        `msg_id` is the id of the message with the answer, so that the answer counts once; `extra` is as in `accept`.
        With a `digest`, the answer counts only for a question with the same digest.
        """
        wakeup = make_wakeup_put(key, msg_id)
        while (turn := (session := await self._context.sessions.open(key)).turn) and turn.asks(name, digest):
            answered = records.QuestionAnswered(turn_id=turn.turn_id, name=name, answer=answer, by=by, by_name=by_name)
            try:
                await self._context.sessions.append(session, answered, extra=[wakeup, *extra])
            except Conflict:
                if (await self._context.sessions.open(key)).seq == session.seq:
                    raise
            except Duplicate:
                if extra:
                    await self._context.engine.append(*extra)
                return True
            else:
                return True
        return False

    async def interrupt(self, key: str) -> Literal["running", "waiting", "nothing"]:
        """Stop the turn of a session, on any node, whether the turn runs or waits for answers."""
        if (lane := self._workers.worker(key)) and lane.stop():
            return "running"
        peers = self._context.peers
        while (turn := (session := await self._context.sessions.open(key, fresh=True)).turn) is not None:
            if await peers.run(turn):
                was_stopped = await peers.ask(turn.by, key, "stop")
                if was_stopped:
                    return "running"
                if was_stopped is None:
                    await anyio.sleep(GLANCE)
                    continue
            try:
                done = await make_partial_end(self._context, session, turn)
                await self._context.sessions.append(session, done, extra=[make_wakeup_put(key)])
            except Conflict:
                continue
            if lane := self._workers.worker(key):
                lane.stop()  # the lane had just claimed the turn, and would run it until its next record
            return "waiting"
        if any(message.has_audio for _, message in await read_pending(self._context.engine, session)):
            await self._context.engine.publish(subjects.control_subject_of(key), key.encode())
            return "running"
        return "nothing"

    async def queue_position(self, key: str) -> QueuePosition:
        """Return the place in line of a message that would come now."""
        session = await self._context.sessions.open(key)
        waiting = await self._context.engine.read(subjects.session_subject_of("in", key), session.upto, PAGE)
        is_running = bool(session.turn and session.turn.by)
        return QueuePosition(is_running, session.is_waiting, len(waiting), self.waiting)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled or drained. Any node may continue the turns that still run at the end."""
        consumer = await open_turns_consumer(self._context.engine, self._context.settings.ack_wait)
        lease = await take_lease(self._context)
        self._workers, self._ended = self._make_workers(), anyio.Event()
        self._context.marks.open()
        where = subjects.node_subject_of(self._context.node)
        end_answers = await self._context.engine.serve(where, partial(answer_peer, self._workers))
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._stay_alive, lease)
                heard = await self._context.engine.tail(subjects.CONTROL_SUBJECTS)
                self._tasks.start_soon(self._obey_control, heard)
                backlog = await self._context.engine.depth(CONSUMER)
                self._tasks.start_soon(self._workers.serve, consumer, self._tasks, backlog)
                self._tasks.start_soon(_tell_backlog, self._workers, self._context)
                task_status.started()
                await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await end_answers()
            self._context.marks.close()
            self._tasks = None
            self._ended.set()

    async def drain(self, limit: float) -> bool:
        """Start no new turn, let running turns end, and stop `run`; return False if a turn exceeds `limit` seconds.

        The turns that exceed the limit are back in the journal when this function returns.
        """
        with anyio.move_on_after(limit) as timer:
            await self._workers.close()
        if self._tasks:
            self._tasks.cancel_scope.cancel()
            await self._ended.wait()
        return not timer.cancelled_caught

    def _make_workers(self) -> KeyedWorkers[Lane]:
        look_at = partial(_look_at, self._context.settings.ports.interrupts)
        workers = KeyedWorkers(_session_key, lambda key: Lane(key, self._context), look_at, _find_person)
        workers.too_new = self.too_new
        return workers

    async def _obey_control(self, asked: Tail) -> None:
        """Stop turns on request of processes that do not know which node runs them."""
        async for record in asked:
            if lane := self._workers.worker(record.data.decode()):
                lane.stop()

    async def _stay_alive(self, lease: Lease | None) -> None:
        """Renew the lease of this node, and the acknowledgement wait of the doorbells that its lanes hold."""
        settings, is_told = self._context.settings, False  # whether the log has a warning about this outage
        while True:
            await anyio.sleep(find_pause(min(settings.lease, settings.ack_wait) / 3))
            try:
                if lease is None or not await lease.renew():
                    lease = await take_lease(self._context)
                    log.warning("the lease of node %s had run out; others may have its turns", self._context.node)
                is_told = False
            except EngineError as error:
                level = logging.DEBUG if is_told else logging.WARNING
                log.log(level, "the lease of node %s cannot be renewed now: %s", self._context.node, error)
                is_told = True
            await self._workers.progress()


async def open_turns_consumer(engine: Engine, ack_wait: float = ACK_WAIT) -> Consumer:
    """Open the consumer of turns. A node that runs no turns uses the consumer to count the waiting work."""
    patterns = (subjects.IN_SUBJECTS, subjects.WAKEUP_SUBJECTS)
    return await engine.consumer(ConsumerSpec(CONSUMER, patterns, ack_wait, MAX_INFLIGHT, only_wakes=True))


async def list_open_sessions(engine: Engine) -> list[str]:
    """List the sessions that have work or wait for an answer, on any node: each of them has a doorbell.

    The sessions that have waited longest come first.
    """
    found, after = dict[str, None](), 0
    while page := await engine.list_owed(CONSUMER, math.inf, after, records.PAGE):
        found |= dict.fromkeys(key for record in page if (key := _session_key(record)))
        after = page[-1].seq
    return [*found]


def _session_key(record: Record) -> str | None:
    kept = records.decode(record.data)
    return kept.session_key if isinstance(kept, records.InboundMessage | records.LaneWakeup) else None


def _look_at(interrupts: InterruptsTurn, lane: Lane, record: Record) -> None:
    """Interrupt the running turn of the lane if the record is a message that interrupts turns."""
    kept = records.decode(record.data)
    if isinstance(kept, records.InboundMessage) and interrupts(kept.message):
        lane.interrupt_by(record.seq, kept.message)


def _find_person(record: Record) -> str:
    """Return the author of a message, or the subject of any other record, as the group in the backlog."""
    kept = records.decode(record.data)
    if isinstance(kept, records.InboundMessage):
        return kept.message.sender
    return record.subject


async def _tell_backlog(workers: KeyedWorkers[Lane], context: LaneContext) -> None:
    """Send each person in the backlog from before the start their place in the queue, with pauses."""
    await anyio.sleep(context.settings.patience)
    before = workers.list_waiting()
    for place, lane in enumerate(before, start=1):
        if not lane.is_begun and (record := lane.wakeup.record):
            kept = records.decode(record.data)
            if isinstance(kept, records.InboundMessage):
                ahead = place - (len(before) - workers.waiting) + context.slots.waiting
                await lane.say_busy(kept.message, record.seq, max(ahead, 1))
                await anyio.sleep(TELL_PAUSE)


async def answer_peer(workers: KeyedWorkers[Lane], data: bytes) -> bytes:
    """Answer a request of another node about a turn; the answer is False if this node does not run the turn."""
    asked = msgspec.json.decode(data, type=LaneRequest)
    lane = workers.worker(asked.session_key)
    is_here = lane is not None and (lane.stop() if asked.wish == "stop" else await lane.look_for_messages())
    return msgspec.json.encode(is_here)


async def take_lease(context: LaneContext) -> Lease | None:
    """Take the lease that shows that this node is alive; None while another process holds the lease of this name."""
    return await context.engine.lease(lease_key_of(context.node), context.node, context.settings.lease)


def make_inbound_put(message: Message, key: str, bot: str, now: float) -> NewRecord:
    """Make the record of a message, with the network's id; the record does not expire before its answer."""
    inbound = records.InboundMessage(session_key=key, message=message, at=now)
    return NewRecord(subjects.session_subject_of("in", key), records.encode(inbound), message_id_of(message, bot))


def make_wakeup_put(key: str, msg_id: str | None = None) -> NewRecord:
    """Make the record that wakes a session's lane."""
    wakeup = records.encode(records.LaneWakeup(session_key=key))
    return NewRecord(subjects.session_subject_of("bell", key), wakeup, msg_id)


def message_id_of(message: Message, bot: str = "") -> str:
    """Return the id of a message's record, so that the message counts once if its network delivers it again."""
    at = message.address
    return f"in:{at.platform}:{bot}:{at.chat_id}:{message.id}"
