"""Chats by name: which names count as an address, what they are bound to, and who reads which chats there are."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.daemon.answers.jobs import jobs_add, jobs_show
from gateway.daemon.answers.networks import chat_send
from gateway.errors import AdapterError
from gateway.jobs.verbs import JobAddParams, JobParams
from gateway.outbox.verbs import ChatSendParams
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.discord_facts import CHANNEL, SIDE_CHANNEL, channel_of
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_wire import CHANNEL as SLACK_CHANNEL
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

SAY: dict[str, Any] = {"name": "send_message", "args": {"text": "All systems go", "to": "discord:#general"}}
SCRIPT = ({"user": "tell them", "answers": [{"tool_calls": [SAY]}, {"text": "Told."}]},)


@pytest.fixture
async def discord(tmp_path: Path) -> AsyncIterator[House]:
    wire = DiscordWire()
    async with wire.serving():
        owners = f"{{discord: ['{wire.known_as(ANN)}']}}"
        settings = f"access: {{owners: {owners}, tools: {{user: all}}}}\n"
        async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
            await until(lambda: names_of(house, "discord"), "the list of channels")
            yield house


def names_of(house: House, network: str) -> dict[str, str]:
    known = house.gateway.groups.people.names.chats.known
    return {of: one.name for of, one in known.items() if of.startswith(f"{network}:")}


def find(house: House, to: str, role: Any = "owner") -> str:
    places = house.gateway.groups.turns.context.places
    return places.chat_names.show(places.resolve_destination(to, role=role))


def change_channels(house: House, event: str, channel: dict[str, Any]) -> None:
    wire = house.wire
    assert isinstance(wire, DiscordWire)
    wire.channels[channel["id"]] = channel
    wire.event(event, channel)


async def test_discord_lists_its_channels_so_a_name_counts_at_once(discord: House) -> None:
    shown = f"discord:{CHANNEL} (general)"
    for to in ("discord:#general", "discord:general", "discord:A Server/#General", shown, f"discord:{CHANNEL}"):
        assert find(discord, to) == shown, to
    groups = discord.gateway.groups
    asked = ChatSendParams(to="discord:#general", text="Lunch?")
    sent = await chat_send(groups.base, groups.storage, groups.turns, groups.networks, asked)
    assert (sent["state"], sent["to"]) == ("sent", shown)
    (lunch,) = await discord.shows("Lunch?")
    assert lunch.chat == GROUP


async def test_a_name_that_two_chats_have_is_refused_and_owners_read_which(discord: House) -> None:
    change_channels(discord, "CHANNEL_CREATE", channel_of(SIDE_CHANNEL))
    await until(lambda: len(names_of(discord, "discord")) == 2, "the second channel")
    with pytest.raises(AdapterError) as error:
        find(discord, "discord:#general")
    assert all(one in str(error.value) for one in (CHANNEL, SIDE_CHANNEL, "general in a server"))
    with pytest.raises(AdapterError) as error:
        find(discord, "discord:#general", "user")
    assert str(error.value) == "no such chat here"
    with pytest.raises(
        AdapterError, match=rf"did you mean discord:{CHANNEL} \(general in a server\), discord:{SIDE_CHANNEL}"
    ):
        find(discord, "discord:#genral")
    with pytest.raises(AdapterError, match=r"no such chat here$"):
        find(discord, "discord:#genral", "operator")
    change_channels(discord, "CHANNEL_DELETE", channel_of(SIDE_CHANNEL))
    await until(lambda: len(names_of(discord, "discord")) == 1, "the end of the second channel")
    assert find(discord, "discord:#general", "guest").startswith(f"discord:{CHANNEL}")


async def test_a_job_stays_with_the_chat_that_its_name_meant_and_says_when_the_name_moves(discord: House) -> None:
    groups = discord.gateway.groups
    made = await jobs_add(
        groups.base, groups.work, groups.turns, JobAddParams(name="a", when="3h", text="hi", to="discord:#general")
    )
    assert made["to"] == f"discord:{CHANNEL} (general)"
    change_channels(discord, "CHANNEL_UPDATE", {**channel_of(CHANNEL), "name": "old"})
    change_channels(discord, "CHANNEL_CREATE", channel_of(SIDE_CHANNEL))
    await until(lambda: len(names_of(discord, "discord")) == 2, "the second channel")
    shown = (await jobs_show(groups.turns, JobParams("a")))["to"]
    assert shown == f"discord:{CHANNEL} (old); discord:#general means discord:{SIDE_CHANNEL} (general) now"
    change_channels(discord, "CHANNEL_UPDATE", {**channel_of(SIDE_CHANNEL), "name": "new"})
    await until(lambda: "new" in names_of(discord, "discord").values(), "the new name")
    assert (await jobs_show(groups.turns, JobParams("a")))["to"].endswith("means no chat now")


async def test_an_approval_is_of_the_chat_that_was_found_then(discord: House) -> None:
    await discord.wire.write("tell them", by=BEN)
    await until(lambda: any(one.buttons for one in discord.wire.shown), "the question")
    (question,) = [one for one in discord.wire.shown if one.buttons]
    assert f"discord:{CHANNEL} (general)" in question.text
    change_channels(discord, "CHANNEL_UPDATE", {**channel_of(CHANNEL), "name": "old"})
    change_channels(discord, "CHANNEL_CREATE", channel_of(SIDE_CHANNEL))
    await until(lambda: len(names_of(discord, "discord")) == 2, "the second channel")
    await discord.wire.press(question, "Yes", by=ANN)
    (again,) = await discord.shows("The call was changed after the last answer")
    assert f"discord:{SIDE_CHANNEL} (general)" in again.text
    await discord.wire.press(again, "No", by=ANN)
    await discord.shows("Told.")
    assert not [one for one in discord.wire.shown if one.text == "All systems go"]


async def test_slack_lists_its_channels_too(tmp_path: Path) -> None:
    wire = SlackWire()
    wire.names = {SLACK_CHANNEL: "alerts"}
    async with wire.serving(), housed(wire, tmp_path / "home") as house:
        await until(lambda: names_of(house, "slack"), "the list of channels")
        assert find(house, "slack:#alerts") == f"slack:{SLACK_CHANNEL} (alerts)"
        with pytest.raises(AdapterError):
            find(house, f"slack:#{SLACK_CHANNEL}")  # an id is not a name


@pytest.mark.parametrize(
    ("more", "by", "counts"),
    [
        ("", BEN, False),
        ("", ANN, True),
        (f"chats: {{'telegram:{GROUP}': {{answer: mention}}}}\n", BEN, True),
    ],
)
async def test_a_telegram_group_counts_when_the_owner_wrote_there_or_named_it(
    tmp_path: Path, more: str, by: str, *, counts: bool
) -> None:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, tmp_path / "home", settings=wire.own(ANN) + more) as house:
        await wire.mention("hello", by=by)
        await until(lambda: names_of(house, "telegram"), "the group")
        (name,) = names_of(house, "telegram").values()
        if counts:
            assert find(house, f"telegram:{name}", "guest") == f"telegram:{GROUP} ({name})"
            return
        with pytest.raises(AdapterError, match=f"no owner or admin has written there: telegram:{GROUP}"):
            find(house, f"telegram:{name}")
        with pytest.raises(AdapterError, match=r"^no such chat here$"):
            find(house, f"telegram:{name}", "user")


async def test_the_name_of_the_home_channel_counts_before_anybody_wrote(tmp_path: Path) -> None:
    wire = TelegramWire()
    environ = {"TELEGRAM_HOME_CHANNEL": GROUP, "TELEGRAM_HOME_CHANNEL_NAME": "Ops: alerts"}
    async with wire.serving(), housed(wire, tmp_path / "home", environ=environ) as house:
        assert find(house, "telegram:ops: Alerts") == f"telegram:{GROUP} (Ops: alerts)"
        assert find(house, "telegram:77:5") == "telegram:77"
