"""The reader of Telegram's updates: it converts one or several to a message of ours, without any request to Telegram.

The id of our message begins with Telegram's own; a suffix behind a colon distinguishes an edit, a button press or a
reaction from the original.
"""

from collections.abc import Sequence
from operator import index
from typing import Any, TypeAlias

import msgspec
from telegram import CallbackQuery, Chat, Message, MessageEntity, MessageOriginUser, Update, User

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.incoming import IncomingMessage, add_context, describe_reply
from gateway.adapters.telegram.connection import PLATFORM
from gateway.adapters.telegram.files import TelegramFile, file_of
from gateway.messages import message as messages
from gateway.messages.message import Address, ChatType
from gateway.messages.parts import (
    MessagePart,
    describe_parts,
    make_contact,
    make_location,
    make_poll,
    make_sticker,
)

MENTIONS = (MessageEntity.MENTION, MessageEntity.TEXT_MENTION)


TelegramIncoming: TypeAlias = IncomingMessage[TelegramFile]


class TelegramReader(msgspec.Struct, frozen=True):
    """The reader of one bot's updates."""

    me: User
    context: AdapterContext

    def read(self, updates: Sequence[Update]) -> TelegramIncoming | None:
        """Convert a group of updates to a message; None if it is not for us, or of an unknown kind."""
        update = updates[0]
        if update.callback_query is not None:
            return self._pressed(update.callback_query)
        if update.edited_message is not None:
            message = update.edited_message
            if message.location is not None:  # a moving live location
                return None
            stamp = message.edit_date or message.date
            suffix = f":edit{stamp.timestamp():.0f}.{update.update_id}"  # several edits may come within a second
            return self._written([message], "edit", suffix, update.update_id)
        return self._written([one.message for one in updates if one.message], "text", "", update.update_id)

    def _written(
        self, parts: list[Message], kind: messages.MessageKind, suffix: str, update_id: int
    ) -> TelegramIncoming | None:
        if not parts or (sender := sender_of(parts[0])) is None:
            return None
        first, address = parts[0], address_of(parts[0])
        said = [text for one in parts if (text := self._text_of(one))]
        files = tuple(file for one in parts if (file := file_of(one)))
        is_command = bool(said) and said[0].startswith("/") and first.forward_origin is None
        if not (said or files) or (is_command and self._is_for_another(said[0])):
            return None
        is_called = any(self._mentions_us(one) for one in parts) or self._is_reply_to_us(first)
        is_overheard = not self.context.is_for_us(address, is_called=is_called, is_command=is_command)
        if is_overheard:
            is_own = first.forward_origin is None
            said = [text for one in parts if is_own and (one.text or one.caption) and (text := self._text_of(one))]
            if not ((said or kind == "edit") and self.context.is_heard(address)):
                return None
        text = "\n".join(said) if not any(one.text for one in parts) else "".join(said)
        text = text if is_command or is_overheard else self._with_context(first, text)
        reply_to = str(first.reply_to_message.message_id) if first.reply_to_message else ""
        message = messages.Message(
            f"{first.message_id}{suffix}",
            address,
            str(sender.id),
            text,
            user_name=(sender.effective_name if isinstance(sender, Chat) else sender.full_name) or "",
            kind="command" if is_command and kind == "text" else kind,
            reply_to=reply_to,
            sent_at=(first.edit_date or first.date).timestamp(),
            extra={**extra_of(first, is_own=self._is_reply_to_us(first)), "update_id": update_id},
            parts=tuple(part for one in parts for part in parts_of(one)),
            is_overheard=is_overheard,
        )
        return IncomingMessage(message, files, first.to_dict, files_of_reply(first))

    def _pressed(self, query: CallbackQuery) -> TelegramIncoming | None:
        if query.message is None or not query.data or query.from_user.is_bot:
            return None
        shown = query.message
        address = address_of(shown) if isinstance(shown, Message) else Address(PLATFORM, str(shown.chat.id))
        message = messages.Message(
            f"{shown.message_id}:{query.id}",
            address,
            str(query.from_user.id),
            query.data,
            user_name=query.from_user.full_name,
            kind="button",
            reply_to=str(shown.message_id),
        )
        return IncomingMessage(message)

    def _text_of(self, message: Message) -> str:
        """Return the text, without the mention of us at its beginning; other parts are described in words."""
        thrown = f"[{message.dice.emoji} {message.dice.value}]" if message.dice else ""
        text = message.text or message.caption or describe_parts(parts_of(message)) or thrown
        at = f"@{self.me.username}"
        if text[: len(at)].lower() == at.lower() and not text[len(at) : len(at) + 1].isalnum():
            text = text[len(at) :].lstrip(" ,:")
        return text

    def _is_for_another(self, text: str) -> bool:
        _, at, name = text.split(maxsplit=1)[0].partition("@")
        return bool(at) and name.lower() != (self.me.username or "").lower()

    def _mentions_us(self, message: Message) -> bool:
        found = {**message.parse_entities(list(MENTIONS)), **message.parse_caption_entities(list(MENTIONS))}
        return any(
            text.lower() == f"@{self.me.username}".lower() or (entity.user is not None and entity.user.id == self.me.id)
            for entity, text in found.items()
        )

    def _is_reply_to_us(self, message: Message) -> bool:
        replied = message.reply_to_message
        return replied is not None and replied.from_user is not None and replied.from_user.id == self.me.id

    def _with_context(self, message: Message, text: str) -> str:
        if message.forward_origin is not None:
            return add_context(text, forwarded_from=origin_of(message))
        quoted = message.quote.text if message.quote else ""
        replied = message.reply_to_message
        if not quoted and replied is not None and not self._is_reply_to_us(message):
            quoted = replied.text or replied.caption or ""
        return add_context(text, quoted=quoted)


