"""The drafts of Telegram: the growing text of the bot, in private chats.

A draft is not a message, and disappears by itself after half a minute; the whole text is sent as a message. A server
that does not know drafts, and a chat that refuses them, is not asked again.
"""

import logging
import zlib

import msgspec
from telegram import Bot
from telegram.error import BadRequest, InvalidToken, TelegramError

from gateway.adapters.shared.incoming import remember
from gateway.adapters.shared.send_rate import Rate, RateLimiter
from gateway.adapters.telegram.connection import ERRORS
from gateway.adapters.telegram.format import TelegramText
from gateway.messages.message import Address

log = logging.getLogger(__name__)

DRAFT_RATE = Rate(3, 1.0)
MOST = 2000


class TelegramDrafts(msgspec.Struct, eq=False):
    """The drafts of one bot. They have their own rate, so that no answer waits for its drafts."""

    _bot: Bot
    _pace: RateLimiter
    _refused: dict[str, str] = {}  # the reason, by chat; "": all chats

    def can_show(self, address: Address) -> bool:
        is_private = address.chat_type == "dm" and address.chat_id.isdecimal()
        return is_private and not {address.chat_id, ""} & self._refused.keys()

    async def show(self, chat: str, thread: int | None, name: str, piece: TelegramText) -> bool:
        """Replace the text of the draft with this name; return False if the chat or the server has no drafts."""
        where = f"{chat}:drafts"
        await self._pace.wait(where, DRAFT_RATE)
        with self._pace.heeded(where), ERRORS.translated():
            try:
                await self._bot.send_message_draft(
                    int(chat),
                    zlib.crc32(name.encode()) or 1,
                    piece.text,
                    message_thread_id=thread,
                    entities=piece.entities,
                )
            except InvalidToken as error:  # also for a method that the server does not know
                self._note_refused("", error)
                return False
            except BadRequest as error:
                self._note_refused(chat, error)
                return False
        return True

    def _note_refused(self, chat: str, error: TelegramError) -> None:
        remember(self._refused, chat, str(error), MOST)
        log.info("answers in %s grow by edits, Telegram has no drafts there: %s", chat or "all chats", error)
