"""The reader of Slack's events: it converts one to a message of ours, without any request to Slack.

The id of our message is Slack's time stamp of it; a suffix behind a colon distinguishes an edit or a button press from
the original. A message to us in a channel begins a thread, and gets its answer there.
"""

import html
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import msgspec

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.incoming import IncomingMessage, add_context, to_plain_name
from gateway.adapters.shared.read_positions import ReadMarks
from gateway.adapters.slack.connection import PLATFORM, SlackIdentity
from gateway.adapters.slack.settings import SlackSettings
from gateway.messages.message import Address, Message, MessageKind
from gateway.messages.pieces import MessageName

Event: TypeAlias = Mapping[str, Any]

PERSON_SUBTYPES = frozenset({"", "file_share", "thread_broadcast", "me_message", "bot_message"})
STONE = "tombstone"
LINK = re.compile(r"<(https?://[^|<>]+|mailto:[^|<>]+)(?:\|([^<>]*))?>")
CHANNEL = re.compile(r"<#(\w+)(?:\|([^<>]*))?>")
CALL = re.compile(r"<!(\w+)(?:\^\w+)?(?:\|@?([^<>]*))?>")
PERSON = re.compile(r"<@(\w+)(?:\|([^<>]*))?>")


SlackIncoming: TypeAlias = IncomingMessage[Event]


class SlackReader(msgspec.Struct, frozen=True):
    """The reader of one bot's events. The `marks` know the threads in which it takes part.

    `list_parent_files` returns the files of a thread's first message, once the new message is taken.
    """

    me: SlackIdentity
    settings: SlackSettings
    context: AdapterContext
    marks: ReadMarks
    list_parent_files: Callable[[str, str], Awaitable[tuple[Event, ...]]]

    def read(self, event: Event) -> SlackIncoming | None:
        """Convert an event; None if it is not for us, or not from a person."""
        if event.get("subtype") == "message_changed":
            return self._edited(event)
        if event.get("subtype", "") not in PERSON_SUBTYPES or not event.get("ts"):
            return None
        return self._said(event, "text", str(event["ts"]))

    def read_deleted(self, event: Event) -> tuple[MessageName, str] | None:
        """Return the deleted message, and its author if Slack says so; None if the event deletes none.

        A message with answers in its thread is replaced by a tombstone, which is such an event too.
        """
        about: Event = event
        if event.get("subtype") == "message_changed":
            about = event.get("message") or {}
        stamp = about.get("ts") if about.get("subtype") == STONE else None
        if event.get("subtype") == "message_deleted":
            stamp = event.get("deleted_ts")
        if not stamp:
            return None
        author = (event.get("previous_message") or {}).get("user")
        return MessageName(PLATFORM, str(event["channel"]), str(stamp)), f"{PLATFORM}:{author}" if author else ""

    def _edited(self, event: Event) -> SlackIncoming | None:
        """Convert an edit by a person; Slack also reports a change when it has fetched a link's preview."""
        message, before = event.get("message") or {}, event.get("previous_message") or {}
        stamp = (message.get("edited") or {}).get("ts")
        if (
            not stamp
            or stamp == (before.get("edited") or {}).get("ts")
            or message.get("subtype", "") not in PERSON_SUBTYPES
        ):
            return None
        where = {name: event[name] for name in ("channel", "channel_type") if name in event}
        return self._said({**message, **where}, "edit", f"{message['ts']}:edit{stamp}")

    def _said(self, event: Event, kind: MessageKind, number: str) -> SlackIncoming | None:
        sender = str(event.get("user") or event.get("bot_id") or "")
        is_mentioned = f"<@{self.me.user}>" in str(event.get("text", "")) or event.get("type") == "app_mention"
        if not sender or not self._may_be_heard(event, sender, is_mentioned=is_mentioned):
            return None
        text, shared = self._text_of(event), list_shared(event)
        files = (*(event.get("files") or ()), *list_shared_files(event))
        is_command = self.context.is_command(text) and not shared
        address = address_of(event)
        is_called = is_mentioned or self._is_in_ours(event)
        if not (text or files or shared):
            return None
        is_overheard = not self.context.is_for_us(address, is_called=is_called, is_command=is_command)
        if is_overheard and not ((text or kind == "edit") and self.context.is_heard(address)):
            return None
        if address.chat_type == "group" and not (is_command or is_overheard):
            address = replace(address, chat_type="thread", thread_id=str(event["ts"]))
        passed_on = [] if is_overheard else map(describe_shared, shared)
        text = "\n".join([*([text] if text else []), *passed_on])
        message = Message(
            number,
            address,
            sender,
            text,
            user_name=str((event.get("user_profile") or {}).get("display_name") or ""),
            kind="command" if is_command and kind == "text" else kind,
            reply_to=str(event.get("thread_ts") or ""),
            sent_at=float(number.rpartition(":edit")[2]),
            extra={
                **({"team": str(event["team"])} if event.get("team") else {}),
                **({"is_bot": True} if event.get("bot_id") else {}),
            },
            is_overheard=is_overheard,
        )
        parent = "" if kind == "edit" else self._unread_parent_of(event)
        find = partial(self.list_parent_files, str(event["channel"]), parent) if parent else None
        return IncomingMessage(message, files, partial(dict, event), find_quoted=find)

    def _unread_parent_of(self, event: Event) -> str:
        """Return the first message of a thread that is new to us; "" if we know the thread, or wrote that message."""
        thread = str(event.get("thread_ts") or "")
        is_known = thread == event["ts"] or event.get("parent_user_id") == self.me.user
        return "" if is_known or (thread and self.marks.knows(event["channel"], thread)) else thread

    def _may_be_heard(self, event: Event, sender: str, *, is_mentioned: bool) -> bool:
        """Return False for the bot itself, and for other bots as the settings say."""
        if sender in (self.me.user, self.me.bot) or event.get("bot_id") == self.me.bot:
            return False
        if not event.get("bot_id"):
            return True
        return self.settings.allow_bots == "all" or (self.settings.allow_bots == "mentions" and is_mentioned)

    def _is_in_ours(self, event: Event) -> bool:
        thread = str(event.get("thread_ts") or "")
        return bool(thread) and (
            event.get("parent_user_id") == self.me.user or self.marks.knows(event["channel"], thread)
        )

    def _text_of(self, event: Event) -> str:
        """Return the text, without the mention of us at its beginning."""
        text = re.sub(rf"\A\s*<@{self.me.user}(\|[^>]*)?>[\s,:]*", "", str(event.get("text") or ""))
        return to_markdown(text)


