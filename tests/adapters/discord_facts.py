"""Things of Discord's as it writes them: people, channels, a server, interactions."""

from typing import Any

from gateway.messages.parts import MessagePart, Poll, Sticker
from gateway.testing.networks.wire import GROUP

APP = "4242000"
BOT: dict[str, Any] = {
    "id": APP,
    "username": "gate",
    "discriminator": "0",
    "avatar": None,
    "global_name": None,
    "bot": True,
}
GUILD = "3001"
CHANNEL = "100000000000002001"
SIDE_CHANNEL = "100000000000002002"
BOT_ROLE = "3002"
TEAM_ROLE = "300000000000003003"
PEOPLE = 100_000_000_000_000_000  # people have the numbers of tests, and this
CHATS = 500_000_000_000_000_000  # likewise their own chats with the bot
ALL_THAT_IS_NEEDED = str(1 << 10 | 1 << 11 | 1 << 15 | 1 << 16 | 1 << 35 | 1 << 38)


def known_as(person: str) -> str:
    return str(int(person) + PEOPLE)


def user(number: str) -> dict[str, Any]:
    return {"id": number, "username": f"person{number}", "discriminator": "0", "avatar": None, "global_name": None}


def member(who: dict[str, Any], roles: list[str] | None = None) -> dict[str, Any]:
    joined = "2026-01-01T00:00:00+00:00"
    about: dict[str, Any] = {"roles": roles or [], "joined_at": joined, "deaf": False, "mute": False, "flags": 0}
    return about | {"nick": None, "avatar": None, "permissions": ALL_THAT_IS_NEEDED, "user": who}


def dm_of(person: str) -> str:
    return str(int(person) + CHATS)


def channel_of(number: str) -> dict[str, Any]:
    if int(number) > CHATS:
        person = user(str(int(number) - CHATS + PEOPLE))
        return {"id": number, "type": 1, "last_message_id": None, "recipients": [person]}
    about = {"id": number, "type": 0, "name": "general", "guild_id": GUILD, "parent_id": None, "position": 0}
    return about | {"permission_overwrites": [], "last_message_id": None, "nsfw": False, "topic": None}


def thread(number: str, *, owner: str, name: str = "a thread") -> dict[str, Any]:
    facts = {"archived": False, "auto_archive_duration": 1440, "archive_timestamp": "2026-01-01T00:00:00+00:00"}
    about = {"id": number, "type": 11, "name": name, "guild_id": GUILD, "parent_id": CHANNEL, "owner_id": owner}
    return about | {"message_count": 0, "member_count": 1, "thread_metadata": facts, "last_message_id": None}


def chat_of(channel: dict[str, Any]) -> str:
    """The chat as tests name it."""
    if channel["type"] == 1:
        return str(int(channel["id"]) - CHATS)
    return GROUP if CHANNEL in (channel["id"], channel["parent_id"]) else str(channel["id"])


def guild(channels: dict[str, dict[str, Any]], bot: dict[str, Any] = BOT) -> dict[str, Any]:
    plain = {"color": 0, "hoist": False, "managed": False, "mentionable": False, "flags": 0, "tags": {}}
    everyone = {**plain, "id": GUILD, "name": "@everyone", "permissions": ALL_THAT_IS_NEEDED, "position": 0}
    ours = {**everyone, "id": BOT_ROLE, "name": "gate", "position": 1, "managed": True, "tags": {"bot_id": bot["id"]}}
    numbers = ("verification_level", "default_message_notifications", "explicit_content_filter", "mfa_level")
    there = [one for one in channels.values() if "guild_id" in one]
    return {
        "id": GUILD,
        "name": "a server",
        "owner_id": "9",
        "member_count": 3,
        "roles": [everyone, ours, {**everyone, "id": TEAM_ROLE, "name": "team", "position": 2}],
        "channels": [one for one in there if one["type"] == 0],
        "threads": [one for one in there if one["type"] == 11],
        "members": [member(bot, [BOT_ROLE])],
        **dict.fromkeys((*numbers, "nsfw_level", "premium_tier", "system_channel_flags", "afk_timeout"), 0),
        **{name: [] for name in ("emojis", "stickers", "features", "presences", "voice_states", "soundboard_sounds")},
        **{name: [] for name in ("stage_instances", "guild_scheduled_events")},
        **dict.fromkeys(("icon", "splash", "banner", "description", "afk_channel_id", "system_channel_id")),
        "preferred_locale": "en-US",
    }


def passed_on(text: str, stamp: str) -> dict[str, Any]:
    """The part of a message that forwards another one."""
    lists: dict[str, Any] = {name: [] for name in ("embeds", "attachments", "mentions", "mention_roles")}
    snapshot = {"content": text, "timestamp": stamp, "edited_timestamp": None, "flags": 0, "type": 0, **lists}
    origin = {"type": 1, "channel_id": CHANNEL, "guild_id": GUILD, "message_id": "5"}
    return {"message_reference": origin, "message_snapshots": [{"message": snapshot}]}


def reaction(channel: dict[str, Any], message: str, emoji: str, by: str) -> dict[str, Any]:
    about = {"user_id": by, "channel_id": channel["id"], "message_id": message, "type": 0, "burst": False}
    there = {"guild_id": GUILD} if "guild_id" in channel else {}
    return {**about, **there, "emoji": {"id": None, "name": emoji}}


def interaction(
    number: str, kind: int, who: dict[str, Any], channel: dict[str, Any], data: dict[str, Any]
) -> dict[str, Any]:
    about: dict[str, Any] = {
        "id": number,
        "application_id": APP,
        "type": kind,
        "token": f"token{number}",
        "version": 1,
        "data": data,
        "channel": channel,
        "channel_id": channel["id"],
        "locale": "en-US",
        "entitlements": [],
        "authorizing_integration_owners": {},
        "attachment_size_limit": 10_000_000,
        "app_permissions": ALL_THAT_IS_NEEDED,
    }
    if "guild_id" not in channel:
        return about | {"user": who["user"], "context": 1}
    return about | {"guild_id": GUILD, "guild": {"id": GUILD}, "member": who, "context": 0}


def keys(message: dict[str, Any]) -> dict[str, str]:
    rows = message.get("components") or []
    return {one["label"]: one["custom_id"] for row in rows for one in row["components"]}


def said_of(part: MessagePart) -> dict[str, Any]:
    """The content of a message that is neither text nor file, if Discord supports it."""
    match part:
        case Sticker():
            return {"sticker_items": [{"id": "66", "name": part.name, "format_type": 1}]}
        case Poll():
            answers = [{"answer_id": at, "poll_media": {"text": name}} for at, name in enumerate(part.options, 1)]
            until = {"expiry": "2040-01-01T00:00:00+00:00", "allow_multiselect": False, "layout_type": 1}
            counts = {"results": {"is_finalized": False, "answer_counts": []}}
            return {"poll": {"question": {"text": part.question}, "answers": answers, **until, **counts}}
    raise AssertionError(f"nobody sends {part} there")
