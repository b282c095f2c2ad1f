"""Slack's messages over Socket Mode, as its documentation describes them: events, slash commands, buttons."""

from typing import Any

from gateway.testing.networks.wire import STRANGER
from tests.adapters.slack_web import BOT
from tests.adapters.slack_wire import CHANNEL

SOMEBODY, DIRECT = f"U0000{STRANGER}", f"D0000{STRANGER}"
STAMP, BEFORE = "1760000000.000501", "1760000000.000400"


def message(where: str = DIRECT, text: str = "what is it?", **more: Any) -> dict[str, Any]:
    rich: dict[str, Any] = {"type": "rich_text", "block_id": "b1", "elements": [section(text)]}
    about: dict[str, Any] = {
        "type": "message",
        "user": SOMEBODY,
        "text": text,
        "ts": STAMP,
        "channel": where,
        "team": "T1",
    }
    about |= {"channel_type": "im" if where[0] == "D" else "channel", "event_ts": STAMP, "blocks": [rich]}
    return {**about, "client_msg_id": "b9c2-1", **more}


def section(text: str) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}


def slack_payloads() -> list[tuple[str, dict[str, Any]]]:
    events = [*said(), *changed(), *told()]
    return [
        *[("events_api", callback(one)) for one in events],
        ("slash_commands", command("/help")),
        ("slash_commands", command("/gateway-status")),
        ("interactive", pressed(DIRECT)),
        ("interactive", pressed(CHANNEL)),
        ("interactive", {"type": "view_submission", "team": {"id": "T1"}, "user": {"id": SOMEBODY}, "view": {}}),
        ("interactive", {"type": "shortcut", "callback_id": "x", "user": {"id": SOMEBODY}, "trigger_id": "1.2"}),
    ]


def callback(event: dict[str, Any]) -> dict[str, Any]:
    about = {"token": "x", "team_id": "T1", "api_app_id": "A1", "type": "event_callback", "event_id": "Ev1"}
    who = {"enterprise_id": None, "team_id": "T1", "user_id": BOT, "is_bot": True, "is_enterprise_install": False}
    return {
        **about,
        "event": event,
        "event_time": 1_760_000_000,
        "authorizations": [who],
        "is_ext_shared_channel": False,
    }


def said() -> list[dict[str, Any]]:
    file = {"id": "F1", "name": "a.pdf", "mimetype": "application/pdf", "size": 1234, "filetype": "pdf"}
    file |= {"url_private": "http://127.0.0.1:1/a", "mode": "hosted", "is_external": False, "title": "a"}
    shared = {"is_share": True, "is_msg_unfurl": True, "author_name": "Carol", "text": "old words", "ts": BEFORE}
    unfurl = {"from_url": "https://example.org/", "title": "a page", "id": 1, "fallback": "x"}
    profile = {"display_name": "eve", "real_name": "Eve E", "avatar_hash": "x", "team": "T1"}
    return [
        message(),
        message(user_profile=profile, text="*bold* <https://example.org|a page> &amp; <#C1|general> <@U1|carol>"),
        message(CHANNEL, f"<@{BOT}> what is it?"),
        {**message(CHANNEL, f"<@{BOT}> what is it?"), "type": "app_mention"},
        message(CHANNEL, "and you?", thread_ts=BEFORE, parent_user_id=BOT),
        message(CHANNEL, "loud", thread_ts=BEFORE, subtype="thread_broadcast", root=message(CHANNEL)),
        message(subtype="file_share", files=[file], upload=False),
        message(
            subtype="file_share", files=[{**file, "mode": "tombstone"}, {"id": "F2", "file_access": "check_file_info"}]
        ),
        message(text="", attachments=[shared]),
        message(attachments=[unfurl]),
        message(subtype="me_message"),
        message(CHANNEL, "by a bot", subtype="bot_message", bot_id="B777", username="other", icons={"emoji": ":x:"}),
        message(text="!status"),
        message(text="x" * 12_000),
    ]


def changed() -> list[dict[str, Any]]:
    before = message()
    after = {**before, "text": "what is it then?", "edited": {"user": SOMEBODY, "ts": STAMP}}
    about = {"type": "message", "hidden": True, "ts": STAMP, "channel": DIRECT, "channel_type": "im"}
    return [
        {**about, "subtype": "message_changed", "message": after, "previous_message": before},
        {**about, "subtype": "message_changed", "message": before, "previous_message": before},
        {**about, "subtype": "message_deleted", "deleted_ts": BEFORE, "previous_message": before},
        {**about, "subtype": "message_replied", "message": {**before, "reply_count": 1}},
    ]


def told() -> list[dict[str, Any]]:
    item = {"type": "message", "channel": DIRECT, "ts": BEFORE}
    about = {"user": SOMEBODY, "item": item, "item_user": BOT, "event_ts": STAMP}
    return [
        {**about, "type": "reaction_added", "reaction": "+1"},
        {**about, "type": "reaction_removed", "reaction": "party::skin-tone-2"},
        {**about, "type": "reaction_added", "reaction": "x", "item": {"type": "file", "file": "F1"}},
        {"type": "member_joined_channel", "user": SOMEBODY, "channel": CHANNEL, "channel_type": "C", "team": "T1"},
        {"type": "app_home_opened", "user": SOMEBODY, "channel": DIRECT, "tab": "home"},
        {"type": "channel_rename", "channel": {"id": CHANNEL, "name": "new", "created": 1}},
        {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": ["U9"]}},
        message(CHANNEL, "joined", subtype="channel_join"),
    ]


def command(name: str) -> dict[str, Any]:
    about = {"command": name, "text": "now", "user_id": SOMEBODY, "user_name": "eve", "team_id": "T1"}
    about |= {"team_domain": "ateam", "channel_id": DIRECT, "channel_name": "directmessage", "api_app_id": "A1"}
    return {**about, "trigger_id": "13.3.7", "response_url": "http://127.0.0.1:1/", "is_enterprise_install": "false"}


def pressed(where: str) -> dict[str, Any]:
    action = {"type": "button", "action_id": "gateway:0", "block_id": "b", "value": "yes|", "action_ts": STAMP}
    about = {"type": "block_actions", "user": {"id": SOMEBODY, "username": "eve", "team_id": "T1"}, "api_app_id": "A1"}
    shown = {**message(where), "user": BOT, "bot_id": "B1", "blocks": [{"type": "actions", "block_id": "gateway"}]}
    container = {"type": "message", "message_ts": STAMP, "channel_id": where, "is_ephemeral": False}
    about |= {"channel": {"id": where, "name": "x"}, "message": shown, "container": container, "team": {"id": "T1"}}
    return {**about, "actions": [action], "trigger_id": "1.2.3", "response_url": "http://127.0.0.1:1/", "state": {}}
