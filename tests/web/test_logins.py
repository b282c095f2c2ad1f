"""Links that last a minute, logins that last a month after their last use, and a feed that is bounded."""

import json
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from gateway.records import records, subjects
from gateway.web.event_stream import MAX_BYTES, MAX_EVENTS, EventStream, LiveEvent, cut_field
from gateway.web.logins import (
    LINK_SECONDS,
    LOGIN_SECONDS,
    MOST_LINKS,
    MOST_LOGINS,
    MOST_OF_ONE,
    Logins,
)
from gateway.web.program_keys import mark_of
from tests.engine.memory_engine import MemoryEngine

DAY = 86400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_link_lasts_a_minute_and_a_login_a_month_after_its_last_use() -> None:
    engine, clock = MemoryEngine(), Clock()
    logins = Logins(engine, clock)
    await logins.last.load()
    late = await logins.open_link()
    clock.now += LINK_SECONDS + 1
    assert await logins.redeem(late) == ""
    secret = await logins.redeem(await logins.open_link())
    for _ in range(3):
        clock.now += LOGIN_SECONDS - DAY
        assert await logins.find(secret)
    again = Logins(engine, clock)
    await again.last.load()
    assert await again.find(secret)
    clock.now += LOGIN_SECONDS + 1
    assert await again.find(secret) is None
    _, kept = await records.read_last(engine, subjects.LOGIN_SUBJECT, records.LoginState)
    assert secret not in str(kept)


async def test_a_login_has_the_role_of_its_link_and_the_owner_s_where_none_is_said() -> None:
    logins = Logins(MemoryEngine())
    await logins.last.load()
    secrets = [await logins.redeem(await logins.open_link()), await logins.redeem(await logins.open_link("operator"))]
    found = [await logins.find(secret) for secret in secrets]
    assert [login.role for login in found if login] == ["owner", "operator"]


async def test_a_clock_that_was_set_back_makes_no_link_good_for_longer() -> None:
    clock = Clock()
    logins = Logins(MemoryEngine(), clock)
    code = await logins.open_link()
    clock.now -= 3600
    assert await logins.redeem(code) == ""


async def test_links_and_logins_are_few() -> None:
    logins = Logins(MemoryEngine())
    await logins.last.load()
    codes = [await logins.open_link() for _ in range(MOST_LINKS + 1)]
    assert [await logins.redeem(codes[0]), await logins.redeem(codes[0])] == ["", ""]
    secrets = [await logins.redeem(code) for code in codes[1:]]
    for _ in range(MOST_OF_ONE):
        await logins.redeem(await logins.open_link())
    assert len(logins.logins) == MOST_OF_ONE
    assert await logins.find(secrets[0]) is None, "the oldest goes first"


async def test_whoever_comes_again_and_again_ends_nobody_else_s_login_or_link() -> None:
    engine = MemoryEngine()
    logins = Logins(engine)
    await logins.last.load()
    owner, link = await logins.redeem(await logins.open_link()), await logins.open_link()
    for _ in range(MOST_OF_ONE + 1):
        await logins.redeem(await logins.open_link("operator", "telegram:7"))
    for _ in range(MOST_LINKS + 1):
        await logins.open_link("operator", "telegram:7")
    assert await logins.find(owner)
    assert await logins.redeem(link)
    crowd = [records.Login(f"{number}", "user", 1.0, 9e12, f"net:{number % 20}") for number in range(MOST_LOGINS)]
    few = [records.Login("few", "user", 1.0, 9e12, "net:few")]
    state = records.LoginState(logins=(*few, *crowd))
    await records.replace_last(engine, subjects.LOGIN_SUBJECT, state, logins.last._seq)
    await logins.last.load()
    assert await logins.redeem(await logins.open_link())
    assert len(logins.logins) == MOST_LOGINS
    assert "few" in {one.mark for one in logins.logins}, "whoever has most of them gives way"


