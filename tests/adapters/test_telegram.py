"""Features of Telegram alone: its poll, its units, its topics, its errors; with the real library, on loopback."""

import stat
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler
from telegram.error import NetworkError

from gateway.adapters.telegram.connection import make_bot
from gateway.adapters.telegram.format import render_messages
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.adapters.telegram.transport import NO_PREVIEW
from gateway.config.fields import Secret
from gateway.errors import AdapterError
from gateway.messages.parts import Location
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.suite import ASKS, may_ask
from gateway.testing.networks.suite_groups import remembers
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.telegram_wire import BOT, TOKEN, Refused, TelegramWire, chat_of, user
from tests.spine import until


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


@pytest.fixture
async def house(wire: TelegramWire, tmp_path: Path) -> AsyncIterator[House]:
    async with housed(wire, tmp_path / "home") as house:
        yield house


async def test_a_second_reader_is_told_in_words(wire: TelegramWire, house: House) -> None:
    wire.ills["getUpdates"] = [Refused(409, "Conflict: terminated by other getUpdates request")]
    await wire.write("hello")
    (told,) = await house.hears("platform:down")
    assert "another program reads this bot's messages" in told["reason"]
    await house.is_up()
    await house.shows("I heard you.")


async def test_no_call_goes_out_that_is_for_another_gateway_to_make(wire: TelegramWire) -> None:
    """As late as can be: when the connection stands, and once more when only the body is still to go."""
    rights = [None] * 100  # as often it still is ours

    def check_right() -> None:
        if not rights:
            raise AdapterError("another gateway may serve telegram by now")
        rights.pop()

    async with make_bot(TelegramSettings(token=Secret(TOKEN), base_url=wire.url), check_right) as bot:
        await bot.send_message(int(ANN), "one", link_preview_options=NO_PREVIEW)
        for left in ([], [None]):
            for call in (bot.send_message(int(ANN), "two", link_preview_options=NO_PREVIEW), bot.get_updates(1)):
                rights[:] = left
                with pytest.raises(NetworkError, match="another gateway may serve telegram by now"):
                    await call
    assert [one.text for one in wire.shown] == ["one"]
    assert not wire.asked("getUpdates")


async def test_a_webhook_is_told_in_words(wire: TelegramWire, house: House) -> None:
    wire.webhook = "https://elsewhere.example/hook"
    wire.hang_up()
    await until(lambda: any("webhook" in one["reason"] for one in house.told("platform:down")), "the news")
    assert not house.presence.up
    wire.webhook = ""
    await until(lambda: house.presence.up, "the return")


async def test_what_the_app_has_cut_is_one_message(wire: TelegramWire, house: House) -> None:
    await wire.write("what is " + "x" * 4090)
    await wire.write("and the rest")
    (received,) = await house.hears("message:received")
    assert received["text"].endswith("xand the rest")


async def test_albums_of_two_people_do_not_mix(wire: TelegramWire, house: House) -> None:
    await wire.upload(("a.jpg", b"a"), ("b.jpg", b"b"), caption="what is this?")
    await wire.upload(("c.jpg", b"c"), ("d.jpg", b"d"), caption="what is that?", by=BEN)
    received = {one["user_id"]: one for one in await house.hears("message:received", 2)}
    for person, expected in ((ANN, [b"a", b"b"]), (BEN, [b"c", b"d"])):
        paths = [anyio.Path(one["path"]) for one in received[person]["attachments"]]
        assert [await path.read_bytes() for path in paths] == expected


async def test_updates_out_of_order_are_all_taken_once(wire: TelegramWire, house: House) -> None:
    said = [wire.message(person, person, text="what is it?") for person in (ANN, BEN)]
    wire.updates = [
        {"update_id": 9_500_002, "message": said[0]},
        {"update_id": 9_500_001, "message": said[1]},
        {"update_id": 9_500_001, "message": said[1]},
    ]
    await wire.noise()
    await house.shows("It is 42.", 2)
    await house.hears("message:received", 2)


async def test_a_file_that_comes_slowly_holds_up_its_own_chat_alone(wire: TelegramWire, house: House) -> None:
    wire.files_flow.clear()
    await wire.upload(("a.pdf", b"a"), caption="what is this?")
    await wire.write("and you?")
    await wire.write("what is it?", by=BEN)
    (shown,) = await house.shows("It is 42.")
    assert shown.chat == BEN
    assert len(wire.shown) == 1
    wire.files_flow.set()

    def received() -> str:
        return "\n\n".join(one["text"] for one in house.told("message:received") if one["user_id"] == ANN)

    await until(lambda: received() == "what is this?\n\nand you?", "both, in order")


