"""The buttons under a reply: for the person of the question and for admins; removed after one press.

Telegram carries 64 bytes with a button, which is the limit for a value.
"""

import logging

from telegram import Bot, CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup
from telegram import Message as Shown

from gateway.adapters.shared.incoming import refusal_of
from gateway.adapters.telegram.connection import ERRORS
from gateway.errors import AdapterError
from gateway.messages.message import Button, Receipt

log = logging.getLogger(__name__)

LONGEST = 64  # bytes


def make_keyboard(buttons: tuple[Button, ...]) -> InlineKeyboardMarkup | None:
    """Make the buttons, in one row.

    Raises:
        AdapterError: a value is longer than Telegram allows.
    """
    for button in buttons:
        if len(button.value.encode()) > LONGEST:
            raise AdapterError(
                f"the button {button.label!r} has a value of more than {LONGEST} bytes; Telegram carries no more",
                permanent=True,
            )
    row = [InlineKeyboardButton(button.label, callback_data=button.value) for button in buttons]
    return InlineKeyboardMarkup([row]) if row else None


def find_asked_user(query: CallbackQuery) -> str:
    """Return the person of the question: in a group, the author of the message that the question replies to."""
    shown = query.message
    replied = shown.reply_to_message if isinstance(shown, Shown) else None
    return str(replied.from_user.id) if replied is not None and replied.from_user is not None else ""


async def answer_press(bot: Bot, query: CallbackQuery, receipt: Receipt) -> None:
    """Answer the press, and remove the buttons if it counted; a failure is only logged."""
    with ERRORS.logged(log.info, "a button that was pressed looks as before"):
        refusal = refusal_of(receipt)
        await bot.answer_callback_query(query.id, refusal or None, show_alert=bool(refusal))
        if not refusal and not receipt.is_closed and query.message is not None:
            chat, number = query.message.chat.id, query.message.message_id
            await bot.edit_message_reply_markup(chat, number, reply_markup=None)
