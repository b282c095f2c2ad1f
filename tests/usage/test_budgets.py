"""Budgets: who has which, what is warned of, what is stopped, and what hooks decide of it."""

import time
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from gateway.agent.toolbox.chat import make_chat_tools
from gateway.config.settings import Settings
from gateway.dispatcher.context import GatewayFacts, PlatformInfo
from gateway.events import Deny, Event
from gateway.hooks import HookRegistry
from gateway.messages.message import Address
from gateway.messages.transcript import Usage
from gateway.records.records import UsageRow
from gateway.testing import GatewayProcess
from gateway.usage.call_usage import BudgetPort, CallUsage
from gateway.usage.totals import MOST_LISTED, RunningTotals
from gateway.usage.turn_usage import TurnUsage, UsageOrigin
from tests.dispatcher.room import Chat, chat

TALK = {"user": "talk", "text": "yes", "usage": {"input_tokens": 60, "output_tokens": 40}}
WORK = {
    "user": "work",
    "answers": [
        {"text": "I look first.", "tool_calls": [{"name": "scheduled"}], "usage": {"input_tokens": 100}},
        {"text": "never said"},
    ],
}


def budgets(**settings: Any) -> Settings:
    return msgspec.convert({"budgets": settings, "access": {"groups": settings.pop("people_of", {})}}, Settings)


def tokens(count: int) -> dict[str, Any]:
    return {"day": {"tokens": count}}


def limit(room: Chat, **settings: Any) -> None:
    room.house.usage.totals.apply_settings(budgets(**settings))


def calls_of(room: Chat) -> int:
    model: Any = room.house.agents.choose(None, None).model  # type: ignore[arg-type]
    return len(model.requests)


async def test_a_person_is_warned_once_then_stopped_and_others_go_on():
    async with chat(TALK) as room:
        limit(room, each_person=tokens(120))
        await room.write("talk")
        said = {await room.hear(1), await room.hear(2)}
        assert "yes" in said
        assert "100 tokens of 120 tokens that may be used today are used already" in (said - {"yes"}).pop()
        await room.write("talk")
        assert await room.hear(3) == "yes"  # under the limit when it began
        for number in (4, 5):
            await room.write("talk")
            assert "200 tokens of 120 tokens" in await room.hear(number)
        assert calls_of(room) == 2
        await room.write("talk", user="8", address=Address("net", "other"))
        said = {await room.hear(6), await room.hear(7)}
        assert "yes" in said
        (warned,) = [one for one in await room.told("budget:warning") if one["person"] == "net:7"]
        assert (warned["budget"], warned["unit"], warned["limit"]) == ("each_person net:7", "tokens", 120)


async def test_a_turn_ends_with_what_it_has():
    async with chat(WORK, tools=make_chat_tools()) as room:
        limit(room, each_person=tokens(100))
        await room.write("work")
        said = {await room.hear(1), await room.hear(2), await room.hear(3)}
        assert "I look first." in said
        assert len([one for one in said if "I stopped here: 100 tokens of 100 tokens" in one]) == 1
        assert calls_of(room) == 1
        (ended,) = await room.when("agent:end")
        assert (ended["stop"], ended["completed"]) == ("budget", True)


@pytest.mark.parametrize(
    "more",
    [
        {"address": Address("net", "crowd", "group")},
        {"address": Address("net", "elsewhere", thread_id="9")},
        {"reply_to": "1"},
        {"kind": "edit"},
        {"session": "agent:main:net:dm:mine"},
    ],
    ids=["group", "thread", "reply", "edit", "session"],
)
async def test_whoever_is_over_their_budget_is_so_wherever_they_write(more: dict[str, Any]):
    async with chat(TALK) as room:
        limit(room, each_person=tokens(10))
        await room.write("talk")
        await room.hear(2)
        await room.write("/new")
        await room.hear(3)
        await room.write("talk", **more)
        assert "I stopped here" in await room.hear(4)
        assert calls_of(room) == 1


