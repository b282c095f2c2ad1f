"""Features of Discord alone: sessions that are resumed, threads, slash commands, buttons, and their failures."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.adapters.discord import check
from gateway.adapters.discord.adapter import DiscordAdapter, DiscordTimings
from gateway.adapters.discord.client import DiscordClient
from gateway.adapters.shared.adapter import Presence
from gateway.errors import AdapterError
from gateway.events import Event
from gateway.messages.message import Address, Attachment, Button, Reply
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.suite_groups import admitting, make_quiet, remembers
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.discord_facts import BOT, BOT_ROLE, CHANNEL, GUILD, TEAM_ROLE, dm_of, known_as
from tests.adapters.discord_wire import DiscordWire
from tests.spine import until

IN_GROUP = Address("discord", CHANNEL, "group")


@pytest.fixture
async def wire() -> AsyncIterator[DiscordWire]:
    wire = DiscordWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def home(wire: DiscordWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as home:
        yield home


async def say(home: House, address: Address, text: str, **more: Any) -> None:
    await home.gateway.outbox.post(Reply(uuid.uuid4().hex, address, text, **more))


async def test_a_broken_line_is_resumed_with_all_that_was_said_meanwhile(home: House, wire: DiscordWire) -> None:
    wire.hang_up()
    for number in range(3):
        await wire.write(f"hello {number}")
    await wire.react(await wire.write("and you?"), "👍")
    await home.hears("reaction:added")
    said = [f"hello {number}" for number in range(3)]
    await until(lambda: all(one in str(home.told("message:received")) for one in said), "all that was said")
    assert (wire.identified, wire.resumed) == (1, 1)


async def test_what_was_taken_back_while_the_line_was_broken_is_told_when_it_is_resumed(
    home: House, wire: DiscordWire
) -> None:
    """What a moderator clears away goes with one word of Discord's."""
    said = []
    for count, (write, text) in enumerate(
        [(wire.write, "mellon"), (wire.mention, "a mellon"), (wire.mention, "mellon")], 1
    ):
        said.append(await write(text))
        await home.shows("I heard you.", count)
    first, second, third = said
    wire.hang_up()
    wire.event("MESSAGE_DELETE", {"id": first, "channel_id": CHANNEL, "guild_id": GUILD})  # it stood elsewhere
    wire.event("MESSAGE_DELETE_BULK", {"ids": [second, third], "channel_id": CHANNEL, "guild_id": GUILD})

    async def is_first_left() -> bool:
        return len(await home.gateway.groups.storage.search.find("mellon")) == 1

    async def is_none_left() -> bool:
        return not await home.gateway.groups.storage.search.find("mellon")

    await until(is_first_left, "the deletions")
    await wire.delete(first)
    await until(is_none_left, "the last one")
    assert (wire.identified, wire.resumed) == (1, 1)


async def test_a_session_that_discord_forgot_is_begun_anew_and_what_it_lacks_is_read(
    home: House, wire: DiscordWire
) -> None:
    await wire.write("and you?")
    await home.shows("I heard you.")
    wire.sessions.clear()
    wire.hang_up()
    await wire.write("what is it?")
    await home.shows("It is 42.")
    assert wire.identified == 2
    assert len(home.with_text("I heard you.")) == 1


async def test_the_first_words_of_whoever_was_let_in_are_read_again_too(wire: DiscordWire, tmp_path: Path) -> None:
    settings = f"access: {{admins: {{discord: ['{known_as(ANN)}']}}}}\n"
    async with housed(wire, tmp_path / "home", settings=settings) as home:
        await wire.write("let me in", by=STRANGER)
        (shown,) = await home.shows("pairing code")
        code = shown.text.split("code is ")[1][:8]
        await wire.write(f"/pairing approve {code}")
        await home.shows("You can use this bot now")
    await wire.write("what is it?", by=STRANGER)
    async with housed(wire, tmp_path / "home", settings=settings) as home:
        (shown,) = await home.shows("It is 42.")
        assert shown.chat == STRANGER
        assert not home.with_text("I heard you."), "what they wrote as a stranger is answered by nothing but the code"