async def test_a_crash_while_a_file_comes_loses_nothing(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        wire.files_flow.clear()
        await wire.upload(("a.pdf", b"a"), caption="what is this?")
        await wire.write("what is it?", by=BEN)
        await house.shows("It is 42.")
        wire.hang_up()
    wire.files_flow.set()
    async with housed(wire, tmp_path / "home") as house:
        await house.shows("It is 42.", 2)
        assert [one.chat for one in wire.shown] == [BEN, ANN]


async def test_a_file_that_telegram_no_longer_has_is_told_and_nothing_else_is_lost(
    wire: TelegramWire, house: House
) -> None:
    wire.ills["getFile"] = [Refused(404, "Not Found")]
    await wire.upload(("letter.pdf", b"x"), caption="what is this?")
    (received,) = await house.hears("message:received")
    assert received["text"] == "what is this?\n[the file letter.pdf could not be fetched: Telegram no longer has it]"
    assert house.presence.up


async def test_what_is_forwarded_or_quoted_is_marked_as_somebody_elses(wire: TelegramWire, house: House) -> None:
    origin = {"type": "user", "date": 1, "sender_user": {**user("5"), "first_name": "Eve] /stop"}}
    wire.told({**wire.message(ANN, ANN, text="/stop what is it?"), "forward_origin": origin})
    (received,) = await house.hears("message:received")
    assert received["text"] == "[forwarded from Eve /stop]\n/stop what is it?"
    first = await wire.write("a long story", by=BEN, chat=GROUP)
    about = wire.message(ANN, GROUP, text=f"@{BOT['username']} what is it?", **wire._where("", first))
    wire.told({**about, "entities": [{"type": "mention", "offset": 0, "length": 9}]})
    received = (await house.hears("message:received", 2))[1]
    assert received["text"] == "[in reply to: a long story]\nwhat is it?"
    assert (received["reply_to"], received["sent_at"]) == (first, float(about["date"]))
    said, chat = received["extra"], about["chat"]
    assert (said["reply_to_text"], said["reply_to_author_id"]) == ("a long story", BEN)
    assert (received["chat_name"], said["raw"]["chat"]["id"]) == (chat["title"], chat["id"])
    assert said["update_id"] > 9_000_000


async def test_a_topic_is_told_by_its_name(wire: TelegramWire, house: House) -> None:
    begun = {**wire.message(BEN, GROUP), "forum_topic_created": {"name": "Plants", "icon_color": 1}}
    about = wire.message(ANN, GROUP, text="/status", message_thread_id=begun["message_id"], is_topic_message=True)
    wire.told({**about, "reply_to_message": begun})
    (received,) = await house.hears("message:received")
    assert received["extra"]["chat_topic"] == "Plants"
    assert "reply_to_text" not in received["extra"]


async def test_a_group_that_has_moved_is_written_to_where_it_is_now(wire: TelegramWire, house: House) -> None:
    moved = Refused(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-3001)
    wire.ills["sendMessage"] = [moved]
    await wire.mention("what is it?")
    (shown,) = await house.shows("It is 42.")
    assert shown.chat == "-3001"


async def test_the_menu_has_the_commands_and_admins_have_theirs(wire: TelegramWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=f"access: {{admins: {{telegram: ['{ANN}']}}}}\n"):
        await until(lambda: len(wire.asked("setMyCommands")) == 2, "the menus")
        everybodys, admins = ({one["command"] for one in asked["commands"]} for asked in wire.asked("setMyCommands"))
        assert {"help", "stop", "new"} <= everybodys
        assert admins - everybodys == {"platform", "letters", "pairing", "restart", "settings"}


async def test_what_hides_in_groups_is_complained_of(wire: TelegramWire, tmp_path: Path) -> None:
    wire.bot = {**BOT, "can_read_all_group_messages": False}
    async with housed(wire, tmp_path / "home", environ={"TELEGRAM_REQUIRE_MENTION": "false"}) as house:
        await until(lambda: bool(house.presence.complaints), "the complaint")
        assert "/setprivacy" in house.presence.complaints[0]


async def test_what_hides_is_complained_of_as_soon_as_an_admin_wants_it_heard(
    wire: TelegramWire, tmp_path: Path
) -> None:
    wire.bot = {**BOT, "can_read_all_group_messages": False}
    async with housed(wire, tmp_path / "home", settings=f"access: {{admins: {{telegram: ['{ANN}']}}}}\n") as house:
        for answer, complaints in {"quiet": 1, "default": 0}.items():
            await wire.write(f"/settings answer {answer}", chat=GROUP)
            await until(lambda: len(house.presence.complaints) == complaints, f"what is complained of with {answer}")  # noqa: B023


async def test_in_a_quiet_chat_only_words_are_remembered_as_long_as_they_stand(
    wire: TelegramWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home", settings=f"chats: {{'telegram:{GROUP}': {{answer: quiet}}}}\n") as house:
        wire.told(wire.message(BEN, GROUP, contact={"phone_number": "+49301", "first_name": "Ben Oak"}))
        photo = [{"file_id": "f", "file_unique_id": "u", "width": 10, "height": 10}]
        shown = wire.message(BEN, GROUP, photo=photo, caption="the word is mellon")
        wire.told(shown)
        await remembers(house, "the word is mellon")
        wire.update("edited_message", {**shown, "caption": "", "edit_date": shown["date"]})
        await remembers(house)


@pytest.mark.parametrize(
    ("markdown", "text", "kinds"),
    [
        ("**bold** and `code`", "bold and code", ["bold", "code"]),
        ("# Title\n\ntext", "Title\n\ntext", ["bold"]),
        ("[a](https://example.org)", "a", ["text_link"]),
        ("costs $5 and $6 <b>", "costs $5 and $6 <b>", []),
        ("```py\nx = 1\n```", "x = 1", ["pre"]),
    ],
)
def test_markdown_is_text_and_entities(markdown: str, text: str, kinds: list[str]) -> None:
    (piece,) = render_messages(markdown)
    assert piece.text == text
    assert [entity.type for entity in piece.entities] == kinds


async def test_what_the_library_cannot_build_is_passed_over_counted_and_kept(
    wire: TelegramWire, tmp_path: Path
) -> None:
    options = [{"text": "a", "voter_count": 0, "persistent_id": "1"}]
    poll = {"id": "1", "question": "?", "options": options, "total_voter_count": 0, "is_closed": False}
    undated = wire.message(ANN, ANN, text=f"the token is {wire.token}")
    del undated["date"]
    async with housed(wire, tmp_path / "home") as house:
        wire.updates.append({"message": wire.message(ANN, ANN, text="no number")})
        wire.told({**wire.message(BEN, BEN), "poll": poll})  # a server older than the library sends it so
        wire.told(undated)
        wire.told({**wire.message(ANN, ANN, text="odd"), "chat": None})
        wire.told({**wire.message(ANN, ANN, text="odd"), "chat": {**chat_of(ANN), "id": {"": {}}}})
        await wire.write("what is it?", by=BEN)
        (shown,) = await house.shows("It is 42.")
        assert shown.chat == BEN
        assert house.presence.unreadable >= 4
        (told,) = house.told("platform:unreadable")
        assert told["kind"] == "update"
        assert not house.told("platform:down")
        kept = await look_at(house)
        assert sum("the token is [secret]" in text for text in kept) == 1
        assert not any(wire.token in text for text in kept)
        wire.updates.pop(0)
    async with housed(wire, tmp_path / "home") as house:
        await wire.write("what is it?")
        await house.shows("It is 42.", 2)
        assert not house.presence.unreadable


async def test_a_place_has_its_name_and_who_shows_where_they_go_says_it_once(
    wire: TelegramWire, tmp_path: Path
) -> None:
    async with housed(wire, tmp_path / "home") as house:
        await wire.send(Location(latitude=52.5, longitude=13.25, title="Zoo]\n[owner", address="Road 8"))
        await house.shows("I heard you.")
        (received,) = await house.hears("message:received")
        assert received["text"] == "[place: Zoo owner, Road 8 (52.5, 13.25)]"
        assert [one["title"] for one in received["parts"]] == ["Zoo owner"]
        place = {"latitude": 52.5, "longitude": 13.25, "live_period": 60}
        wire.update("edited_message", {**wire.message(ANN, ANN), "location": place, "edit_date": 1})
        await wire.write("what is it?")
        await house.shows("It is 42.")
        await house.hears("message:received", 2)


async def look_at(house: House) -> list[str]:
    """Read the file that only the owner may read."""
    paths = [path async for path in anyio.Path(house.gateway.home.unreadable).iterdir()]
    assert {stat.S_IMODE((await path.stat()).st_mode) for path in paths} == {0o600}
    return [await path.read_text() for path in paths]


async def test_a_server_that_holds_no_polls_is_asked_once_a_second(wire: TelegramWire, house: House) -> None:
    wire.holds_polls, polled = False, len(wire.asked("getUpdates"))
    wire.hang_up()  # the adapter may be started anew for that, and looks then who else polls
    await until(lambda: any(one["timeout"] != "0" for one in wire.asked("getUpdates")[polled:]), "a poll")
    before, begun = len(wire.asked("getUpdates")), anyio.current_time()
    await anyio.sleep(2.5)
    assert len(wire.asked("getUpdates")) - before <= anyio.current_time() - begun + 1
    await wire.write("what is it?")
    await house.shows("It is 42.")


@pytest.mark.parametrize(
    "answer", ['{"ok": true, "result": {"message_id": 7}}', '{"ok": true}', "<html>thank you</html>"]
)
async def test_what_telegram_took_is_not_sent_twice_whatever_it_answers(
    answer: str, wire: TelegramWire, house: House
) -> None:
    wire.strange = [web.Response(text=answer)]
    await wire.write("what is it?")
    (sent,) = await house.hears("message:sent")
    assert len(house.with_text("It is 42.")) == 1
    assert sent["text"] == "It is 42."


async def test_an_answer_into_a_deleted_topic_comes_into_the_chat_and_says_so(wire: TelegramWire, house: House) -> None:
    wire.ills["sendMessage"] = [Refused(400, "Bad Request: message thread not found")]
    await wire.write("/whoami", chat=GROUP, thread="77")
    await until(lambda: len(wire.shown) == 2, "the note and the answer")
    note, answer = wire.shown
    assert "was deleted" in note.text
    assert (note.thread, answer.thread, answer.chat) == ("", "", GROUP)


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_anonymous_admin_is_heard_as_the_group_is(wire: TelegramWire, tmp_path: Path, allowed: bool) -> None:
    environ = {"TELEGRAM_GROUP_ALLOWED_CHATS": GROUP} if allowed else {}
    bot = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    async with housed(wire, tmp_path / "home", environ=environ) as house:
        about = wire.message("1087968824", GROUP, text="/whoami", sender_chat=chat_of(GROUP))
        wire.told({**about, "from": bot})
        channel = {"id": -9, "type": "channel", "title": "news"}
        wire.told({**wire.message("777000", GROUP, text="/whoami"), "sender_chat": channel})
        if allowed:
            (received,) = await house.hears("message:received")
            assert (received["user_id"], received["user_name"]) == (GROUP, "a group")
        else:
            (denied,) = await house.hears("access:denied")
            assert denied["user_id"] == GROUP


async def test_a_pairing_code_that_could_not_be_sent_is_told_again(wire: TelegramWire, house: House) -> None:
    wire.ills["sendMessage"] = [Refused(400, "Bad Request: not now")]
    await wire.write("hello", by=STRANGER)
    await house.hears("message:failed")
    pairings = house.gateway.access.pairings
    await until(lambda: [one.told for one in pairings.asking] == [False], "the note of it")
    await wire.write("hello?", by=STRANGER)
    await house.shows("Your pairing code is")


async def test_links_open_previews_where_somebody_wants_that_and_those_of_questions_never(
    wire: TelegramWire, tmp_path: Path
) -> None:
    wire.has_previews = True
    settings = f"platforms: {{telegram: {{link_previews: true}}}}\n{may_ask(wire)}"
    async with housed(wire, tmp_path / "home", *ASKS, settings=settings) as house:
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        await wire.press(wire.shown[-1], "Yes")
        await house.shows("Did.")
        asked, answer = [asked for name, asked in wire.calls if name == "sendMessage"]
        assert [one["link_preview_options"]["is_disabled"] for one in (asked, answer)] == [True, False]


async def test_a_poll_that_works_ends_the_back_off_and_a_page_in_its_place_is_no_trace_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken, wire = list[str](), TelegramWire(holds_polls=False)

    @web.middleware
    async def break_polls(request: web.Request, handler: Handler) -> web.StreamResponse:
        if broken and request.path.endswith("getUpdates"):
            page = f"<html>\n<h1>502 Bad Gateway</h1>\n<hr>{broken.pop()}</html>"
            return web.Response(status=502, text=page, content_type="text/html")
        return await handler(request)

    wire.middlewares.append(break_polls)
    async with wire.serving(), housed(wire, tmp_path / "home") as house:
        attempts = next(one.part.attempts for one in house.gateway.platforms)
        for count in (1, 2):
            broken.append("nginx")
            await wire.write("and you?")
            await house.shows("I heard you.", count)
            await until(lambda count=count: house.part.restarts == count, "the start after it")  # type: ignore[misc]
            await until(lambda: not attempts.failures, "the end of the back-off")
        assert not [one for one in caplog.records if "html" in one.getMessage() or one.exc_info]