async def test_what_a_hook_does_for_a_person_is_charged_to_them():
    async with chat(TALK) as room:
        limit(room, people={"net:7": tokens(10)})
        for _ in range(2):
            key, place = "agent:main:internal:dm:x", Address("internal", "x")
            more = {"kind": "internal", "session": key, "role": "user", "person": "net:7", "address": place}
            await room.write("talk", "hook:helper", **more)
            await room.when("agent:end")
        rows = [row async for day in room.house.usage.read_days() for row in day.rows]
        assert [(row.person, row.hook, row.usage.calls) for row in rows] == [("net:7", "helper", 1)]
        assert calls_of(room) == 1


@pytest.mark.process
def test_the_terminal_is_warned_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(TALK, TALK, settings="budgets: {each_person: {day: {tokens: 110}}}\n")
        gateway.start()
        said = gateway.cli("chat", "-m", "talk")
        assert said.stdout == "yes\n"
        assert "100 tokens of 110 tokens that may be used today are used already" in said.stderr
        assert gateway.cli("chat", "-m", "talk").stderr == ""


async def test_owners_are_warned_and_not_stopped():
    async with chat(TALK) as room:
        await room.house.access.pairings.keep_owners({"net": "7"})
        limit(room, each_person=tokens(10))
        await room.write("talk")
        said = {await room.hear(1), await room.hear(2)}
        assert any("it goes on beyond the limit" in one for one in said)
        await room.write("talk")
        assert await room.hear(3) == "yes"


async def test_of_everybodys_budget_admins_are_told():
    about = GatewayFacts(networks=(PlatformInfo("net", served=True),))
    async with chat(TALK, about=lambda: about) as room:
        limit(room, all=tokens(10))
        await room.write("talk", user="8")
        await room.hear(2)
        (told,) = [one for one in room.net.sent if "Everybody together" in one.text]
        assert told.address == Address("net", "1")  # the admin's own chat
        await room.write("talk", user="7")
        assert "I stopped here" in await room.hear(3)


async def test_a_hook_lets_somebody_go_on_or_refuses_in_its_own_words():
    async with chat(TALK) as room:
        limit(room, each_person=tokens(10))
        await room.write("talk")
        await room.hear(2)

        @room.hooks.on("budget:exceeded")
        def decide(event: Event) -> Deny | None:
            if event["used"] > 150:
                return Deny("Ask your boss.")
            event["allowed"] = True
            return None

        await room.write("talk")
        assert await room.hear(3) == "yes"
        await room.write("talk")
        assert await room.hear(4) == "Ask your boss."
        assert calls_of(room) == 2


async def test_the_people_of_a_group_have_one_budget_and_a_limit_lowered_live_counts_at_once():
    async with chat(TALK) as room:
        people = {"staff": {"people": ["net:7", "net:8"]}}
        limit(room, groups={"staff": tokens(1000)}, people_of=people)
        await room.write("talk", user="7")
        assert await room.hear(1) == "yes"
        limit(room, groups={"staff": tokens(50)}, people_of=people)
        await room.write("talk", user="8", address=Address("net", "other"))
        assert "100 tokens of 50 tokens" in await room.hear(2)


async def test_a_key_has_one_budget_for_whomever_its_program_calls():
    """A program names its users as it likes, so what each of them has bounds nothing."""
    totals = RunningTotals(time.time, budgets(each_person=tokens(600), keys={"app": tokens(200)}))
    hooks, made = HookRegistry().scope({}), []
    for user in ("api:app:ann", "api:app:bob", "api:app:*", "api:app", "api:other:ann", "net:app"):
        calls = CallUsage(totals, TurnUsage(UsageOrigin(user)), BudgetPort("user", hooks.run, hooks.emit))
        if not await calls.ask("m", 100):
            made.append(user)
            calls.count(Usage(100, calls=1, model="m"), "m", 100)
    assert made == ["api:app:ann", "api:app:bob", "api:other:ann", "net:app"]
    states = {(one.budget, one.used) for one in totals.list_budgets()}
    assert {("keys app", 200), ("each_person api:app:ann", 100), ("each_person net:app", 100)} <= states
    assert {one.budget for one in totals.list_budgets("api:app:ann")} == {"each_person api:app:ann", "keys app"}
    assert totals.get_held() == (0, 0)


