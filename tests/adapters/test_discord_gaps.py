"""Messages that Discord does not deliver: it is ill, servers are away, lines break too early, or for long."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.adapters.discord.adapter import DiscordAdapter, DiscordTimings
from gateway.adapters.discord.history import MOST
from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.read_positions import ReadMark, ReadMarks
from gateway.daemon.platforms import steer_platform
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, GROUP
from tests.adapters.discord_facts import BOT, CHANNEL, GUILD, dm_of, guild
from tests.adapters.discord_rest import Refused
from tests.adapters.discord_wire import TOKEN, DiscordWire
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until


@pytest.fixture
async def wire() -> AsyncIterator[DiscordWire]:
    wire = DiscordWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def home(wire: DiscordWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as home:
        yield home


@asynccontextmanager
async def served_at_first(wire: DiscordWire, tmp_path: Path) -> AsyncIterator[House]:
    """A gateway that Discord has never known; inside, its first line begins, is paused by the test, and goes on.

    What somebody writes in between is answered.
    """
    wire.token = "none"
    first = TelegramWire()
    async with first.serving(), housed(first, tmp_path / "home", beside=[wire]) as home:
        platforms = home.gateway.platforms
        part = next(one for one in platforms if one.name == "discord")
        wire.token = TOKEN
        yield home
        steer_platform(platforms, "restart", "discord")
        await until(lambda: wire.identified and part.part.facts.state == "paused", "the pause")
        wire.on_identify = lambda: None
        await wire.write("what is it?")
        steer_platform(platforms, "resume", "discord")
        await until(lambda: any("It is 42." in one.text for one in wire.shown), "the answer")


async def test_what_is_said_right_after_the_first_connection_is_read_again_if_that_ends(
    wire: DiscordWire, tmp_path: Path
) -> None:
    """Paused at the moment in which it is up for the first time ever."""
    async with served_at_first(wire, tmp_path) as home:

        def pause(_event: str, fields: Any) -> None:
            if fields["platform"] == "discord":
                stop()
                steer_platform(home.gateway.platforms, "pause", "discord")

        stop = home.gateway.registry.watch("platform:up", pause)


async def test_what_is_said_since_the_very_first_line_is_read_also_if_that_ended_before_it_was_ready(
    wire: DiscordWire, tmp_path: Path
) -> None:
    """As where several gateways share a bot, and one leaves it to another as soon as it has it."""
    async with served_at_first(wire, tmp_path) as home:
        wire.on_identify = lambda: steer_platform(home.gateway.platforms, "pause", "discord")


async def test_what_discord_is_too_ill_to_show_again_is_read_once_it_is_well(wire: DiscordWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("and you?")
        await home.shows("I heard you.")
    await wire.write("what is it?")
    await wire.mention("what is this?")
    ill = Refused(503, 0, "ill")
    ill.methods = ("GET",)
    wire.ills += [("messages", ill)] * 2
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.", 2)
        assert not wire.ills


async def test_a_server_that_comes_while_others_are_read_is_read_too(tmp_path: Path) -> None:
    is_held, asked, go_on = False, anyio.Event(), anyio.Event()

    @web.middleware
    async def hold(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_held and request.method == "GET" and request.path.endswith(f"{CHANNEL}/messages"):
            asked.set()
            await go_on.wait()
        return await handler(request)

    wire = DiscordWire(middlewares=[hold])
    async with wire.serving(), housed(wire, tmp_path / "home") as home:
        await wire.mention("and you?")
        await home.shows("I heard you.")
        wire.sessions.clear()
        await wire.mention("and now?")
        elsewhere = str(int(CHANNEL) + 1)
        wire.told(wire.message(ANN, elsewhere, f"<@{BOT['id']}> what is it?", mentions=[BOT]))
        late = wire.channels.pop(elsewhere)
        is_held = True
        wire.hang_up()
        await until(asked.is_set, "what was said in the first server is asked for")
        wire.channels[elsewhere] = late
        other = json.dumps(guild({elsewhere: late})).replace(f'"{GUILD}"', f'"{GUILD}9"')
        wire.event("GUILD_CREATE", {**json.loads(other), "unavailable": False})
        await wire.react(await wire.write("and then?"), "👍")
        await home.hears("reaction:added")
        go_on.set()
        await home.shows("It is 42.")


async def test_what_is_said_to_a_new_line_waits_for_what_was_said_before_it_also_where_an_older_one_had_not_caught_up(
    tmp_path: Path,
) -> None:
    older, newer = anyio.Event(), anyio.Event()
    gates = list[anyio.Event]()

    @web.middleware
    async def hold(request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await handler(request)
        if gates and request.method == "GET" and request.path.endswith(f"{dm_of(ANN)}/messages"):
            await gates.pop(0).wait()
        return answer

    wire = DiscordWire(middlewares=[hold])
    async with wire.serving(), housed(wire, tmp_path / "home") as home:
        await wire.write("and you?")
        await home.shows("I heard you.")
        gates += older, newer

        def is_left(count: int) -> bool:
            return len(gates) == count

        for left in (1, 0):
            wire.sessions.clear()
            wire.hang_up()
            if not left:
                await wire.write("what is it?")
            await until(partial(is_left, left), "another line")
        older.set()
        await wire.write("and now?")
        await anyio.sleep(0.3)  # in which it could be taken too early
        newer.set()
        received = await home.hears("message:received", 3)
        assert [one["text"] for one in received] == ["and you?", "what is it?", "and now?"]


async def test_of_a_server_that_was_away_only_that_time_is_read_again(home: House, wire: DiscordWire) -> None:
    """What was said since the line was made may be more than is read."""
    for number in range(MOST):
        await wire.write(f"chatter {number}", chat=GROUP)
    await wire.mention("and you?")
    await home.shows("I heard you.")
    session = wire.sessions.copy()
    wire.event("GUILD_DELETE", {"id": GUILD, "unavailable": True})
    wire.sessions.clear()
    await wire.mention("what is it?")
    wire.sessions = session
    wire.event("GUILD_CREATE", guild(wire.channels, BOT) | {"unavailable": False})
    await home.shows("It is 42.")


async def test_what_is_said_while_the_line_is_broken_does_not_count_as_read_though_discord_answers(
    tmp_path: Path,
) -> None:
    asked: list[str] | None = None

    @web.middleware
    async def hold(request: web.Request, handler: Handler) -> web.StreamResponse:
        if asked is not None and request.path == "/gateway":
            asked.append(request.path)
            await anyio.sleep_forever()
        return await handler(request)

    wire = DiscordWire(middlewares=[hold], heartbeat=20)
    async with wire.serving(), housed(wire, tmp_path / "home") as home:
        gateway = home.gateway
        marks = ReadMarks(gateway.engine, "discord", str(BOT["id"]))
        platforms: Any = gateway.settings.platforms
        quick = DiscordTimings(look=0.02, alive=0.02)
        adapter = DiscordAdapter(platforms.discord, gateway.groups.networks.adapter_context, quick)
        presence = Presence("other", gateway.registry, list[str]().append)

        async def read_alive() -> float:
            await marks.load()
            return marks.since().alive

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(adapter.serve, presence)
            await until(lambda: presence.facts.up, "the line")
            begun = await read_alive()

            async def has_moved() -> bool:
                return await read_alive() > begun

            await until(has_moved, "what was said counts as read")
            asked = []
            wire.hang_up()
            await until(lambda: len(asked) == 2, "both lines are made anew")
            await marks.move(ReadMark("other", 1))  # behind what is being written
            begun = await read_alive()
            for _ in range(10):
                assert presence.probe
                await presence.probe()
                presence.answered()
                await anyio.sleep(0.02)
            assert not await has_moved()
            tasks.cancel_scope.cancel()
