"""Telegram's updates, as the Bot API describes them: the requested kinds, with all their possible fields."""

from typing import Any

from gateway.testing.networks.wire import STRANGER
from tests.adapters.telegram_wire import BOT

SOMEBODY: dict[str, Any] = {
    "id": int(STRANGER),
    "is_bot": False,
    "first_name": "Eve",
    "last_name": "E",
    "username": "eve",
    "language_code": "en",
    "is_premium": True,
}
OTHER = {"id": 55, "is_bot": False, "first_name": "Carol"}
DIRECT = {"id": int(STRANGER), "type": "private", "first_name": "Eve", "username": "eve"}
GROUP = {"id": -2001, "type": "supergroup", "title": "a group", "is_forum": True, "username": "agroup"}
CHANNEL = {"id": -1009, "type": "channel", "title": "a channel"}
DATE = 1_760_000_000
FILE = {"file_id": "AgACAgIAAxkB", "file_unique_id": "AQADuLcxG", "file_size": 1234}
SIZE = {**FILE, "width": 90, "height": 51}


def message(chat: dict[str, Any] = DIRECT, **more: Any) -> dict[str, Any]:
    return {"message_id": 501, "date": DATE, "from": SOMEBODY, "chat": chat, **more}


def telegram_payloads() -> list[tuple[str, dict[str, Any]]]:
    return [
        *[("message", one) for one in (*said(), *carried(), *told())],
        ("edited_message", message(text="what is it then?", edit_date=DATE + 5)),
        ("edited_message", message(caption="new words", photo=[SIZE], edit_date=DATE + 5)),
        ("callback_query", pressed(message(text="may it run?", **{"from": BOT}))),
        ("callback_query", pressed({"chat": DIRECT, "message_id": 9, "date": 0})),
        ("message_reaction", reaction([{"type": "emoji", "emoji": "👍"}])),
        ("message_reaction", reaction([{"type": "custom_emoji", "custom_emoji_id": "5368324170671202286"}])),
        ("message_reaction", reaction([{"type": "paid"}])),
        ("message_reaction", {**reaction([]), "user": None, "actor_chat": GROUP}),
        ("channel_post", {"message_id": 1, "date": DATE, "chat": CHANNEL, "sender_chat": CHANNEL, "text": "news"}),
        ("my_chat_member", membership()),
        ("poll", poll()),
    ]


def said() -> list[dict[str, Any]]:
    """Texts, and what they hang together with."""
    url = {"type": "text_link", "offset": 0, "length": 4, "url": "https://example.org/"}
    mention = {"type": "mention", "offset": 0, "length": 9}
    spoken = {"type": "text_mention", "offset": 0, "length": 4, "user": OTHER}
    emoji = {"type": "custom_emoji", "offset": 5, "length": 2, "custom_emoji_id": "1"}
    replied = message(GROUP, text="a long story", **{"from": OTHER})
    begun = message(GROUP, forum_topic_created={"name": "Plants", "icon_color": 7322096})
    preview = {"is_disabled": False, "url": "https://example.org/"}
    return [
        message(text="what is it?"),
        message(text="/status now", entities=[{"type": "bot_command", "offset": 0, "length": 7}]),
        message(text="here and there", entities=[url, spoken, emoji], link_preview_options=preview),
        message(GROUP, text="@gate_bot what is it?", entities=[mention]),
        message(GROUP, text="and you?", reply_to_message=replied, quote={"text": "long", "position": 2}),
        message(GROUP, text="in a topic", reply_to_message=begun, message_thread_id=501, is_topic_message=True),
        message(text="passed on", forward_origin={"type": "user", "date": DATE, "sender_user": OTHER}),
        message(text="passed on", forward_origin={"type": "hidden_user", "date": DATE, "sender_user_name": "Mallory"}),
        message(text="passed on", forward_origin={"type": "chat", "date": DATE, "sender_chat": GROUP}),
        message(text="x", forward_origin={"type": "channel", "date": DATE, "chat": CHANNEL, "message_id": 4}),
        message(GROUP, text="as the group", sender_chat=GROUP, author_signature="boss"),
        message(text="by a bot", via_bot=BOT),
        message(text="x" * 4096),
        message(text="x", external_reply={"origin": {"type": "user", "date": DATE, "sender_user": OTHER}}),
    ]


def carried() -> list[dict[str, Any]]:
    """Return the parts that are not text."""
    place = {"latitude": 52.5, "longitude": 13.4, "horizontal_accuracy": 12.5}
    video = {**SIZE, "duration": 12, "thumbnail": SIZE, "file_name": "a.mp4", "mime_type": "video/mp4"}
    sticker = {**SIZE, "type": "regular", "is_animated": False, "is_video": False, "emoji": "🙂", "set_name": "set"}
    return [
        message(photo=[SIZE, {**SIZE, "width": 800, "height": 600}], caption="look", has_media_spoiler=True),
        message(photo=[SIZE], media_group_id="13371", caption="one of several"),
        message(document={**FILE, "file_name": "a.pdf", "mime_type": "application/pdf", "thumbnail": SIZE}),
        message(voice={**FILE, "duration": 3, "mime_type": "audio/ogg"}),
        message(audio={**FILE, "duration": 200, "performer": "P", "title": "T", "mime_type": "audio/mpeg"}),
        message(video=video, caption="see", show_caption_above_media=True),
        message(video_note={**FILE, "length": 240, "duration": 5, "thumbnail": SIZE}),
        message(animation=video, document=FILE),
        message(sticker=sticker),
        message(location={**place, "live_period": 60, "heading": 1}),
        message(location=place, venue={"location": place, "title": "Home", "address": "1 Road"}),
        message(contact={"phone_number": "+1234", "first_name": "Carol", "user_id": 55, "vcard": "BEGIN:VCARD"}),
        message(dice={"emoji": "🎲", "value": 4}),
        message(poll=poll()),
        message(story={"chat": CHANNEL, "id": 3}),
        message(web_app_data={"data": "{}", "button_text": "open"}),
    ]


def told() -> list[dict[str, Any]]:
    """Return the network's own notices, in the form of messages."""
    return [
        message(GROUP, new_chat_members=[OTHER]),
        message(GROUP, left_chat_member=OTHER),
        message(GROUP, new_chat_title="another"),
        message(GROUP, pinned_message=message(GROUP, text="read this")),
        message(GROUP, forum_topic_edited={"name": "Trees"}),
        message(GROUP, migrate_from_chat_id=-77),
        message(GROUP, video_chat_ended={"duration": 4}),
    ]


def poll() -> dict[str, Any]:
    options = [{"text": name, "voter_count": 0, "persistent_id": name} for name in ("yes", "no")]
    flags = dict.fromkeys(("is_closed", "is_anonymous", "allows_multiple_answers", "members_only"), False)
    more = {"allows_revoting": False, "type": "regular", "total_voter_count": 0}
    return {"id": "1", "question": "Shall we?", "options": options, **flags, **more}


def pressed(shown: dict[str, Any]) -> dict[str, Any]:
    return {"id": "4382", "from": SOMEBODY, "chat_instance": "-5", "message": shown, "data": "yes"}


def reaction(new: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"chat": DIRECT, "message_id": 501, "user": SOMEBODY, "date": DATE}
    return {**about, "old_reaction": [], "new_reaction": new}


def membership() -> dict[str, Any]:
    old, new = ({"user": BOT, "status": status} for status in ("left", "member"))
    return {"chat": GROUP, "from": SOMEBODY, "date": DATE, "old_chat_member": old, "new_chat_member": new}
