"""The interactions of Slack: slash commands, and presses of buttons under our replies."""

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.buttons import decode_button
from gateway.adapters.shared.incoming import STRANGER, RecentMessages, check_message, refusal_of, remember
from gateway.adapters.slack.connection import ERRORS, PLATFORM
from gateway.adapters.slack.format import ACTIONS
from gateway.adapters.slack.manifest import command_name_of
from gateway.adapters.slack.reader import address_of
from gateway.messages.message import Message

log = logging.getLogger(__name__)

MOST_OPEN = 500

Body: TypeAlias = Mapping[str, Any]


class SlackInteractions(msgspec.Struct, eq=False):
    """The handler of slash commands and button presses; each is done once it is in the journal or settled."""

    _web: AsyncWebClient
    _context: AdapterContext
    _recent: RecentMessages
    _bot: str
    _urls: dict[str, str] = {}

    async def called(self, body: Body) -> str:
        """Take a slash command; return the text that its author sees at once, or ""."""
        name = command_name_of(str(body["command"]).removeprefix("/"))
        address = address_of({"channel": body["channel_id"]})
        text = f"/{name} {body.get('text') or ''}".rstrip()
        number = str(body.get("trigger_id") or body.get("response_url"))
        message = Message(
            number, address, str(body["user_id"]), text, user_name=str(body.get("user_name") or ""), kind="command"
        )
        remember(self._urls, number, str(body.get("response_url") or ""), MOST_OPEN)
        receipt = await self._context.receive(check_message(message), bot=self._bot, complete=self._recent.complete)
        if receipt.decision != "stranger":
            return ""
        self._urls.pop(number, None)
        return STRANGER

    async def whisper(self, message_id: str, text: str) -> bool:
        """Answer a slash command so that only its author sees it; this works in channels without the bot too."""
        url = self._urls.pop(message_id, "")
        if not url:
            return False
        answer = await AsyncWebhookClient(url).send(text=text, response_type="ephemeral")
        return answer.status_code == 200

    async def pressed(self, body: Body) -> None:
        shown, press = body.get("message") or {}, (body.get("actions") or [{}])[0]
        if not shown or not press.get("value"):
            return
        value, asked = decode_button(press["value"])
        where = {"channel": body["channel"]["id"], "thread_ts": shown.get("thread_ts")}
        # Only one press counts: its id is made from the message, so a second press is a duplicate.
        message = Message(
            f"{shown['ts']}:pressed",
            address_of(where),
            str(body["user"]["id"]),
            value,
            user_name=str(body["user"].get("username") or ""),
            kind="button",
            reply_to=str(shown["ts"]),
        )
        receipt = await self._context.receive(check_message(message), bot=self._bot, asked=asked)
        if refusal := refusal_of(receipt):
            await self._tell_alone(message, refusal)
        elif not receipt.is_closed:
            await self._end(body["channel"]["id"], shown)

    async def _end(self, channel: str, shown: Mapping[str, Any]) -> None:
        """Remove the buttons of a message; a failure is only logged."""
        blocks = [one for one in shown.get("blocks") or () if one.get("block_id") != ACTIONS]
        with ERRORS.logged(log.info, "a button that was pressed looks as before"):
            await self._web.chat_update(channel=channel, ts=shown["ts"], blocks=blocks, text=shown.get("text") or "")

    async def _tell_alone(self, message: Message, text: str) -> None:
        at = message.address
        with ERRORS.logged(log.info, "%s on %s was not told", message.user_id, PLATFORM):
            await self._web.chat_postEphemeral(
                channel=at.chat_id, user=message.user_id, text=text, thread_ts=at.thread_id or None
            )
