"""The streams of Slack: messages that are begun, get longer, and are stopped.

A growing message cannot be shortened or changed: if its text changes, the stream is stopped, and the message is edited
from then on. If Slack refuses to begin one (the app lacks the right, or the kind of channel has none), it is not asked
again. Only Slack knows if a message of an earlier process still grows: the gateway asks to stop it, which may be
refused.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Final

import msgspec
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.incoming import remember
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.slack.connection import SlackIdentity, as_adapter_error, code_of
from gateway.errors import AdapterError
from gateway.messages.message import Address

log = logging.getLogger(__name__)

NONCE_EVENT: Final = "gateway_reply"
EVERYWHERE: Final = frozenset({"missing_scope", "unknown_method", "not_allowed", "not_allowed_token_type"})
"""The refusals that do not depend on the channel."""
BEGINNINGS, ADDITIONS, ENDINGS = Rate(3, 1.0), Rate(5, 0.7), Rate(3, 1.0)
MOST: Final = 500  # growing messages, and refusing channels


class SlackStreams(msgspec.Struct, eq=False):
    """The streams of one app; `calling` turns failures into an `AdapterError`."""

    _web: AsyncWebClient
    _me: SlackIdentity
    _pace: RateLimiter
    _calling: Callable[[], AbstractContextManager[None]]
    _is_growing: dict[str, bool] = {}  # by message, as far as this process knows
    _refused: dict[str, str] = {}  # the reason, by channel; "": all channels

    async def begin(self, address: Address, channel: str, recipient: str, text: str) -> str:
        """Begin a message, and return its id; "" if the place has no streams, or Slack wants no more of them now."""
        is_known = bool(recipient) or address.chat_type == "dm"
        if not (address.thread_id and is_known) or {channel, ""} & self._refused.keys():
            return ""
        await self._pace.wait(channel, BEGINNINGS)
        with self._calling():
            try:
                begun = await self._web.chat_startStream(
                    channel=channel,
                    thread_ts=address.thread_id,
                    markdown_text=text or None,
                    recipient_team_id=self._me.team,
                    recipient_user_id=recipient or None,
                )
            except SlackApiError as error:
                if not self._is_refused(channel, error):
                    raise
                return ""
        remember(self._is_growing, str(begun["ts"]), True, MOST)
        return str(begun["ts"])

    def _is_refused(self, channel: str, error: SlackApiError) -> bool:
        """Return True if no message was begun; for good, or because there are too many now."""
        refusal = as_adapter_error(error)
        if refusal.permanent:
            code = code_of(error)
            remember(self._refused, "" if code in EVERYWHERE else channel, code, MOST)
            log.info("answers in %s grow by edits: Slack has no streams there (%s)", channel, code)
        return refusal.permanent or refusal.retry_after is not None

    def note_edited(self, message_ids: tuple[str, ...]) -> None:
        """Note messages that show their whole text, and grow by edits."""
        for one in message_ids:
            remember(self._is_growing, one, False, MOST)

    def is_edited(self, stamp: str) -> bool:
        return self._is_growing.get(stamp) is False

    async def append(self, channel: str, stamp: str, text: str) -> bool:
        """Add text to a message; return False if it does not grow (any more)."""
        if not self._is_growing.get(stamp):
            return False
        add = partial(self._web.chat_appendStream, channel=channel, ts=stamp, markdown_text=text)
        return await self._call(channel, "additions", ADDITIONS, add)

    async def stop(self, channel: str, stamp: str, text: str = "", nonce: str = "") -> bool:
        """End a message with these last words; return False if it was stopped before, or is gone."""
        if self.is_edited(stamp):
            return False
        end = partial(self._web.chat_stopStream, channel=channel, ts=stamp, markdown_text=text or None)
        if is_stopped := await self._call(channel, "endings", ENDINGS, partial(end, metadata=make_note(nonce))):
            self._is_growing.pop(stamp, None)
        return is_stopped

    async def _call(self, channel: str, what: str, rate: Rate, call: Callable[[], Awaitable[object]]) -> bool:
        """Make a call within its rate; return False if Slack refuses it for good, since the message grows no more."""
        where = f"{channel}:{what}"
        await self._pace.wait(where, rate)
        try:
            with self._pace.heeded(where), self._calling():
                await call()
        except AdapterError as error:
            if not error.permanent:
                raise
            log.info("a message in %s was stopped before: %s", channel, error)
            return False
        return True


def make_note(nonce: str) -> dict[str, Any]:
    """Make the metadata of our messages, which people do not see; messages that still grow have none."""
    return {"event_type": NONCE_EVENT, "event_payload": {"nonce": nonce}}


def read_nonce(message: Mapping[str, Any]) -> str | None:
    """Return the nonce of a message; None: it is not ours, or still grows."""
    note = message.get("metadata") or {}
    return (note.get("event_payload") or {}).get("nonce") if note.get("event_type") == NONCE_EVENT else None