def files_of_reply(message: Message) -> tuple[TelegramFile, ...]:
    """Return the picture or document of the answered message.

    Its audio is not what this person says, and is left out.
    """
    file = file_of(message.reply_to_message) if message.reply_to_message else None
    return (file,) if file and file.about.kind in ("image", "document") else ()


def sender_of(message: Message) -> User | Chat | None:
    """Return the author: a person, or the group itself for an anonymous admin; None for any other author."""
    if message.sender_chat is not None:
        return message.sender_chat if message.sender_chat.id == message.chat.id else None
    sender = message.from_user
    return sender if sender is not None and not sender.is_bot else None


def address_of(message: Message) -> Address:
    """Return the address: the chat, and in a forum (or a private chat with topics) the topic."""
    kinds: dict[str, ChatType] = {"private": "dm", "channel": "channel"}
    kind = kinds.get(message.chat.type, "forum" if message.chat.is_forum else "group")
    in_topic = message.is_topic_message and message.message_thread_id
    return Address(PLATFORM, str(index(message.chat.id)), kind, str(message.message_thread_id) if in_topic else "")


def parts_of(message: Message) -> tuple[MessagePart, ...]:
    """Return the parts of a message beside text and files."""
    where, venue, contact = message.location, message.venue, message.contact
    found: list[MessagePart | None] = []
    if venue:
        at = venue.location
        found.append(make_location(at.latitude, at.longitude, venue.title, venue.address))
    elif where:
        found.append(make_location(where.latitude, where.longitude))
    if contact:
        found.append(make_contact(f"{contact.first_name} {contact.last_name or ''}", contact.phone_number))
    if message.poll:
        found.append(make_poll(message.poll.question, (option.text for option in message.poll.options)))
    if message.sticker:
        found.append(make_sticker(message.sticker.emoji, message.sticker.set_name))
    return tuple(one for one in found if one)


def origin_of(message: Message) -> str:
    origin = message.forward_origin
    if isinstance(origin, MessageOriginUser):
        return origin.sender_user.full_name
    for where in ("sender_user_name", "sender_chat", "chat"):
        if found := getattr(origin, where, None):
            return str(getattr(found, "title", None) or found)
    return "somebody"


def extra_of(message: Message, *, is_own: bool = False) -> dict[str, Any]:
    """Return further facts of the network, for hooks. `is_own`: the message answers one of ours."""
    extra: dict[str, Any] = {}
    if message.forward_origin is not None:
        extra["forwarded_from"] = origin_of(message)
    if name := message.chat.title or message.chat.full_name:
        extra["chat_name"] = name
    if (replied := message.reply_to_message) is not None:
        if replied.forum_topic_created is not None:  # a message in a topic replies to the topic's beginning
            extra["chat_topic"] = replied.forum_topic_created.name
        else:
            said = message.quote.text if message.quote else replied.text or replied.caption
            author = replied.from_user
            extra |= describe_reply(said, author and author.id, author.full_name if author else "", is_own=is_own)
    return extra
