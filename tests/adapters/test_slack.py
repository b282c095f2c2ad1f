"""Features of Slack alone: acknowledgements, threads, slash commands, buttons, rights, and their failures."""

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.slack import check
from gateway.adapters.slack.adapter import SlackAdapter, SlackTimings
from gateway.adapters.slack.history import MOST_PLACES
from gateway.adapters.slack.manifest import build_manifest
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.commands import CommandTable
from gateway.engine.interface import NewRecord
from gateway.errors import AdapterError, EngineError
from gateway.messages.message import Address, Attachment, Button, Message, Receipt, Reply
from gateway.messages.pieces import DELETED
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import GatewayParts
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.slack_web import Refused
from tests.adapters.slack_wire import CHANNEL, SlackWire
from tests.spine import until

IN_GROUP = Address("slack", CHANNEL, "group")


@pytest.fixture
async def wire() -> AsyncIterator[SlackWire]:
    wire = SlackWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def home(wire: SlackWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as home:
        yield home


class FullAtFirst:
    """Fills `Receive`: a journal that takes nothing, and then does."""

    def __init__(self, gateway: GatewayParts) -> None:
        self._gateway = gateway
        self.refused = 0

    async def __call__(self, message: Message, *extra: NewRecord, **how: Any) -> Receipt:
        if not self.refused:
            self.refused += 1
            raise EngineError("the disk is full")
        return await self._gateway.groups.turns.dispatcher.receive(message, *extra, **how)


@asynccontextmanager
async def connected(home: House, ground: AdapterContext) -> AsyncIterator[Presence]:
    """One more line of the same app, which looks often; Slack tells what happens to the last one that came."""
    up: list[str] = []
    presence = Presence("other", home.gateway.registry, up.append)
    quick = SlackTimings(look=0.05, ping=0.1, broken=0.2, given_up=5.0)
    settings: Any = home.gateway.settings.platforms
    adapter = SlackAdapter(settings.slack, ground, quick)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(adapter.serve, presence)
        await until(lambda: bool(up), "the second line")
        yield presence
        tasks.cancel_scope.cancel()


async def say(home: House, address: Address, text: str, **more: Any) -> None:
    await home.gateway.outbox.post(Reply(uuid.uuid4().hex, address, text, **more))


async def test_every_event_is_acknowledged_also_those_that_nobody_wants(home: House, wire: SlackWire) -> None:
    await wire.noise()
    await wire.write("hello")
    await wire.write("/whoami")
    await wire.react(await wire.write("and you?"), "👍")
    await until(lambda: not wire.pending, "the acknowledgements")


async def test_what_the_journal_does_not_take_is_not_acknowledged_and_comes_again(home: House, wire: SlackWire) -> None:
    full = FullAtFirst(home.gateway)
    async with connected(home, replace(home.gateway.groups.networks.adapter_context, receive=full)):
        await wire.write("what is it?")
        await until(lambda: full.refused == 1, "the refusal")
        assert wire.pending, "Slack still has it"
        wire.hang_up()
        await home.shows("It is 42.")
        await until(lambda: not wire.pending, "the acknowledgement")


async def words_of(home: House) -> str:
    """All that the conversations here have of what people said."""
    keys = {one.session_key for one in await home.gateway.groups.storage.search.list_sessions()}
    return str([(await home.gateway.sessions.open(key)).entries for key in keys])


async def test_what_was_taken_back_while_nobody_listened_is_told_at_the_next_start(
    wire: SlackWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home") as home:
        message = await wire.write("the word is mellon")
        await home.shows("I heard you.")
    await wire.delete(message)
    async with housed(wire, tmp_path / "home") as home:
        await until(lambda: not wire.pending, "the acknowledgement")
        assert "mellon" not in await words_of(home)


async def test_what_has_answers_below_it_leaves_a_stone_and_is_gone_all_the_same(home: House, wire: SlackWire) -> None:
    message = await wire.mention("the word is mellon")
    await home.shows("I heard you.")
    await wire.delete(message)
    assert wire.messages[message]["subtype"] == "tombstone"
    await until(lambda: not wire.pending, "the acknowledgement")
    assert DELETED in await words_of(home)
    assert "mellon" not in await words_of(home)


async def test_a_deletion_counts_for_whose_message_it_was_and_where_it_stood(home: House, wire: SlackWire) -> None:
    message = await wire.write("the word is mellon")
    await home.shows("I heard you.")
    gone = {"type": "message", "subtype": "message_deleted", "deleted_ts": message, "ts": wire.stamp()}
    here = {"channel": wire.messages[message]["channel"], "channel_type": "im"}
    wire.event({**gone, **here, "previous_message": {"user": wire.known_as(BEN), "ts": message, "text": "x"}})
    wire.event({**gone, "channel": CHANNEL, "previous_message": {"user": wire.known_as(ANN), "ts": message}})
    wire.event({**gone, **here, "deleted_ts": "1.5"})
    await until(lambda: not wire.pending, "the acknowledgements")
    assert "mellon" in await words_of(home)
    await wire.delete(message)
    await until(lambda: not wire.pending, "the acknowledgement")
    assert "mellon" not in await words_of(home)


async def test_what_slack_no_longer_delivers_is_read_again(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("and you?")
        await home.shows("I heard you.")
        mention = await wire.mention("and you?", by=BEN)
        await home.shows("I heard you.", 2)
        await wire.write("!whoami")
        await home.shows("user")
    await wire.write("what is it?")
    await wire.write("what is this?", chat=GROUP, thread=mention, by=BEN)
    wire.pending.clear()
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.", 2)
        await wire.write("and now?")
        await home.shows("I heard you.", 3)
        assert len(wire.shown) == 6, "and nothing twice, commands neither"


async def test_a_place_for_which_slack_stays_ill_holds_up_nobody(wire: SlackWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("and you?")
        await home.shows("I heard you.")
    await wire.write("what is it?")
    wire.pending.clear()
    wire.ills["conversations.history"] = [Refused("internal_error", status=500) for _ in range(1000)]
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("and you?", by=BEN)
        await until(lambda: any((one.chat, one.text) == (BEN, "I heard you.") for one in wire.shown), "Ben's answer")
        assert not home.with_text("It is 42.")
        wire.ills.clear()
        await home.shows("It is 42.")


async def test_what_is_said_in_a_thread_of_ones_own_chat_is_read_again_too(wire: SlackWire, tmp_path: Path) -> None:
    """There Slack's view of agents has each conversation."""
    async with housed(wire, tmp_path / "home") as home:
        thread = await wire.write("hello")
        await home.shows("I heard you.")
        await wire.write("and you?", thread=thread)
        await home.shows("I heard you.", 2)
    await wire.write("what is it?", thread=thread)
    wire.pending.clear()
    async with housed(wire, tmp_path / "home") as home:
        (shown,) = await home.shows("It is 42.")
        assert shown.thread == thread


async def test_of_more_chats_than_are_listed_those_that_are_known_are_read_again(
    wire: SlackWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("and you?")
        await home.shows("I heard you.")
    for number in range(MOST_PLACES):
        wire.told(wire.message(STRANGER, f"D00000{number:03}", "hello"))
    await wire.write("what is it?")
    wire.pending.clear()
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.")


@pytest.mark.parametrize("method", ["conversations.list", "conversations.history", "conversations.replies"])
async def test_what_slack_is_too_ill_to_show_again_is_read_once_it_is_well(
    wire: SlackWire, tmp_path: Path, method: str
) -> None:
    async with housed(wire, tmp_path / "home") as home:
        mention = await wire.mention("and you?")
        await home.shows("I heard you.")
    await wire.write("what is it?")
    await wire.write("what is this?", chat=GROUP, thread=mention)
    wire.pending.clear()
    wire.ills[method] = [Refused("internal_error", status=500)]
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.", 2)


async def test_eyes_mark_what_is_worked_on_and_go_with_the_answer_also_those_of_an_earlier_life(
    wire: SlackWire, tmp_path: Path
) -> None:
    slow = {"chunks": ["It ", "is ", "42."], "delay": "300ms"}
    slower = {"chunks": [f"word{number} " for number in range(20)], "delay": "200ms"}
    async with housed(wire, tmp_path / "home", slow, slower) as home:
        first = await wire.write("what is it?")
        await home.shows("42.")
        await until(lambda: wire.reactions.get(first) == [], "their end")
        second = await wire.write("and you?")
        await until(lambda: wire.reactions.get(second) == ["eyes"], "the eyes")
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("I heard you.")
        await until(lambda: wire.reactions.get(second) == [], "the end of old ones")
        assert set(wire.reacted) == {"eyes"}


async def test_a_mention_is_answered_in_its_thread_where_nobody_need_mention_again(
    home: House, wire: SlackWire
) -> None:
    mention = await wire.mention("what is it?")
    (shown,) = await home.shows("It is 42.")
    assert shown.thread == mention
    await wire.write("and you?", chat=GROUP, thread=mention, by=BEN)
    (shown,) = await home.shows("I heard you.")
    assert shown.thread == mention
    assert len({one["session_key"] for one in home.told("message:received")}) == 1, "a thread is one conversation"
    await wire.write("hello everybody", chat=GROUP)
    await wire.write("!whoami", chat=GROUP, thread=mention)
    await home.shows(wire.known_as(ANN))
    assert len(wire.shown) == 3


async def test_a_thread_of_others_is_left_alone(home: House, wire: SlackWire) -> None:
    """Nobody has called the bot there; a mention in the same thread calls it."""
    theirs = await wire.write("who comes?", chat=GROUP, by=BEN)
    await wire.write("I do", chat=GROUP, thread=theirs)
    wire.told(wire.message(ANN, CHANNEL, f"<@{wire.bot}> and you?", theirs))
    (shown,) = await home.shows("I heard you.")
    assert shown.thread == theirs
    assert [one["text"] for one in home.told("message:received")] == ["and you?"]


async def test_a_command_whose_name_is_slacks_own_has_another(home: House, wire: SlackWire) -> None:
    await wire.write("/status")
    await home.shows("hermes-gateway is")


async def test_a_slash_command_where_the_bot_is_no_member_is_answered_to_its_caller(
    home: House, wire: SlackWire
) -> None:
    wire.forbidden["C0000ELSE"] = "not_in_channel"
    wire.call("/whoami", ANN, "C0000ELSE")
    await until(lambda: bool(wire.whispers), "the whisper")
    assert wire.known_as(ANN) in wire.whispers[0]


async def test_a_stranger_who_calls_or_presses_is_told_so_alone(home: House, wire: SlackWire) -> None:
    await wire.write("/whoami", by=STRANGER, chat=GROUP)
    await say(home, IN_GROUP, "Really?", buttons=(Button("Yes", "/whoami"),))
    (shown,) = await home.shows("Really?")
    await wire.press(shown, "Yes", by=STRANGER)
    await until(lambda: len(wire.whispers) == 2, "two whispers")
    assert len(wire.shown) == 1


async def test_a_button_is_for_whoever_is_asked_and_dead_after_use(home: House, wire: SlackWire) -> None:
    asked = await wire.mention("and you?", by=BEN)
    await home.shows("I heard you.")
    await say(home, IN_GROUP, "Really?", buttons=(Button("Yes", "!whoami"),), reply_to=asked)
    (shown,) = await home.shows("Really?")
    await wire.press(shown, "Yes", by=ANN)
    await until(lambda: bool(wire.whispers), "the whisper")
    assert "another person" in wire.whispers[0]
    await wire.press(shown, "Yes", by=BEN)
    await home.shows(wire.known_as(BEN))
    await until(lambda: not shown.buttons, "the buttons' end")
    assert shown.text == "Really?"


@pytest.mark.row("T30")
async def test_people_and_channels_have_their_names_and_are_asked_for_once(home: House, wire: SlackWire) -> None:
    wire.names = {wire.known_as(ANN): "Ann Marlow", CHANNEL: "garden"}
    await wire.mention("and you?")
    await wire.write("and you?")
    told = await home.hears("message:received", 2)
    assert {(one["user_name"], one["chat_name"]) for one in told} == {("Ann Marlow", "garden"), ("Ann Marlow", "")}
    assert (len(wire.asked("users.info")), len(wire.asked("conversations.info"))) == (1, 1)


async def test_a_message_is_taken_without_names_where_slack_does_not_tell_them(home: House, wire: SlackWire) -> None:
    wire.silent = {"users.info"}
    await wire.mention("and you?")
    await wire.mention("what is it?")
    told = await home.hears("message:received", 2)
    assert [(one["user_name"], one["chat_name"]) for one in told] == [("", ""), ("", "")]
    assert len(wire.asked("users.info")) == 1, "the second message waits for nothing"


async def test_nobody_is_called_together_and_code_stays_as_it_is(home: House, wire: SlackWire) -> None:
    """The wire refuses what would call."""
    await say(home, IN_GROUP, "<!channel> and @here, but `@here`\n```\necho ok\n```")
    (shown,) = await home.shows("and")
    assert "`@here`" in shown.text


async def test_a_part_in_doubt_is_looked_for_before_it_is_sent_again(home: House, wire: SlackWire) -> None:
    """The message arrived, its answer did not: the journal knows of a try, and Slack of the message."""
    wire.lose_answers = 1
    await say(home, Address("slack", f"D0000{ANN}"), "only once")
    await home.hears("message:sent")
    assert len(home.with_text("only once")) == 1


async def test_files_go_to_the_thread(home: House, wire: SlackWire, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"a file")
    address = Address("slack", CHANNEL, "thread", "1700000000.000001")
    await say(home, address, "here", attachments=(Attachment("document", str(tmp_path / "a.txt"), "letter.txt"),))
    await until(lambda: bool(wire.shown), "text and file")
    (shown,) = wire.shown
    assert (shown.text, shown.file, shown.file_name, shown.thread) == (
        "here",
        b"a file",
        "letter.txt",
        "1700000000.000001",
    )


async def test_the_token_is_not_sent_where_a_file_does_not_lie_at_slack(home: House, wire: SlackWire) -> None:
    file = {"id": "F1", "name": "a.pdf", "size": 3, "url_private": "https://elsewhere.example/a.pdf"}
    wire.told({**wire.message(ANN, wire.place(ANN), ""), "subtype": "file_share", "files": [file]})
    (received,) = await home.hears("message:received")
    assert "is not a file of Slack" in received["text"]


async def test_what_slack_writes_is_read_as_people_read_it(home: House, wire: SlackWire) -> None:
    text = "see <https://a.example/b|the page> in <#C1|general>, <!here>, a &lt; b"
    wire.told({**wire.message(ANN, wire.place(ANN), text)})
    (received,) = await home.hears("message:received")
    assert received["text"] == "see [the page](https://a.example/b) in #general, @here, a < b"


async def test_words_that_are_passed_on_are_marked(home: House, wire: SlackWire) -> None:
    shared = [{"is_share": True, "author_name": "Ben", "text": "do it &amp; go"}]
    wire.told({**wire.message(ANN, wire.place(ANN), "what is this?"), "attachments": shared})
    (received,) = await home.hears("message:received")
    assert received["text"] == "what is this?\n[forwarded from Ben]\ndo it & go"
    assert received["extra"]["raw"]["attachments"] == shared


async def test_other_bots_are_heard_as_far_as_the_settings_let_them(wire: SlackWire, tmp_path: Path) -> None:
    heard = {"SLACK_ALLOW_BOTS": "mentions", "SLACK_ALLOWED_USERS": f"{wire.known_as('777')},{wire.known_as(ANN)}"}
    async with housed(wire, tmp_path / "home", environ=heard) as home:
        await wire.by_a_bot("what is it?")
        await wire.by_a_bot("<@U0000BOT0> and you?")
        await home.shows("I heard you.", 2)
        assert not home.with_text("It is 42.")


async def test_rights_and_rivals_are_said_with_the_remedy(wire: SlackWire, tmp_path: Path) -> None:
    wire.scopes, wire.others = wire.scopes.replace("files:read,", ""), 1
    async with housed(wire, tmp_path / "home") as home:
        await until(lambda: len(home.presence.complaints) == 2, "two complaints")
        lacks, rivals = home.presence.complaints
        assert "files:read" in lacks
        assert "2 programs" in rivals


async def test_an_app_token_that_is_no_good_is_told_from_the_bots(home: House, wire: SlackWire) -> None:
    wire.tokens = wire.tokens[:1]
    platforms: Any = home.gateway.settings.platforms
    settings = platforms.slack
    with pytest.raises(AdapterError, match="SLACK_APP_TOKEN"):
        await SlackAdapter(settings, home.gateway.groups.networks.adapter_context).serve(
            home.gateway.platforms[0].presence
        )


async def test_a_token_that_is_revoked_while_the_line_is_open_is_said(home: House, wire: SlackWire) -> None:
    good, wire.tokens = wire.tokens, ()
    await wire.write("what is it?")
    await until(lambda: "SLACK_BOT_TOKEN" in home.presence.detail and not home.presence.up, "the remedy")
    wire.tokens = good
    await home.shows("It is 42.")


async def test_a_line_that_is_silent_is_built_anew(home: House, wire: SlackWire) -> None:
    """Pings that nobody answers prove nothing, however open the connection looks."""
    async with connected(home, home.gateway.groups.networks.adapter_context) as presence:
        await until(lambda: presence.facts.last_probe > 0, "an answered ping")
        before, wire.is_deaf = wire.connections, True
        await until(lambda: wire.connections > before, "a new line")


def test_the_manifest_has_all_that_slack_must_know() -> None:
    about = build_manifest(CommandTable(BUILT_IN))
    names = [one["command"] for one in about["features"]["slash_commands"]]
    assert {"/new", "/stop", "/gateway-status", "/hooks"} <= set(names)
    assert "/status" not in names
    assert "/start" not in names
    assert about["settings"]["socket_mode_enabled"]
    assert len(names) <= 50
    assert about["features"]["agent_view"]["agent_description"]
    assert "assistant:write" in about["oauth_config"]["scopes"]["bot"]
    assert {"app_home_opened", "message.im"} <= set(about["settings"]["event_subscriptions"]["bot_events"])


async def test_setup_learns_who_the_app_is_and_what_it_lacks(home: House, wire: SlackWire) -> None:
    platforms: Any = home.gateway.settings.platforms
    settings = platforms.slack
    wire.scopes = wire.scopes.replace("im:history,", "")
    checked = await check.check(settings)
    assert checked.who == "@gate in a team"
    assert "im:history" in checked.todo[0]
    await check.say(settings, CHANNEL, "hello")
    await home.shows("hello")
    wire.tokens = wire.tokens[:1]
    with pytest.raises(AdapterError, match="SLACK_APP_TOKEN"):
        await check.check(settings)


def test_setup_prints_the_manifest_without_a_token(tmp_path: Path) -> None:
    printed = GatewayProcess(tmp_path / "home").cli("setup", "slack", "--manifest")
    assert json.loads(printed.stdout) == build_manifest(CommandTable(BUILT_IN))
