"""Discord's gateway events, as its documentation describes them: those that a bot with our intents receives."""

from typing import Any

from gateway.testing.networks.wire import STRANGER
from tests.adapters.discord_facts import (
    APP,
    BOT,
    CHANNEL,
    GUILD,
    channel_of,
    dm_of,
    guild,
    interaction,
    known_as,
    member,
    passed_on,
    reaction,
    thread,
    user,
)

SOMEBODY = {**user(known_as(STRANGER)), "public_flags": 0, "avatar_decoration_data": None, "primary_guild": None}
OTHER = user("555000")
STAMP = "2026-01-02T03:04:05.678000+00:00"
DIRECT = dm_of(STRANGER)


def message(where: str = DIRECT, content: str = "what is it?", **more: Any) -> dict[str, Any]:
    about = {"id": "1190000000000000501", "channel_id": where, "author": SOMEBODY, "content": content, "type": 0}
    about |= {"timestamp": STAMP, "edited_timestamp": None, "flags": 0, "channel_type": 1}
    about |= dict.fromkeys(("tts", "mention_everyone", "pinned"), False)
    about |= {name: [] for name in ("mentions", "mention_roles", "attachments", "embeds", "components")}
    if where == CHANNEL:
        about |= {"guild_id": GUILD, "member": member(SOMEBODY), "channel_type": 0}
    return {**about, **more}


def discord_payloads() -> list[tuple[str, dict[str, Any]]]:
    return [
        *[("MESSAGE_CREATE", one) for one in (*said(), *carried(), *told())],
        ("MESSAGE_UPDATE", message(content="what is it then?", edited_timestamp=STAMP)),
        ("MESSAGE_UPDATE", message(embeds=[embed()])),
        ("MESSAGE_DELETE", {"id": "1190000000000000501", "channel_id": CHANNEL, "guild_id": GUILD}),
        ("MESSAGE_REACTION_ADD", {**reaction(channel_of(DIRECT), "5", "👍", known_as(STRANGER))}),
        ("MESSAGE_REACTION_ADD", {**reaction(channel_of(CHANNEL), "5", "🙂", SOMEBODY["id"]), "member": somebody()}),
        ("MESSAGE_REACTION_REMOVE", {**reaction(channel_of(DIRECT), "5", "x", SOMEBODY["id"]), "emoji": custom()}),
        ("INTERACTION_CREATE", interaction("7001", 2, somebody(), channel_of(CHANNEL), called())),
        ("INTERACTION_CREATE", interaction("7002", 2, somebody(), channel_of(DIRECT), called())),
        ("INTERACTION_CREATE", interaction("7005", 4, somebody(), channel_of(DIRECT), typed())),
        ("INTERACTION_CREATE", interaction("7006", 2, somebody(), channel_of(DIRECT), typed())),
        ("INTERACTION_CREATE", interaction("7003", 3, somebody(), channel_of(DIRECT), press()) | {"message": bots()}),
        ("INTERACTION_CREATE", interaction("7004", 3, somebody(), channel_of(CHANNEL), press()) | {"message": bots()}),
        ("CHANNEL_CREATE", {**channel_of("20077"), "name": "another", "rate_limit_per_user": 0}),
        ("THREAD_CREATE", {**thread("1190000000000000600", owner="55"), "newly_created": True}),
        ("THREAD_UPDATE", thread("1190000000000000600", owner="55", name="renamed")),
        ("GUILD_UPDATE", guild({CHANNEL: channel_of(CHANNEL)})),
        ("GUILD_ROLE_UPDATE", {"guild_id": GUILD, "role": guild({})["roles"][0]}),
        ("CHANNEL_PINS_UPDATE", {"guild_id": GUILD, "channel_id": CHANNEL, "last_pin_timestamp": STAMP}),
        ("GUILD_EMOJIS_UPDATE", {"guild_id": GUILD, "emojis": [custom()]}),
        ("QUANTUM_UPDATE", {"id": "1"}),
    ]


