"""The raw answers of Telegram, beside the library's reading of them.

The library raises an error for an unreadable answer, without saying if the call was refused or done. A message that
Telegram took and that is sent again appears twice; so the raw answer is checked.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any

import msgspec
from telegram.request import HTTPXRequest


class TelegramAnswer(msgspec.Struct):
    """The last answer to a call; `status` 0: no answer came."""

    status: int = 0
    body: bytes = b""

    def find_sent(self) -> tuple[str, ...] | None:
        """Return the ids of the sent messages; empty: their ids are missing.

        None: none was sent, as far as is known.
        """
        if self.status != HTTPStatus.OK:
            return None
        try:
            said = json.loads(self.body)
        except ValueError:
            return ()
        if not isinstance(said, dict) or said.get("ok") is not True:
            return None
        result = said.get("result")
        numbers = [
            one.get("message_id") for one in (result if isinstance(result, list) else [result]) if isinstance(one, dict)
        ]
        return tuple(str(number) for number in numbers if type(number) is int)


_ANSWER: ContextVar[TelegramAnswer | None] = ContextVar("telegram_answer", default=None)


@contextmanager
def watch_answer() -> Iterator[TelegramAnswer]:
    """Record the answer to the call inside the block."""
    answer = TelegramAnswer()
    before = _ANSWER.set(answer)
    try:
        yield answer
    finally:
        _ANSWER.reset(before)


class AnsweredRequest(HTTPXRequest):
    """The library's requests to Telegram, with their answers recorded."""

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        status, body = await super().do_request(*args, **kwargs)
        if (answer := _ANSWER.get()) is not None:
            answer.status, answer.body = status, body
        return status, body
