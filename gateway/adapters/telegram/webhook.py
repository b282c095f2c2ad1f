"""The webhook of Telegram: its calls show a secret of ours in a header, are stored in the journal, then acknowledged.

The secret is made from the bot's token, so it is the same after every start and is stored nowhere. Telegram reports the
reason of each failed call; if its calls do not arrive the bot polls instead, until a person has repaired that.
"""

import hashlib
import hmac
import json
import time
from http import HTTPStatus
from pathlib import Path
from typing import Final

import anyio
from telegram import Bot, WebhookInfo
from telegram.error import BadRequest

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.network_routes import Headers, RouteAnswer, network_url_of, route_of
from gateway.adapters.telegram.receiver import TelegramReceiver
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.adapters.telegram.updates import UPDATE_KINDS, FetchedUpdates, PendingUpdates

SECRET_HEADER: Final = "x-telegram-bot-api-secret-token"  # noqa: S105 - its name, no secret
LINES: Final = 40  # connections at most; Telegram sends the updates of one chat one after another
LOOK: Final = 20.0  # seconds between two checks that calls arrive
CURSOR: Final = ":calls"


class TelegramRoute:
    """The route of one bot's calls; fills `NetworkRoute`."""

    content_types: tuple[str, ...] = ("application/json",)
    largest = 1 << 20

    def __init__(self, held: PendingUpdates, presence: Presence, token: str) -> None:
        self._held = held
        self._presence = presence
        self.secret = hmac.new(token.encode(), b"hermes-gateway: calls to the port", hashlib.sha256).hexdigest()

    def why_not_heard(self, headers: Headers) -> str:
        shown = headers.get(SECRET_HEADER, "").encode("utf-8", "replace")
        return "" if hmac.compare_digest(shown, self.secret.encode()) else "it does not show our secret"

    def why_not_believed(self, _headers: Headers, _body: bytes) -> str:
        return ""

    async def take(self, _headers: Headers, body: bytes) -> RouteAnswer:
        """Take a call; an unreadable one is skipped, and acknowledged."""
        with self._presence.skipping("update", lambda: body.decode(errors="replace")):
            update = json.loads(body)
            if not isinstance(update, dict) or type(update.get("update_id")) is not int:
                raise ValueError("it has no update_id")
            await self._held.hold(update)
        return RouteAnswer(HTTPStatus.OK)


class TelegramWebhook:
    """The webhook: it has Telegram call us, and reads the updates of the calls."""

    def __init__(self, bot: Bot, settings: TelegramSettings, context: AdapterContext, presence: Presence) -> None:
        self._bot = bot
        self._settings = settings
        self._context = context
        self._presence = presence
        self._held = PendingUpdates(context.parts.engine, str(bot.id))
        self._url = network_url_of(context.routes.public_url, context.served_as)

    def make_receiver(self) -> TelegramReceiver:
        return TelegramReceiver(self._bot, self._context, self._presence, self._held, CURSOR)

    async def serve(self, receiver: TelegramReceiver) -> str:
        """Serve while calls arrive; return the reason once they do not."""
        route = TelegramRoute(self._held, self._presence, self._settings.token.reveal())
        with self._context.routes.serving(self._context.served_as, route):
            await receiver.begin()
            if why_not := await self._ask_for_calls(route.secret):
                return why_not
            self._presence.up(f"@{self._bot.username}, by its calls to {route_of(self._context.served_as)}")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receiver.run)
                why_not = await self._watch()
                tasks.cancel_scope.cancel()
        return why_not

    async def begin_polls(self) -> TelegramReceiver:
        """Remove our own webhook at Telegram, and read the updates that it brought; then polls may go on."""
        info = await self._bot.get_webhook_info()
        if info.url == self._url or info.url.endswith(route_of(self._context.served_as)):
            await self._bot.delete_webhook()
        called, source = self.make_receiver(), FetchedUpdates(self._bot, self._presence)
        await called.begin()
        await called.read_held()
        polling = TelegramReceiver(self._bot, self._context, self._presence, source)
        await polling.begin()
        return polling

    async def _ask_for_calls(self, secret: str) -> str:
        """Return why Telegram refuses to call; "": it will call."""
        certificate = self._context.routes.certificate
        shown = Path(certificate) if certificate and not has_chain(certificate) else None
        kinds = list(UPDATE_KINDS)
        try:
            await self._bot.set_webhook(self._url, shown, LINES, allowed_updates=kinds, secret_token=secret)
        except BadRequest as error:
            return str(error)
        return ""

    async def _watch(self) -> str:
        """Wait until calls fail; return the reason."""
        since = time.time()
        while True:
            await anyio.sleep(LOOK)
            info = await self._bot.get_webhook_info()
            self._presence.answered()
            if why_not := why_calls_fail(info, self._url, since):
                return why_not


def has_chain(certificate: str) -> bool:
    """Return True if a chain vouches for the certificate; a self-signed one has to be uploaded to Telegram."""
    return Path(certificate).read_text("ascii", "replace").count("-----BEGIN CERTIFICATE-----") > 1


def why_calls_fail(info: WebhookInfo, url: str, since: float) -> str:
    """Return why Telegram's calls have failed since then; "": they arrive, or there were none."""
    if info.url != url:
        return f"another program has set another address: {info.url}" if info.url else "another program has removed it"
    failed = info.last_error_date.timestamp() if info.last_error_date else 0.0
    return f"{info.last_error_message}" if failed > since and info.pending_update_count else ""
