"""Discord's slash commands: what each takes, what is suggested to whom, and menus that are not new any more."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.discord.menu import build_command
from gateway.dispatcher.commands import Command, CommandResult
from gateway.events import Deny
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.discord_facts import CHANNEL, known_as
from tests.adapters.discord_wire import DiscordWire
from tests.spine import until

ADMIN = f"access: {{admins: {{discord: ['{known_as(ANN)}']}}}}\n"


@pytest.fixture
async def wire() -> AsyncIterator[DiscordWire]:
    wire = DiscordWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def home(wire: DiscordWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home", settings=ADMIN) as home:
        yield home


async def suggests(wire: DiscordWire, command: str, typing: str, *names: str, **more: Any) -> None:
    """Wait until just these are suggested; a machine with much to do has nothing in time, now and then."""

    async def is_so() -> bool:
        return await wire.suggestions(command, typing, **more) == [*names]

    await until(is_so, f"{names} for /{command} {typing}")


async def read_menu(wire: DiscordWire) -> dict[str, Any]:
    await until(lambda: bool(wire.asked("PUT", "commands")), "the menu")
    return {one["name"]: one for one in wire.asked("PUT", "commands")[0]["all"]}


async def test_the_menu_is_the_table_of_commands_with_what_each_takes(home: House, wire: DiscordWire) -> None:
    menu = await read_menu(wire)
    assert set(menu) == {one.name for one in home.gateway.groups.turns.context.commands.values() if not one.hidden}
    options = {name: {one["name"]: one for one in about["options"]} for name, about in menu.items()}
    assert options["model"]["model"]["autocomplete"]
    assert (options["undo"]["turns"]["type"], options["undo"]["turns"]["min_value"]) == (4, 1)
    assert [one["type"] for one in options["voice"].values()] == [5, 5]
    assert options["resume"]["session"]["required"]
    assert [one["value"] for one in options["approve"]["for"]["choices"]] == ["session", "always"]
    assert "arguments" not in str(options)


async def test_a_command_of_somebody_else_takes_one_text() -> None:
    async def greet(_call: Any) -> CommandResult:
        return CommandResult()

    (option,) = build_command(Command("greet", "say hello", greet, "NAME"))["options"]
    assert (option["name"], option["type"], option["description"]) == ("arguments", 3, "NAME")
    assert build_command(Command("greet", "say hello", greet))["options"] == []


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("title", {"title": "a fine talk"}, "This session is now called: a fine talk"),
    ("undo", {"turns": 1}, "The last turn is forgotten."),
    ("voice", {"quote": True}, "are shown to you"),
    ("voice", {"spoken": False, "quote": False}, "are not shown"),
    ("voice", {"arguments": "quote on quote on"}, "/voice takes nothing"),
    ("branch", {"title": "another way"}, "This is a copy now"),
    ("approvals", {"revoke": 3}, "revoke NUMBER"),
    ("platform", {"do": "pause", "platform": "telegraph"}, "Network 'telegraph' not found"),
    ("pairing", {"do": "invite", "as": "operator", "for": "2h"}, "use this bot as operator. It is valid once, for 2h"),
    ("pairing", {"for": "2h", "do": "invite", "gone": "what an old menu had"}, "can use this bot as user"),
    ("settings", {"name": "language", "value": "de"}, "language in discord:"),
    ("letters", {"retry": "nobody"}, "nobody"),
    ("model", {"model": "none"}, "none"),
    ("resume", {"session": "nothing"}, "No session begins with 'nothing'"),
]


async def test_what_is_given_for_its_options_is_what_would_have_been_typed(home: House, wire: DiscordWire) -> None:
    await wire.write("hello")
    await home.shows("I heard you.")
    for name, given, answer in CALLS:
        before = len(wire.shown)
        wire.call(name, given)
        await until(lambda before=before: len(wire.shown) > before, f"the answer of /{name} {given}")  # type: ignore[misc]
        assert answer in wire.shown[-1].text, (name, given)


async def test_a_menu_of_before_with_one_text_for_all_is_still_understood(home: House, wire: DiscordWire) -> None:
    wire.call("title", {"arguments": "as it was"})
    await home.shows("This session is now called: as it was")
    wire.call("pairing", {"arguments": "invite --as operator --for 2h"})
    await home.shows("can use this bot as operator. It is valid once, for 2h")


async def test_names_are_suggested_as_the_command_would_show_them(wire: DiscordWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=ADMIN) as home:
        await suggests(wire, "model", "model=", "default")
        await suggests(wire, "model", "model=DEFau", "default")
        assert await wire.suggestions("resume", "session=") == []
        await wire.write("what is it?")
        await home.shows("It is 42.")
        (begun,) = [one for one in home.gateway.groups.turns.context.sessions.known() if one.session_id]
        mine = begun.session_id
        assert await wire.suggestions("resume", "session=") == [], "it is in this one already"
        wire.call("new", {})
        await home.shows("A new session begins")
        await suggests(wire, "resume", "session=what is", mine)
        wire.call("resume", {"session": mine})
        await home.shows(f"Back in {mine}")
        assert await wire.suggestions("resume", "session=", by=BEN) == [], "Ann's are not Ben's"
        await suggests(wire, "platform", "platform=", "discord", given={"do": "pause"})
        values = home.gateway.groups.turns.context.chats.list_choices("answer")
        await suggests(wire, "settings", "value=", *values, "default", given={"name": "answer"})
        await suggests(wire, "settings", "value=", "default", given={"name": "no such"})
        assert await wire.suggestions("nothing", "model=") == await wire.suggestions("title", "title=a") == []


async def test_nobody_is_suggested_more_than_the_command_would_show(home: House, wire: DiscordWire) -> None:
    for command, typing in (("platform", "platform="), ("settings", "value="), ("letters", "retry=")):
        assert await wire.suggestions(command, typing, by=BEN, given={"name": "answer"}) == []
    for chat in ("", GROUP):
        assert await wire.suggestions("model", "model=", by=STRANGER, chat=chat) == []
    assert not wire.shown, "a stranger who types is given no code"
    assert not wire.whispers
    assert not home.told("access:denied")


async def test_where_a_hook_has_a_say_nothing_is_suggested(home: House, wire: DiscordWire) -> None:
    for name in ("message:received", "command:model", "message:sending"):
        subscription = home.gateway.registry.on(name, lambda _event: Deny("not here"))
        assert await wire.suggestions("model", "model=") == []
        subscription()
    await suggests(wire, "model", "model=", "default")


async def test_where_it_does_not_listen_nothing_is_suggested(wire: DiscordWire, tmp_path: Path) -> None:
    others = {"DISCORD_ALLOWED_CHANNELS": "123456789012345678"}
    async with housed(wire, tmp_path / "home", environ=others):
        assert await wire.suggestions("model", "model=", chat=GROUP) == []
        await suggests(wire, "model", "model=", "default")
        assert wire.place(GROUP) == CHANNEL


async def test_many_names_and_long_ones_are_cut_to_what_discord_takes(wire: DiscordWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=wire.own(ANN)) as home:
        for number in range(30):
            wire.call("title", {"title": f"{number} " + "x" * 190})
            await home.shows("is now called", number + 1)
            wire.call("new", {})
            await home.shows("A new session begins", number + 1)

        async def are_cut() -> bool:
            return len(await wire.suggestions("resume", "session=xxx")) == 25

        await until(are_cut, "as many as Discord takes")


async def test_who_types_on_is_answered_for_what_was_typed_last(home: House, wire: DiscordWire) -> None:
    """Each letter asks; none of them is left without an answer, which Discord would show as a fault."""

    async def is_last() -> bool:
        asked = [wire.call("model", {"model": "default"[:long]}, typing="model") for long in range(8)]
        await until(lambda: set(asked) <= set(wire.suggested), "all answers")
        return wire.suggested[asked[-1]] == ["default"]

    await until(is_last, "what fits to the last one")
    assert home.presence.unreadable == 0
