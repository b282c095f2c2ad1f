"""A message in Hermes's shape: all that its network said of it, and what is not there is named once."""

from typing import Any

import pytest

from gateway.events import Event
from gateway.hermes.plugin.message_shape import build_message_event
from gateway.hermes.shim.network_message import NetworkMessage

RAW = {"message_id": 7, "from": {"id": 5, "first_name": "Ann"}, "chat": {"id": -1}, "entities": [{"type": "mention"}]}
FIELDS: dict[str, Any] = {
    "platform": "telegram",
    "chat_id": "-1",
    "chat_name": "Garden",
    "chat_type": "forum",
    "thread_id": "3",
    "user_id": "5",
    "user_name": "Ann",
    "message_id": "7",
    "text": "what is it?",
    "attachments": [{"kind": "image", "path": "/files/a.jpg", "media_type": "image/jpeg"}],
    "reply_to": "6",
    "sent_at": 1_700_000_000.0,
    "extra": {
        "chat_topic": "Plants",
        "reply_to_text": "a rose",
        "reply_to_author_id": "8",
        "reply_to_author_name": "Ben",
        "reply_to_is_own": True,
        "update_id": 9,
        "raw": RAW,
    },
}


def test_every_field_that_the_network_told_is_there() -> None:
    event = build_message_event(Event("message:received", FIELDS))
    source = event.source
    assert source
    assert (source.platform.value, source.chat_id, source.chat_name, source.chat_topic) == (
        *("telegram", "-1"),
        *("Garden", "Plants"),
    )
    assert (source.chat_type, source.thread_id, source.message_id) == ("forum", "3", "7")
    assert (event.message_type.value, event.media_urls, event.media_types) == (
        *("photo", ["/files/a.jpg"]),
        ["image/jpeg"],
    )
    assert (event.reply_to_message_id, event.reply_to_text, event.reply_to_is_own_message) == ("6", "a rose", True)
    assert (event.reply_to_author_id, event.reply_to_author_name) == ("8", "Ben")
    assert (event.platform_update_id, event.timestamp.timestamp()) == (9, 1_700_000_000.0)


def test_a_server_is_named_before_its_channel_and_is_the_scope() -> None:
    extra = {"guild": "12", "guild_name": "House", "parent_chat": "13"}
    source = build_message_event(Event("message:received", {**FIELDS, "platform": "discord", "extra": extra})).source
    assert source
    assert (source.chat_name, source.scope_id, source.guild_id) == ("House / #Garden", "12", "12")
    assert source.parent_chat_id == "13"


def test_on_slack_a_chats_name_is_its_id_and_a_persons_where_none_is_known() -> None:
    fields = {**FIELDS, "platform": "slack", "chat_id": "C1", "user_id": "U1"}
    unnamed = {**fields, "user_name": ""}
    sources = [build_message_event(Event("message:received", one)).source for one in (fields, unnamed)]
    assert [(one.chat_name, one.user_name) for one in sources if one] == [("C1", "Ann"), ("C1", "U1")]


def test_what_the_network_sent_is_read_as_data_and_by_attributes(capfd: pytest.CaptureFixture[str]) -> None:
    raw = build_message_event(Event("message:received", FIELDS)).raw_message
    assert isinstance(raw, NetworkMessage)
    assert (raw["chat"]["id"], raw.chat.id, raw.from_user.first_name) == (-1, -1, "Ann")
    assert raw.entities[0].type == "mention"
    assert raw.to_dict() == RAW
    assert (raw.sticker, raw.sticker) == (None, None)
    assert capfd.readouterr().err.count("raw_message has no sticker") == 1


def test_a_message_of_a_network_without_more_has_hermess_defaults() -> None:
    event = build_message_event(Event("message:received", {"platform": "terminal", "text": "/help", "chat_id": "main"}))
    assert (event.message_type.value, event.raw_message, event.reply_to_text) == ("command", None, None)