def test_of_ten_thousand_people_those_are_listed_who_used_most():
    named = {"net:9999": {"day": {"tokens": 10}}}
    totals = RunningTotals(time.time, budgets(each_person={"day": {"tokens": 9000, "money": 9}}, people=named))
    day, _ = totals.windows()
    for number in range(10_000):
        cost = 5.0 if number == 3 else 0.0
        totals.add(day, UsageRow(f"net:{number}", Usage(number, calls=1, model="m", cost=cost)))
    listed = [one for one in totals.list_budgets() if one.budget.startswith("each_person")]
    assert MOST_LISTED * 2 <= len(listed) <= MOST_LISTED * 4
    most = totals.list_budgets(most=1)
    assert {(one.budget, one.unit, one.used) for one in most if one.used} == {
        ("people net:9999", "tokens", 9999),
        ("each_person net:9998", "tokens", 9998),
        ("each_person net:3", "tokens", 3),
        ("each_person net:3", "money", 5.0),
    }
    assert {one.budget for one in totals.list_budgets("net:77")} == {"each_person net:77"}


async def test_whoever_is_forgotten_while_they_call_leaves_nothing_held_of_the_key():
    totals = RunningTotals(time.time, budgets(keys={"app": tokens(250)}))
    totals.hold("api:app:ann", 100, 0.5)
    totals.rename(["api:app:ann"], "forgotten:1")
    assert [totals.get_held((one,)).tokens for one in ("", "forgotten:1", "api:app:ann", "keys app")] == [
        100,
        100,
        0,
        0,
    ]
    totals.hold("forgotten:1", -100, -0.5)
    assert totals.get_held() == (0, 0)


async def test_ten_calls_at_once_near_the_limit_run_over_it_by_what_they_write_and_no_more():
    """Each would read 100 tokens and write 10; six of them fit into 600."""
    totals = RunningTotals(time.time, budgets(each_person=tokens(600)))
    hooks, made = HookRegistry().scope({}), []

    async def call() -> None:
        turn = TurnUsage(UsageOrigin("net:ann"))
        calls = CallUsage(totals, turn, BudgetPort("user", hooks.run, hooks.emit))
        if await calls.ask("m", 100):
            return
        made.append(1)
        await anyio.sleep(0.01)
        calls.count(Usage(100, 10, calls=1, model="m"), "m", 100)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(call)
    assert len(made) == 6
    assert totals.get(totals.windows()[0]).tokens == 660
    assert totals.get_held() == (0, 0)


async def test_a_call_waits_for_what_others_only_hold_and_goes_on_with_what_they_leave():
    """Each is estimated at 800 of 1,000 tokens, and takes 10."""
    totals = RunningTotals(time.time, budgets(each_person=tokens(1000)))
    hooks, refused, running = HookRegistry().scope({}), [], []

    async def call() -> None:
        calls = CallUsage(totals, TurnUsage(UsageOrigin("net:ann")), BudgetPort("user", hooks.run, hooks.emit))
        refused.append(await calls.ask("m", 800))
        running.append(1)
        assert totals.get_held().tokens < 2000
        await anyio.lowlevel.checkpoint()
        calls.count(Usage(10, 0, calls=1, model="m"), "m", 800)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call)
    assert refused == [""] * 20
    assert totals.get(totals.windows()[0]).tokens == 200
    assert totals.get_held() == (0, 0)


async def test_what_is_held_is_said_apart_from_what_is_used():
    totals = RunningTotals(time.time, budgets(each_person=tokens(300)))
    totals.hold("net:ann", 781, 0)
    (state,) = totals.list_budgets("net:ann", held=True)
    assert (state.used, state.held, state.is_exceeded, state.is_used_up) == (0, 781, True, False)
    assert (state.describe(), state.describe_held()) == ("0 tokens of 300 tokens that may be used today", "781 tokens")


async def test_money_counts_what_has_a_price():
    totals = RunningTotals(time.time, budgets(all={"month": {"money": 1.0}}))
    hooks, turn = HookRegistry().scope({}), TurnUsage(UsageOrigin("net:ann"))
    calls = CallUsage(totals, turn, BudgetPort("user", hooks.run, hooks.emit))
    calls.count(Usage(10**9, 0, calls=1, unpriced=1, model="m"), "m", 0)
    assert await calls.ask("m", 5) == ""
    calls.count(Usage(10, 0, calls=1, cost=1.5, model="n"), "n", 5)
    assert "1.50 of 1.00 that may be used this month" in await calls.ask("m", 5)
