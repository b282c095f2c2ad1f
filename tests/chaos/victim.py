"""A small gateway that is made to be killed: one network, many conversations, turns with steps and tools, one journal.

    python -m tests.chaos.victim FOLDER MESSAGES CONVERSATIONS

The network stands in files beside the journal, which outlive the process as a real one would: what was shown is in
`shown`, what tools did in `effects`. It reads its messages from a cursor, as a polling network does. It ends by itself
when every message is answered and every reply is shown.
"""

import os
import random
import sys
import time
from pathlib import Path

import anyio

from gateway.engine.interface import Engine, NewRecord
from gateway.engine.sqlite.engine import open_sqlite
from gateway.lanes.lanes import Lanes
from gateway.lanes.turn import LaneResult, LaneTurn
from gateway.messages.message import Address, Message, Reply
from gateway.messages.transcript import Entry, ToolCall
from gateway.outbox.interface import LiveTransport, OutboxSettings
from gateway.outbox.outbox import Outbox
from gateway.records import records
from gateway.sessions.repository import SessionRepository
from tests.audit import audit
from tests.spine import lane_settings

CURSOR = "gw.cur.net.bot"
SIZE = 12


def note(path: Path, *words: str) -> None:
    """One line, by one write: a kill leaves it whole or leaves it out."""
    with path.open("ab", buffering=0) as file:
        file.write((" ".join(words) + "\n").encode())


class Net(LiveTransport):
    """The sending end of the network."""

    platform = "net"
    doubt = "resend"

    def __init__(self, shown: Path) -> None:
        self._shown = shown

    def parts(self, reply: Reply) -> int:
        return -(-len(reply.text) // SIZE)

    def texts(self, reply: Reply) -> int:
        return self.parts(reply)

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        await anyio.sleep(random.uniform(0, 0.002))
        note(self._shown, reply.address.chat_id, reply.id, str(part), nonce)
        await anyio.sleep(random.uniform(0, 0.002))
        return (nonce,)


class Mind:
    """Answers in steps: a model that calls a tool, the tool, the model again. Some ask a person first."""

    def __init__(self, effects: Path) -> None:
        self._effects = effects

    async def __call__(self, turn: LaneTurn) -> LaneResult:
        text = turn.messages[0].text
        if text.endswith("7") and "sure" not in turn.open.answers:
            return LaneResult(questions={"sure": "sure?"})
        await anyio.sleep(random.uniform(0, 0.01))
        hops = [step for step in turn.open.steps if isinstance(step, records.LlmStep)]
        call = ToolCall(f"{turn.turn_id}:c", "pay")
        if not hops:
            thought = Entry("assistant", "", (call,))
            await turn.record(records.LlmStep(turn_id=turn.turn_id, hop=0, entry=thought))
        result = await self._pay(turn, call)
        await anyio.sleep(random.uniform(0, 0.005))
        answer = f"{text} {result} " + "." * (hash(turn.turn_id) % 20)
        entries = (Entry("user", text), Entry("assistant", answer))
        reply = Reply(f"{turn.turn_id}:reply", turn.messages[0].address, answer)
        return LaneResult(entries=entries, replies=(reply,))

    async def _pay(self, turn: LaneTurn, call: ToolCall) -> str:
        """Not repeatable: begun without an end, it is not begun again."""
        kinds = [type(step) for step in turn.open.steps]
        if records.ToolFinished in kinds:
            return "paid before"
        if records.ToolStarted in kinds:
            return "outcome unknown"
        await turn.record(records.ToolStarted(turn_id=turn.turn_id, call_id=call.id, name="pay", args={}))
        note(self._effects, turn.turn_id)
        await anyio.sleep(random.uniform(0, 0.005))
        done = Entry("tool", "paid", call_id=call.id, name="pay")
        await turn.record(records.ToolFinished(turn_id=turn.turn_id, call_id=call.id, entry=done))
        return "paid"


async def poll(engine: Engine, lanes: Lanes, messages: int, conversations: int) -> None:
    """Append messages and their cursor at once; after a restart the network is read from the cursor on."""
    while True:
        last = await engine.last(CURSOR)
        read = records.decode(last.data) if last else None
        done = read.value["done"] if isinstance(read, records.CursorRecord) else 0
        if done >= messages:
            return
        batch = range(done, min(done + random.randint(1, 20), messages))
        arrived = [say(number, conversations) for number in batch]
        moved = records.CursorRecord(platform="net", value={"done": batch[-1] + 1})
        cursor = NewRecord(CURSOR, records.encode(moved), expect=last.seq if last else 0)
        await lanes.accept_all(arrived, cursor, bot="bot")
        await anyio.sleep(random.uniform(0, 0.01))


def say(number: int, conversations: int) -> tuple[Message, str]:
    chat = f"c{number % conversations}"
    said = Message(str(number), Address("net", chat), f"u{chat}", f"m{number}")
    return said, f"agent:main:net:dm:{chat}"


async def answer_questions(lanes: Lanes, sessions: SessionRepository, conversations: int) -> None:
    while True:
        await anyio.sleep(0.02)
        for number in range(conversations):
            key = f"agent:main:net:dm:c{number}"
            session = await sessions.open(key)
            if session.is_waiting:
                await lanes.answer(key, "sure", True)


async def live(folder: Path, messages: int, conversations: int) -> None:
    async with await open_sqlite(folder / "journal.db") as engine:
        sessions = SessionRepository(engine, summary_every=20)
        lanes = Lanes(engine, sessions, Mind(folder / "effects"), lane_settings(lease=1.0, folded=1))
        outbox = Outbox(engine, OutboxSettings())
        async with anyio.create_task_group() as tasks:
            await tasks.start(outbox.serve_platform, Net(folder / "shown"))
            await tasks.start(lanes.run)
            tasks.start_soon(answer_questions, lanes, sessions, conversations)
            note(folder / "starts", str(os.getpid()), str(time.time()))
            await poll(engine, lanes, messages, conversations)
            while (found := await audit(engine, is_sent=True)).faults:  # noqa: ASYNC110 - judged as a whole
                await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        note(folder / "over", f"{found.turns} turns, {found.retries} tried again")


if __name__ == "__main__":
    anyio.run(live, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
