"""Pending events of durable hooks are where the manual says: with their cause, or in a batch of their own."""

import re
import time
from functools import partial
from pathlib import Path

import anyio

from gateway.daemon.parts import Part
from gateway.engine.interface import Engine
from gateway.engine.sqlite.engine import open_sqlite
from gateway.events.catalogue import EVENT_SPECS
from gateway.messages.message import Address, Reply
from gateway.outbox.interface import JournalTransport
from gateway.records import records
from gateway.testing.live_gateway import LiveGateway, gateway_in
from tests.spine import until

MANUAL = Path(__file__).parents[2] / "docs" / "contributing" / "event-records.md"
NOTHING = "def handle(event_type, context): pass\n"
FACTS = (
    *(records.Claim, records.LlmStep, records.ToolStarted, records.ToolFinished, records.TurnEnded),
    *(records.OwedReply, records.SendSucceeded),
)


def hook(events: str, key: str = "events") -> dict[str, str]:
    return {"HOOK.yaml": f"{key}: {events}\ndelivery: durable\n", "handler.py": NOTHING}


async def read_story(engine: Engine) -> list[str]:
    """Return the journal's records of messages, turns, deliveries and conversations' events, in order."""
    story = []
    for record in await engine.read("gw.>", 0, 1000):
        kept = records.decode(record.data)
        if isinstance(kept, records.EmittedEvent) and record.subject.startswith("gw.owed."):
            story.append(kept.name)
        elif isinstance(kept, FACTS):
            story.append(type(kept).__name__)
    return story


async def settled(live: LiveGateway, last: str) -> list[str]:
    story: list[str] = []

    async def is_there() -> bool:
        story[:] = await read_story(live.gateway.engine)
        return story[-1:] == [last]

    await until(is_there, f"the record of {last}")
    return story


TURNS = {"user": "x", "answers": [{"tool_calls": [{"name": "read_file", "args": {"path": "a"}}]}, {"text": "done"}]}
NAMED = "[session:start, 'message:*', agent:start, agent:end, 'llm:before', 'llm:after', 'tool:*']"


async def test_each_event_of_a_turn_follows_the_fact_that_it_tells(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home", TURNS, hooks={"keeps": hook(NAMED)}) as live:
        await live.say("x")
        story = await settled(live, "message:sent")
    assert story == [
        *("Claim", "session:start", "message:received"),
        *("LlmStep", "agent:start", "message:add", "llm:before", "llm:after", "message:add"),
        *("ToolStarted", "tool:before"),
        *("ToolFinished", "tool:after"),
        *("TurnEnded", "message:add", "llm:before", "llm:after", "message:add", "agent:end"),
        *("OwedReply", "message:sending", "message:sent"),  # the terminal has it with that, as nobody may change it
    ]


async def test_a_reply_that_a_hook_may_change_is_told_behind_its_own_record(tmp_path: Path) -> None:
    changes = {
        "HOOK.yaml": "intercepts: [message:sending]\n",
        "handler.py": "def handle(event_type, context): return {'text': 'well done'}\n",
    }
    hooks = {"keeps": hook("[message:sending, message:sent]"), "changes": changes}
    async with gateway_in(tmp_path / "home", {"user": "x", "text": "done"}, hooks=hooks) as live:
        await live.say("x")
        story = await settled(live, "SendSucceeded")
        found = [event async for _, event in records.read_events(live.gateway.engine)]
    assert story == ["Claim", "TurnEnded", "OwedReply", "message:sending", "message:sent", "SendSucceeded"]
    assert [event.fields["text"] for event in found] == ["well done", "well done"]


async def test_a_message_that_a_hook_may_change_is_told_as_the_hook_left_it(tmp_path: Path) -> None:
    changes = {
        "HOOK.yaml": "intercepts: [message:received]\n",
        "handler.py": "def handle(event_type, context): return {'text': 'x and more'}\n",
    }
    hooks = {"keeps": hook("[message:received]"), "changes": changes}
    async with gateway_in(tmp_path / "home", {"user": "x", "text": "done"}, hooks=hooks) as live:
        await live.say("x")
        story = await settled(live, "OwedReply")
        found = [event async for _, event in records.read_events(live.gateway.engine)]
    assert story == ["Claim", "TurnEnded", "message:received", "OwedReply"]
    assert [event.fields["text"] for event in found] == ["x and more"]


async def test_what_no_durable_hook_wants_costs_no_record(tmp_path: Path) -> None:
    hooks = {"keeps": hook("[agent:end]\nwhen: {platform: telegram}"), "looks": {"handler.py": NOTHING}}
    hooks["looks"]["HOOK.yaml"] = "events: ['*']\n"
    async with gateway_in(tmp_path / "home", TURNS, hooks=hooks) as live:
        await live.say("x")
        await settled(live, "OwedReply")
        assert [event async for _, event in records.read_events(live.gateway.engine)] == []


async def test_an_event_that_0_1_owed_is_delivered(tmp_path: Path) -> None:
    """It stood on a subject of its own, whoever's it was."""
    async with gateway_in(tmp_path / "home", TURNS, hooks={"keeps": hook("[agent:end]")}) as live:
        old = records.EmittedEvent(name="agent:end", fields={"id": "old", "session_key": "k"})
        await live.gateway.engine.append(records.make_event_put(old, "ev:old"))

        async def is_told() -> bool:
            return (await live.gateway.folder_hooks.info("keeps")).calls == 1

        await until(is_told, "the old event")


class HeldTransport(JournalTransport):
    """A network that has taken a reply, and is long in saying so."""

    def __init__(self) -> None:
        super().__init__("held")
        self.has_begun, self.may_end = anyio.Event(), anyio.Event()

    async def send(self, reply: Reply, _part: int, _nonce: str) -> tuple[str, ...]:
        self.has_begun.set()
        await self.may_end.wait()
        return (reply.id,)


async def test_a_reply_that_arrives_when_all_else_has_ended_is_told(tmp_path: Path) -> None:
    held, hooks = HeldTransport(), {"keeps": hook("[message:sent]")}
    put = records.make_reply_put(
        Reply("r", Address("held", "7"), "Good night."), "agent:main:held:dm:7", "t", time.time()
    )

    async def answer_late(other: Part) -> None:
        await other.wait_until_ended()
        held.may_end.set()

    async with (
        anyio.create_task_group() as tasks,
        gateway_in(tmp_path / "home", TURNS, settings="gateway: {shutdown_timeout: 2s}\n", hooks=hooks) as live,
    ):
        tasks.start_soon(answer_late, next(part for part in live.gateway.groups.run.parts if part.name == "search"))
        part = Part("held", partial(live.gateway.outbox.serve_platform, held))
        live.gateway.groups.run.start(part, live.gateway.groups.base.tasks)
        await live.gateway.engine.append(put)
        await held.has_begun.wait()
    async with await open_sqlite(live.gateway.home.journal) as engine:
        found = [event async for _, event in records.read_events(engine)]
    assert [(event.name, event.fields["chat_id"]) for event in found] == [("message:sent", "7")]


def test_the_manual_says_of_each_event_where_it_stands() -> None:
    table = MANUAL.read_text().partition("| events | are in the journal |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]
    assert sorted(named) == sorted(EVENT_SPECS)
    assert all(where.strip().startswith(("with the turn", "in batches")) for _, where in rows)
