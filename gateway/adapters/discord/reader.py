"""The reader of Discord's messages: it converts one to a message of ours, without any request to Discord.

The id of our message begins with Discord's own; a suffix behind a colon distinguishes an edit from the original.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import discord
import msgspec

from gateway.adapters.discord.channels import address_of, is_listened_to
from gateway.adapters.discord.connection import PLATFORM
from gateway.adapters.discord.settings import DiscordSettings
from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.incoming import (
    IncomingMessage,
    add_context,
    describe_reply,
    to_plain_name,
)
from gateway.adapters.shared.read_positions import ReadMarks
from gateway.messages import message as messages
from gateway.messages.message import Address, MessageKind
from gateway.messages.parts import MessagePart, describe_parts, make_poll, make_sticker

PERSON_TYPES = (discord.MessageType.default, discord.MessageType.reply)
MENTION = re.compile(r"<@!?(\d+)>")


DiscordIncoming: TypeAlias = IncomingMessage[discord.Attachment]


class DiscordReader(msgspec.Struct, frozen=True):
    """The reader of one bot's messages. The `marks` know the threads in which it takes part."""

    me: discord.ClientUser
    settings: DiscordSettings
    context: AdapterContext
    marks: ReadMarks

    def read(self, message: discord.Message, *, is_edit: bool = False) -> DiscordIncoming | None:
        """Convert a message; None if it is not for us, or not from a person."""
        address = address_of(message.channel)
        is_said = message.type in PERSON_TYPES and not message.author.bot and message.webhook_id is None
        if address is None or not is_said or not is_listened_to(self.settings, message.channel):
            return None
        text = self._text_of(message)
        files = files_of(message)
        if not (text or files):
            return None
        is_command = self.context.is_command(text) and not message.message_snapshots
        is_mentioned = self._mentions_us(message)
        is_called = is_mentioned or self._replied(message) == self.me.id or self._is_our_thread(message)
        kind: MessageKind = "edit" if is_edit else "command" if is_command else "text"
        if not self.context.is_for_us(address, is_called=is_called, is_command=is_command):
            text = text if message.content and not message.message_snapshots else ""
            if not ((text or is_edit) and self.context.is_heard(address)):
                return None
            return IncomingMessage(replace(self._message(message, address, text, kind), is_overheard=True))
        if is_mentioned and self.settings.auto_thread and address.chat_type == "group" and not is_command:
            address = Address(PLATFORM, address.chat_id, "thread", str(message.id))
        text = text if is_command else context_of(message, text, self.me.id)
        raw = partial(describe_message, message)
        return IncomingMessage(self._message(message, address, text, kind), files, raw, files_of_reply(message))

    def _message(self, message: discord.Message, address: Address, text: str, kind: MessageKind) -> messages.Message:
        edited = message.edited_at if kind == "edit" else None
        return messages.Message(
            f"{message.id}:edit{edited.timestamp():.3f}" if edited else str(message.id),
            address,
            str(message.author.id),
            text,
            user_name=message.author.display_name,
            kind=kind,
            reply_to=str(message.reference.message_id or "") if message.reference else "",
            sent_at=(edited or message.created_at).timestamp(),
            extra=extra_of(message, self.me.id),
            parts=parts_of(message),
        )

    def _text_of(self, message: discord.Message) -> str:
        """Return the text, without the mention of us at its beginning, and with the names of the mentioned people."""
        forwarded = "\n".join(one.content for one in message.message_snapshots if one.content)
        text = message.content or forwarded or describe_parts(parts_of(message))
        text = re.sub(rf"\A\s*(<@!?{self.me.id}>|<@&(?:{'|'.join(self._our_roles(message)) or '-'})>)[\s,:]*", "", text)
        names = {str(one.id): to_plain_name(one.display_name) for one in message.mentions}
        return MENTION.sub(lambda found: f"@{names[found[1]]}" if found[1] in names else found[0], text)

    def _mentions_us(self, message: discord.Message) -> bool:
        """Return True for a mention by name, or by the role that Discord made for us; a reply alone is none."""
        ids = {str(self.me.id), *self._our_roles(message)}
        return any(one in ids for one in re.findall(r"<@[!&]?(\d+)>", message.content))

    def _our_roles(self, message: discord.Message) -> list[str]:
        roles = message.guild.roles if message.guild else ()
        return [str(role.id) for role in roles if role.tags is not None and role.tags.bot_id == self.me.id]

    def _replied(self, message: discord.Message) -> int:
        """Return the author of the message that this one answers; 0: it answers none, or the author is not known."""
        return quoted.author.id if (quoted := find_answered_message(message)) else 0

    def _is_our_thread(self, message: discord.Message) -> bool:
        """Return True for a thread of an answer of ours, and for another thread or post in which we were mentioned."""
        where = message.channel
        return isinstance(where, discord.Thread) and (where.owner_id == self.me.id or self.marks.knows(str(where.id)))