async def test_what_was_said_in_channels_while_nobody_listened_is_answered_once_and_commands_are_not_run_again(
    wire: DiscordWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.mention("!whoami")
        await home.shows("user")
        await wire.mention("and you?", by=BEN)
        await home.shows("I heard you.")
    await wire.mention("what is it?")
    await wire.write("chatter", chat=GROUP)
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.")
        await wire.mention("what is this?")
        await home.shows("It is 42.", 2)
        assert len(wire.shown) == 4


async def test_a_mention_is_answered_in_a_thread_of_its_own_where_nobody_need_mention_again(
    wire: DiscordWire, tmp_path: Path
) -> None:
    wire.auto_thread = True
    async with housed(wire, tmp_path / "home") as home:
        mention = await wire.mention("what is it?")
        (shown,) = await home.shows("It is 42.")
        assert (shown.thread, wire.channels[mention]["name"]) == (mention, "what is it?")
        await wire.write("and you?", chat=GROUP, thread=mention, by=BEN)
        (shown,) = await home.shows("I heard you.")
        assert shown.thread == mention
        keys = {one["session_key"] for one in home.told("message:received")}
        assert len(keys) == 1, "a thread is one conversation"


async def test_where_no_thread_can_be_made_the_channel_is_answered(wire: DiscordWire, tmp_path: Path) -> None:
    wire.auto_thread = True
    async with housed(wire, tmp_path / "home") as home:
        wire.no_threads = True
        await wire.mention("what is it?")
        (shown,) = await home.shows("It is 42.")
        assert (shown.chat, shown.thread) == (GROUP, "")


async def test_a_slash_command_is_answered_at_once_or_acknowledged_first(home: House, wire: DiscordWire) -> None:
    number = await wire.write("/whoami")
    (shown,) = await home.shows(known_as(ANN))
    assert (wire.interactions[number]["answer"], shown.chat) == (4, ANN)
    go_on = anyio.Event()

    async def wait(_event: Event) -> None:
        await go_on.wait()

    home.gateway.registry.on("command:new", wait)
    number = await wire.write("/new")
    await until(lambda: wire.interactions[number]["answer"] == 5, "the acknowledgement")
    go_on.set()
    await until(lambda: len(wire.shown) == 2, "the answer")
    assert len(wire.asked("POST", "webhooks/")) == 1


async def test_a_stranger_who_calls_or_presses_is_told_so_alone(home: House, wire: DiscordWire) -> None:
    await wire.write("/status", by=STRANGER, chat=GROUP)
    await say(home, IN_GROUP, "Really?", buttons=(Button("Yes", "/whoami"),))
    (shown,) = await home.shows("Really?")
    await wire.press(shown, "Yes", by=STRANGER)
    await until(lambda: len(wire.whispers) == 2, "two whispers")
    assert len(wire.shown) == 1


async def test_a_button_is_for_whoever_is_asked_and_dead_after_use(home: House, wire: DiscordWire) -> None:
    asked = await wire.mention("and you?", by=BEN)
    await home.shows("I heard you.")
    await say(home, IN_GROUP, "Really?", buttons=(Button("Yes", "!whoami"),), reply_to=asked)
    (shown,) = await home.shows("Really?")
    await wire.press(shown, "Yes", by=ANN)
    await until(lambda: bool(wire.whispers), "the whisper")
    assert "another person" in wire.whispers[0]
    await wire.press(shown, "Yes", by=BEN)
    await home.shows(known_as(BEN))
    await until(lambda: not shown.buttons, "the buttons' end")


async def test_an_answer_grows_while_it_is_written(wire: DiscordWire, tmp_path: Path) -> None:
    slow = {"chunks": ["one ", "two ", "three"], "delay": "450ms"}
    async with housed(wire, tmp_path / "home", slow) as home:
        await wire.write("count")
        await home.hears("message:sent")
        assert [one.text for one in wire.shown] == ["one two three"]
        assert wire.asked("PATCH", "messages"), "it was edited on its way"


@pytest.mark.row("T30")
async def test_nobody_is_pinged_and_no_link_is_opened(home: House, wire: DiscordWire) -> None:
    """The wire refuses what would."""
    await say(home, IN_GROUP, "@everyone <@&3001> see https://example.com")
    (shown,) = await home.shows("@everyone")
    assert shown.chat == GROUP


async def test_files_go_out_and_what_is_too_large_is_told(home: House, wire: DiscordWire, tmp_path: Path) -> None:
    small, large = tmp_path / "a.txt", tmp_path / "large.bin"
    small.write_bytes(b"a file")
    await anyio.Path(large).write_bytes(b"x" * 11_000_000)
    await say(home, IN_GROUP, "here", attachments=(Attachment("document", str(small), "letter.txt"),))
    await until(lambda: bool(wire.shown), "text and file")
    (shown,) = wire.shown
    assert (shown.text, shown.file, shown.file_name) == ("here", b"a file", "letter.txt")
    await say(home, IN_GROUP, "", attachments=(Attachment("document", str(large)),))
    (failed,) = await home.hears("message:failed")
    assert "11 MB" in failed["error"]


async def test_a_part_in_doubt_is_sent_again_under_its_nonce_and_stands_there_once(
    home: House, wire: DiscordWire
) -> None:
    """The message arrived, Discord's answer did not."""
    wire.lose_answers = 1
    await say(home, IN_GROUP, "only once")
    (sent,) = await home.hears("message:sent")
    assert sent["attempts"] == 2
    assert [one.id for one in home.with_text("only once")] == sent["message_ids"]


async def test_forwarded_and_quoted_words_are_marked(home: House, wire: DiscordWire) -> None:
    snapshot = {**wire.message(BEN, dm_of(ANN), "secret words"), "type": 0}
    wire.told(
        wire.message(
            ANN,
            dm_of(ANN),
            "",
            message_reference={"type": 1, "message_id": "1", "channel_id": CHANNEL},
            message_snapshots=[{"message": snapshot}],
        )
    )
    (received,) = await home.hears("message:received")
    assert received["text"] == "[forwarded from elsewhere]\nsecret words"
    first = await wire.write("the red one", by=BEN, chat=GROUP)
    wire.told(
        wire.message(
            ANN,
            CHANNEL,
            f"<@&{BOT_ROLE}> what is this?",
            type=19,
            message_reference={"message_id": first, "channel_id": CHANNEL},
            referenced_message=wire.messages[first],
        )
    )
    _, received = await home.hears("message:received", 2)
    assert received["text"] == "[in reply to: the red one]\nwhat is this?"
    said = received["extra"]
    assert (received["reply_to"], said["reply_to_text"], said["reply_to_author_id"]) == (
        first,
        "the red one",
        wire.known_as(BEN),
    )
    assert (said["raw"]["content"], said["raw"]["author"]["id"]) == (
        f"<@&{BOT_ROLE}> what is this?",
        wire.known_as(ANN),
    )


async def test_only_the_listed_channels_are_heard(wire: DiscordWire, tmp_path: Path) -> None:
    others = {"DISCORD_ALLOWED_CHANNELS": "123456789012345678"}
    async with housed(wire, tmp_path / "home", environ=others) as home:
        await wire.mention("what is it?")
        await wire.write("/status", chat=GROUP)
        await until(lambda: bool(wire.whispers), "the whisper")
        await wire.write("and you?")
        await home.shows("I heard you.")
        assert len(wire.shown) == 1


async def test_in_a_free_channel_everything_is_answered(wire: DiscordWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", environ={"DISCORD_FREE_RESPONSE_CHANNELS": CHANNEL}) as home:
        await wire.write("what is it?", chat=GROUP)
        await home.shows("It is 42.")


async def test_a_missing_intent_is_said_with_the_remedy(home: House, wire: DiscordWire) -> None:
    wire.intents_granted = False
    wire.sessions.clear()
    wire.hang_up()
    await until(
        lambda: any("Message Content Intent" in one["reason"] for one in home.told("platform:down")), "the news"
    )
    assert not home.presence.up


async def test_a_person_is_a_place_too(home: House, wire: DiscordWire) -> None:
    """`send --to discord:<person>`: the number of a person stands for their own chat with the bot."""
    await say(home, Address("discord", known_as(BEN)), "good morning")
    (shown,) = await home.shows("good morning")
    assert shown.chat == BEN


async def test_a_line_that_is_silent_is_given_up(home: House, wire: DiscordWire) -> None:
    """Heartbeats that nobody answers prove nothing, however open the connection looks."""
    wire.heartbeat = 20
    gateway = home.gateway
    platforms: Any = gateway.settings.platforms
    quick = DiscordTimings(look=0.02, broken=0.1, silence=0.3, alive=60)
    adapter = DiscordAdapter(platforms.discord, gateway.groups.networks.adapter_context, quick)
    seen: list[str] = []
    presence = Presence("other", gateway.registry, seen.append)

    async def make_deaf() -> None:
        await until(lambda: bool(seen), "the line")
        await until(lambda: presence.facts.last_probe, "a heartbeat that is answered")
        wire.is_deaf = True

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(make_deaf)
        with pytest.raises(AdapterError, match="has not answered"):
            await adapter.serve(presence)


async def test_setup_learns_who_the_bot_is_and_what_is_to_be_switched(home: House, wire: DiscordWire) -> None:
    platforms: Any = home.gateway.settings.platforms
    settings = platforms.discord
    checked = await check.check(settings)
    assert "@gate" in checked.who
    assert "permissions=" in checked.link
    assert not any("Intent" in one for one in checked.todo)
    await check.say(settings, known_as(BEN), "hello")
    await home.shows("hello")
    wire.flags = 0
    assert "Message Content Intent" in (await check.check(settings)).todo[0]
    wire.token = "none"
    with pytest.raises(AdapterError, match="token"):
        await check.check(settings)


async def test_a_role_lets_speak_on_its_server_and_nowhere_else(wire: DiscordWire, tmp_path: Path) -> None:
    wire.roles[STRANGER] = [TEAM_ROLE]
    with_role = {"DISCORD_ALLOWED_ROLES": TEAM_ROLE}
    async with housed(wire, tmp_path / "home", environ=with_role) as home:
        await wire.mention("what is it?", by=STRANGER)
        await home.shows("It is 42.")
        await wire.write("/whoami", chat=GROUP, by=STRANGER)
        await home.shows(known_as(STRANGER))
        said = await wire.write("by the way", chat=GROUP, by=STRANGER)
        await wire.react(said, "👍", by=STRANGER)
        await home.hears("reaction:added")
        wire.event("MESSAGE_REACTION_REMOVE", wire.reaction(said, "👍", STRANGER))
        await home.hears("reaction:removed")
        await wire.write("what is it?", by=STRANGER)
        await home.hears("access:denied")
    await wire.mention("and you?", by=STRANGER)
    async with housed(wire, tmp_path / "home", environ=with_role) as home:
        await home.shows("I heard you.")


async def test_a_long_window_holds_up_nobody_while_it_has_requests_left(wire: DiscordWire, tmp_path: Path) -> None:
    wire.windows = {"messages": [50]}
    async with housed(wire, tmp_path / "home", settings="platforms: {discord: {streaming: 'off'}}\n") as home:
        for number in range(1, 4):
            await wire.mention("what is it?")
            await home.shows("It is 42.", number)


async def test_behind_a_window_that_is_spent_its_own_chat_waits_and_no_other(wire: DiscordWire, tmp_path: Path) -> None:
    """The last answer in the window is told when it is there, and not a minute later."""
    wire.windows = {f"{dm_of(ANN)}/messages": [1]}
    async with housed(wire, tmp_path / "home", settings="platforms: {discord: {streaming: 'off'}}\n") as home:
        await wire.write("what is it?")
        await until(lambda: len(home.told("message:sent")) == 1, "the end of the first one")
        for number in range(10):
            await wire.write(f"and number {number}?")
        await wire.write("what is it?", by=BEN)
        await until(lambda: any(one.chat == BEN for one in wire.shown), "Ben's answer")
        assert len([one for one in wire.shown if one.chat == ANN]) == 1
        sender = home.gateway.outbox.platforms["discord"]
        await until(lambda: sender.pausing == 1 and sender.calls.value == 8, "the wait of one place that holds no call")
        assert not home.told("platform:down")


async def test_a_start_opens_nobodys_chat_and_reads_what_was_said_there(wire: DiscordWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as home:
        await wire.write("hello")
        await home.shows("I heard you.")
    assert not wire.asked("POST", "users/@me/channels")
    await wire.write("what is it?")
    async with housed(wire, tmp_path / "home") as home:
        await home.shows("It is 42.")
        assert known_as(ANN) not in str(wire.asked("POST", "users/@me/channels"))


async def test_a_thread_in_which_we_were_called_is_ours(home: House, wire: DiscordWire) -> None:
    post = "1190000000000000777"
    await wire.write(f"<@{BOT['id']}> what is it?", chat=GROUP, thread=post)
    await home.shows("It is 42.")
    await wire.write("and you?", chat=GROUP, thread=post)
    (shown,) = await home.shows("I heard you.")
    assert shown.thread == post


async def test_a_thread_is_called_by_what_was_said_and_not_by_what_it_answers(
    wire: DiscordWire, tmp_path: Path
) -> None:
    wire.auto_thread = True
    async with housed(wire, tmp_path / "home") as home:
        first = await wire.write("a long story", by=BEN, chat=GROUP)
        await wire.write(f"<@{BOT['id']}> what is it?", chat=GROUP, reply_to=first)
        (shown,) = await home.shows("It is 42.")
        assert wire.channels[shown.thread]["name"] == "what is it?"


async def test_in_a_quiet_chat_only_words_are_remembered_as_long_as_they_stand(
    wire: DiscordWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await make_quiet(house)
        file = {"id": wire.number(), "filename": "a.jpg", "size": 1, "url": "http://x/a", "proxy_url": "http://x/a"}
        waves = {"id": wire.number(), "name": "waves", "format_type": 1}
        wire.told(wire.message(BEN, CHANNEL, "", sticker_items=[waves]))
        shown = wire.told(wire.message(BEN, CHANNEL, "the word is mellon", attachments=[file]))
        await remembers(house, "the word is mellon")
        await wire.edit(shown, "", by=BEN)
        await remembers(house)


async def test_nothing_is_told_any_more_when_nobody_serves_it() -> None:
    line, heard, skipped = DiscordClient(), list[int](), list[str]()
    with line.telling({"ready": heard.append}, lambda event, _data, _error: skipped.append(event)):
        line.dispatch("ready", 1)
    line.dispatch("ready", 2)
    assert (heard, skipped) == ([1], [])