async def test_whom_a_proxy_names_has_come_once_in_the_time_of_a_login() -> None:
    engine, clock = MemoryEngine(), Clock()
    logins = Logins(engine, clock)
    await logins.last.load()
    assert [await logins.note_named(one, "user") for one in ("ann", "ann", "ben")] == [True, False, True]
    assert await logins.end() == 0, "there is no login of theirs"
    assert await logins.note_named("ann", "user")
    again = Logins(engine, clock)
    await again.last.load()
    for _ in range(3):
        clock.now += LOGIN_SECONDS - DAY
        assert not await again.note_named("ann", "user")
    clock.now += LOGIN_SECONDS + 1
    assert await again.note_named("ann", "user")


@pytest.mark.row("T8")
async def test_a_login_of_before_whose_secret_was_a_cookie_is_none() -> None:
    engine = MemoryEngine()
    kept = records.LoginState(logins=(records.Login(mark_of("cookie"), "owner", 1.0, 9e12, "owner"),))
    await records.replace_last(engine, subjects.LOGIN_SUBJECT, kept, 0)
    logins = Logins(engine)
    await logins.last.load()
    for given in ("cookie", "", "login cookie", "ä\ud800"):
        assert await logins.find(given) is None


async def tell(feed: EventStream, count: int, text: str = "x") -> None:
    for _ in range(count):
        await feed._note("event", {"event": "agent:end", "fields": {"text": text}})


async def silence(_notify: Any) -> None:
    await anyio.sleep_forever()


def keep(told: Any) -> Any:
    return told


async def read(feed: EventStream, seen: str, count: int) -> list[LiveEvent]:
    found: list[LiveEvent] = []
    async with aclosing(feed.follow(seen)) as events:
        async for told in events:
            found += told
            if len(found) >= count:
                break
    return found[:count]


def kind_of(event: LiveEvent) -> str:
    return event.whole.decode().partition("event: ")[2].partition("\n")[0]


def fields_of(event: LiveEvent) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(event.whole.partition(b"data: ")[2])
    return dict(told["fields"])


async def test_whoever_comes_back_too_late_is_told_of_the_gap() -> None:
    feed = EventStream(silence, keep, keep)
    await tell(feed, MAX_EVENTS + 10)
    kept = await read(feed, f"{feed.run_id}-10", 2)
    assert [(one.number, kind_of(one)) for one in kept] == [(11, "event"), (12, "event")]
    (gap,) = await read(feed, f"{feed.run_id}-9", 1)
    assert kind_of(gap) == "gap"


async def test_the_feed_holds_so_many_bytes_and_no_long_text() -> None:
    feed = EventStream(silence, keep, keep)
    await tell(feed, 1000, "x" * 1_000_000)
    await feed._note("event", {"event": "agent:end", "fields": {f"field{n}": "y" * 500 for n in range(2000)}})
    for _ in range(8):
        await feed._note("event", {"event": "agent:end", "fields": {f"field{n}": "y" * 500 for n in range(2000)}})
    assert sum(len(one.whole) for one in feed._events) <= MAX_BYTES
    assert len(fields_of(feed._events[0])["field1"]) == 500


def test_fields_are_cut_to_what_is_looked_at() -> None:
    assert cut_field("x" * 501) == "x" * 500 + "…"
    assert cut_field({"a": [1]}) == {"a": [1]}
    assert str(cut_field({"a": ["x" * 600]})).startswith('{"a":["xxx')
    assert cut_field("\ud800") == "\ud800"


async def test_each_piece_of_an_answer_is_not_told() -> None:
    feed = EventStream(silence, keep, keep)
    await feed._note("event", {"event": "llm:chunk", "fields": {}})
    await feed._note("event", {"event": "odd", "fields": {"text": "\ud800"}})
    (told,) = await read(feed, f"{feed.run_id}-0", 1)
    assert (told.number, fields_of(told)) == (1, {"text": r"\ud800"})