def said() -> list[dict[str, Any]]:
    replied = message(CHANNEL, "a long story", author=OTHER)
    where = {"type": 0, "channel_id": CHANNEL, "guild_id": GUILD, "message_id": replied["id"]}
    mention = {**BOT, "member": member(BOT)}
    return [
        message(),
        message(content="x" * 2000),
        message(CHANNEL, f"<@{APP}> what is it?", mentions=[mention]),
        message(CHANNEL, "and <@555000>?", mentions=[{**OTHER, "member": member(OTHER)}], mention_roles=["3002"]),
        message(CHANNEL, "and you?", type=19, message_reference=where, referenced_message=replied),
        message(CHANNEL, "gone", type=19, message_reference=where, referenced_message=None),
        message(**{**passed_on("secret words", STAMP), "content": ""}),
        message(CHANNEL, "said by a hook", webhook_id="99", author={**OTHER, "bot": True}, application_id="99"),
        message(content="by a bot", author={**OTHER, "bot": True}),
        message(content="/status"),
    ]


def carried() -> list[dict[str, Any]]:
    file = {"id": "88", "filename": "a.png", "size": 1234, "url": "http://127.0.0.1:1/a", "proxy_url": "x"}
    picture = {**file, "content_type": "image/png", "width": 10, "height": 10, "ephemeral": False, "flags": 0}
    voice = {**file, "filename": "voice.ogg", "duration_secs": 1.5, "waveform": "AAAA", "content_type": "audio/ogg"}
    answers = [{"answer_id": 1, "poll_media": {"text": "yes"}}, {"answer_id": 2, "poll_media": {"text": "no"}}]
    poll = {"question": {"text": "Shall we?"}, "answers": answers, "expiry": STAMP, "allow_multiselect": False}
    sticker = {"id": "66", "name": "wave", "format_type": 1}
    return [
        message(content="", sticker_items=[sticker]),
        message(content="", poll={**poll, "layout_type": 1, "results": {"is_finalized": False, "answer_counts": []}}),
        message(CHANNEL, "look", embeds=[embed()], components=[buttons()]),
        message(CHANNEL, "look", attachments=[picture]),
        message(CHANNEL, "", attachments=[voice], flags=8192),
        message(CHANNEL, "done", reactions=[{"emoji": custom(), "count": 1, "me": False, "count_details": {}}]),
    ]


def told() -> list[dict[str, Any]]:
    """Return Discord's own notices, in the form of messages."""
    return [message(CHANNEL, "", type=kind) for kind in (6, 7, 8, 18, 21, 24, 46)]


def somebody() -> dict[str, Any]:
    return member(SOMEBODY)


def bots() -> dict[str, Any]:
    return message(author=BOT, components=[buttons()])


def embed() -> dict[str, Any]:
    fields = [{"name": "a", "value": "b", "inline": True}]
    about = {"type": "rich", "title": "a page", "description": "words", "url": "https://example.org/", "color": 255}
    return {**about, "timestamp": STAMP, "fields": fields, "footer": {"text": "end"}, "author": {"name": "Carol"}}


def buttons() -> dict[str, Any]:
    return {"type": 1, "id": 1, "components": [{"type": 2, "id": 2, "style": 1, "label": "Yes", "custom_id": "yes|"}]}


def custom() -> dict[str, Any]:
    return {"id": "41771983429993937", "name": "LUL", "animated": True, "roles": [], "require_colons": True}


def called() -> dict[str, Any]:
    options = [{"type": 3, "name": "arguments", "value": "now"}]
    return {"id": "77", "name": "status", "type": 1, "options": options, "resolved": {}}


def typed() -> dict[str, Any]:
    options = [{"type": 3, "name": "model", "value": "sma", "focused": True}]
    return {"id": "77", "name": "model", "type": 1, "options": options, "resolved": {}}


def press() -> dict[str, Any]:
    return {"component_type": 2, "custom_id": "yes|", "id": 2}
