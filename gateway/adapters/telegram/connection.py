"""The connection to Telegram: a bot made from the settings, and Telegram's errors in our words, with the remedy.

No text of ours contains the token, nor an address with the token in it.
"""

import logging
import ssl
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import httpx
from telegram import Bot
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)
from telegram.request import HTTPXRequest
from telegram.warnings import PTBDeprecationWarning, PTBUserWarning

from gateway.adapters.shared.network_errors import NetworkErrors, make_rate_limit_error
from gateway.adapters.telegram.answers import AnsweredRequest
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.errors import AdapterError, describe_cause

PLATFORM = "telegram"
PUBLIC_API = "https://api.telegram.org"
WAIT = 20.0  # seconds for an answer; a poll has its own time in addition
CONNECT = 10.0
CALLS = 32  # at a time
LAST_MOMENTS = ("send_request_headers.started", "send_request_body.started")  # the HTTP library's names


def make_bot(settings: TelegramSettings, check_right: Callable[[], None] = lambda: None) -> Bot:
    """Make a bot that is not connected yet. `check_right` fails if its calls must not be sent any more."""
    # The library warns, whenever it reads a demand for a pause itself, that the type of the number will change.
    warnings.filterwarnings("ignore", "(?s).*retry_after", PTBDeprecationWarning)
    # The library would parse all updates of a poll, or none; so we use the raw answer, and the library warns of that.
    warnings.filterwarnings("ignore", "Please use 'Bot.getUpdates'", PTBUserWarning)
    # The library logs all lines of an answer that is not JSON; we log the error that it raises, in one line.
    logging.getLogger("telegram.request").setLevel(logging.CRITICAL)
    server = (settings.base_url or PUBLIC_API).rstrip("/").removesuffix("/bot")
    files = settings.base_file_url.rstrip("/").removesuffix("/bot") or f"{server}/file"
    proxy = settings.proxy.reveal() or None
    how: dict[str, Any] = {"connect_timeout": CONNECT, "pool_timeout": WAIT, "read_timeout": WAIT, "proxy": proxy}
    hooks = {"request": [partial(check_request, check_right)]}
    how["httpx_kwargs"] = {"event_hooks": hooks, "verify": make_tls_context()}
    return Bot(
        settings.token.reveal(),
        base_url=f"{server}/bot",
        base_file_url=f"{files}/bot",
        request=AnsweredRequest(CALLS, **how),
        get_updates_request=HTTPXRequest(1, **how),
    )


@cache
def make_tls_context() -> ssl.SSLContext:
    """Make one context for all bots; the library would make one for each of its two clients."""
    return httpx.create_ssl_context()


async def check_request(check_right: Callable[[], None], request: Any) -> None:
    """Check the right at the last moments: connecting may take long, and Telegram waits for a body after its head."""

    async def check(event: str, _info: Mapping[str, Any]) -> None:
        if event.endswith(LAST_MOMENTS):
            try:
                check_right()
            except AdapterError as error:
                raise NetworkError(str(error)) from None

    request.extensions["trace"] = check


def as_adapter_error(error: TelegramError) -> AdapterError:
    """Describe an error for people and for the outbox: permanent, or worth another try, and when."""
    match error:
        case RetryAfter():
            wait = error._retry_after  # noqa: SLF001 - the public name warns at each reading
            return make_rate_limit_error("Telegram", wait.total_seconds())
        case InvalidToken() | EndPointNotFound():
            return AdapterError(
                "Telegram does not know the bot's token (revoked, or mistyped): get the present one from @BotFather "
                "with /token, and put it into TELEGRAM_BOT_TOKEN"
            )
        case Conflict() if "webhook" in str(error):
            return AdapterError(
                "Telegram sends this bot's messages to a webhook: remove it "
                "(the Bot API's deleteWebhook), or this gateway needs a bot of its own from @BotFather"
            )
        case Conflict():
            return AdapterError(
                "another program reads this bot's messages with the same token (another gateway, a Hermes, a script): "
                "stop it there, or give this gateway a bot of its own from @BotFather"
            )
        case Forbidden():
            return AdapterError(f"Telegram lets us not write there: {error} (blocked, or no member)", permanent=True)
        case ChatMigrated():
            return AdapterError(f"the group is a supergroup now, with the id {error.new_chat_id}", permanent=True)
        case BadRequest():
            return AdapterError(f"Telegram refused: {error}", permanent=True)
        case TimedOut():
            return AdapterError("Telegram did not answer in time")
        case NetworkError():
            # the library adds the whole page
            what, _, _page = describe_cause(error).partition(". Parsing the server response")
            return AdapterError(f"Telegram cannot be reached: {what}")
    return AdapterError(f"Telegram: {error}")


ERRORS = NetworkErrors((TelegramError,), as_adapter_error)
UNKNOWN_METHOD = "this Bot API server does not know"


@contextmanager
def call_new_method(what: str) -> Iterator[None]:
    """Translate the errors of a call whose method an older Bot API server does not have.

    Raises:
        AdapterError: the call failed; for good, if the server does not know the method.
    """
    with ERRORS.translated():
        try:
            yield
        except InvalidToken as error:
            if "not found" not in str(error).lower():
                raise
            raise AdapterError(f"{UNKNOWN_METHOD} {what}", permanent=True) from None