def to_markdown(text: str) -> str:
    """Replace Slack's own markup by text that people can read."""
    text = LINK.sub(lambda one: f"[{one[2]}]({one[1]})" if one[2] and one[2] not in one[1] else one[1], text)
    text = CHANNEL.sub(lambda one: f"#{one[2] or one[1]}", text)
    text = CALL.sub(lambda one: f"@{one[2] or one[1]}", text)
    return html.unescape(PERSON.sub(lambda one: f"@{to_plain_name(one[2] or one[1])}", text))


def list_shared(event: Event) -> list[Event]:
    """Return the forwarded messages of other people."""
    return [one for one in event.get("attachments") or () if one.get("is_share") or one.get("is_msg_unfurl")]


def describe_shared(shared: Event) -> str:
    """Return the text of a forwarded message, with its author."""
    author = shared.get("author_name") or "somebody"
    return add_context(to_markdown(str(shared.get("text") or "")), forwarded_from=author)


def list_shared_files(event: Event) -> tuple[Event, ...]:
    return tuple(file for one in list_shared(event) for file in one.get("files") or ())


def threads_of(message: Message) -> list[str]:
    """Return the places of a message: the thread or the channel (`""`); a message that begins a thread is in both."""
    thread = message.address.thread_id
    return [""] if not thread else ["", thread] if thread == message.id else [thread]


def address_of(event: Event) -> Address:
    """Return the address: the channel, and the thread if there is one."""
    channel, thread = str(event["channel"]), str(event.get("thread_ts") or "")
    if event.get("channel_type") == "im" or channel.startswith("D"):
        return Address(PLATFORM, channel, "dm", thread)
    return Address(PLATFORM, channel, "thread" if thread else "group", thread)
