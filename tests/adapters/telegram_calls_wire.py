"""Telegram on loopback as it is to a bot that it calls: one update after another, each until it hears 200."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.adapters.telegram_wire import Refused, TelegramWire
from tests.http_server import find_free_ports

AGAIN = 0.2  # seconds; the real one waits for longer


@dataclass
class TelegramCallsWire(TelegramWire):
    """Fills `Wire`. `statuses` has what the calls were answered with; `asked_for` how the bot wants to be called."""

    statuses: list[int] = field(default_factory=list)
    asked_for: dict[str, Any] = field(default_factory=dict)
    last_error: tuple[float, str] = (0.0, "")
    _port: int = 0

    @property
    def environ(self) -> dict[str, str]:
        return {
            **super().environ,
            "GATEWAY_PLATFORMS_TELEGRAM_MODE": "webhook",
            "GATEWAY_WEB_LISTEN": f"127.0.0.1:{self._port}",
            "GATEWAY_WEB_URL": f"http://127.0.0.1:{self._port}",
        }

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        (self._port,) = find_free_ports(1)
        async with super().serving():
            calling = asyncio.get_running_loop().create_task(self._call())
            try:
                yield
            finally:
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)

    async def _call(self) -> None:
        """Whatever waits, the oldest first; what is not taken is called with again."""
        async with aiohttp.ClientSession() as http:
            while True:
                news = self._news
                if not self.webhook or not self.updates:
                    await news.wait()
                    continue
                update, self._served = self.updates[0], self.updates[:1]
                if await self.post(http, update) == 200:
                    self.updates = [one for one in self.updates if one is not update]
                else:
                    await asyncio.sleep(AGAIN)

    async def post(self, http: aiohttp.ClientSession, update: Any, **headers: str) -> int:
        """One call, as it was asked for."""
        told = {"X-Telegram-Bot-Api-Secret-Token": str(self.asked_for.get("secret_token", "")), **headers}
        try:
            async with http.post(self.webhook, json=update, headers=told, ssl=self.trusted()) as answer:
                status = answer.status
        except aiohttp.ClientError as error:
            self.last_error = (time.time(), str(error))
            return 0
        self.statuses.append(status)
        if status != 200:
            self.last_error = (time.time(), f"Wrong response from the webhook: {status}")
        return status

    def trusted(self) -> ssl.SSLContext | bool:
        """Where it was given a certificate, that one and no other; whose name stands on it is not looked at here."""
        if "certificate" not in self.asked_for:
            return True
        _, written = self.asked_for["certificate"]
        context = ssl.create_default_context(cadata=written.decode())
        context.check_hostname = False
        return context

    def _on_setwebhook(self, asked: dict[str, Any]) -> Any:
        if asked["url"].startswith("http://refused"):
            raise Refused(400, "Bad Request: bad webhook: HTTPS url must be provided for webhook")
        self.webhook, self.asked_for = asked["url"], asked
        self._wake()
        return True

    def _on_deletewebhook(self, _asked: dict[str, Any]) -> Any:
        self.webhook = ""
        self._wake()
        return True

    def _on_getwebhookinfo(self, _asked: dict[str, Any]) -> Any:
        at, why = self.last_error
        failed = {"last_error_date": int(at), "last_error_message": why} if at else {}
        return {**super()._on_getwebhookinfo(_asked), **failed}