def find_answered_message(message: discord.Message) -> discord.Message | None:
    """Find the message that this one answers, if Discord has sent it along."""
    quoted = message.reference.resolved if message.reference else None
    return quoted if isinstance(quoted, discord.Message) else None


def files_of(message: discord.Message) -> tuple[discord.Attachment, ...]:
    return (*message.attachments, *(file for one in message.message_snapshots for file in one.attachments))


def files_of_reply(message: discord.Message) -> tuple[discord.Attachment, ...]:
    """Return the pictures and documents of the answered message.

    Its audio is not what this person says, and is left out.
    """
    found = quoted.attachments if (quoted := find_answered_message(message)) else ()
    return tuple(one for one in found if not (one.content_type or "").startswith(("audio/", "video/")))


def parts_of(message: discord.Message) -> tuple[MessagePart, ...]:
    """Return the parts of a message beside text and files."""
    found: list[MessagePart] = [make_sticker("", one.name) for one in message.stickers]
    if message.poll is not None:
        found.append(make_poll(message.poll.question, (one.text for one in message.poll.answers)))
    return tuple(found)


def context_of(message: discord.Message, text: str, me: int) -> str:
    """Return the text, preceded by the origin of a forwarded message or the quote of an answered one."""
    if message.message_snapshots:
        return add_context(text, forwarded_from=origin_of(message))
    if (quoted := find_answered_message(message)) and quoted.author.id != me:
        return add_context(text, quoted=quoted.content)
    return text


def origin_of(message: discord.Message) -> str:
    """Return the channel that a forwarded message comes from; Discord does not name its author."""
    channel = message.guild.get_channel(message.reference.channel_id) if message.guild and message.reference else None
    return f"#{channel.name}" if channel is not None else "elsewhere"


def extra_of(message: discord.Message, me: int) -> dict[str, Any]:
    """Return further facts of the network, for hooks, and the sender's roles."""
    extra: dict[str, Any] = {"chat_name": message.author.name}
    if message.guild is not None:
        extra["guild"] = str(message.guild.id)
        extra["chat_name"] = str(getattr(message.channel, "name", ""))
        extra["guild_name"] = str(message.guild.name)
        extra["roles"] = roles_of(message.author)
    above = getattr(message.channel, "parent", None)
    if above is not None:
        extra["parent_chat"] = str(above.id)
    if topic := getattr(above or message.channel, "topic", None):
        extra["chat_topic"] = str(topic)
    if message.message_snapshots:
        extra["forwarded_from"] = origin_of(message)
    if quoted := find_answered_message(message):
        author = quoted.author
        extra |= describe_reply(quoted.content, author.id, author.display_name, is_own=author.id == me)
    return extra


def describe_message(message: discord.Message) -> dict[str, Any]:
    """Describe a message in the shape of Discord's own API, with the fields that hooks get."""
    author, edited = message.author, message.edited_at
    return {
        "id": str(message.id),
        "channel_id": str(message.channel.id),
        "guild_id": str(message.guild.id) if message.guild else None,
        "type": message.type.value,
        "content": message.content,
        "timestamp": message.created_at.isoformat(),
        "edited_timestamp": edited.isoformat() if edited else None,
        "author": {
            "id": str(author.id),
            "username": author.name,
            "global_name": author.global_name,
            "display_name": author.display_name,
            "bot": author.bot,
        },
        "mentions": [{"id": str(one.id), "username": one.name} for one in message.mentions],
        "attachments": [
            {"id": str(one.id), "filename": one.filename, "size": one.size, "url": one.url}
            | {"content_type": one.content_type}
            for one in message.attachments
        ],
        "embeds": [one.to_dict() for one in message.embeds],
        "message_reference": message.reference.to_message_reference_dict() if message.reference else None,
    }


def roles_of(person: Any) -> list[str]:
    """Return the ids of a member's roles, without the server's default role, which every member has."""
    roles: Sequence[discord.Role] = getattr(person, "roles", ())
    return [str(role.id) for role in roles if not role.is_default()]
