"""The button that opens the page: Telegram names the person who pressed it, signed with the bot's token.

The button has one address for all people, and no secret in it. Our own page at that address sends the data that
Telegram adds here, and gets a link like the one of `/open`: it works once, and only soon.
"""

import hashlib
import hmac
import json
import time
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.network_routes import Headers, RouteAnswer
from gateway.adapters.telegram.connection import PLATFORM
from gateway.errors import AccessError
from gateway.messages.message import Address, Message

FRESH_SECONDS: Final = 60.0
EARLY_SECONDS: Final = 30.0  # the tolerance for clocks
ADDED: Final = "tgWebAppData"
MOST_SIGNED: Final = 1000  # remembered signatures, each of which works once


def page_route_of(served_as: str) -> str:
    """Return the name of the button's route, which no bot can have."""
    return f"{served_as}+page"


def find_page_address(context: AdapterContext) -> str:
    """Return the address of the button; "" if the page has no address that Telegram would open."""
    url = context.routes.public_url.rstrip("/")
    return f"{url}/enter/{context.served_as.replace(':', '/')}" if url.lower().startswith("https:") else ""


class PageButtonRoute:
    """The route of the button; fills `NetworkRoute`."""

    content_types: tuple[str, ...] = ("application/x-www-form-urlencoded",)
    largest = 1 << 14

    def __init__(self, context: AdapterContext, token: str) -> None:
        self._context = context
        self._token = token
        self._seen: dict[str, float] = {}  # used signatures, until they expire

    def why_not_heard(self, _headers: Headers) -> str:
        return "" if find_page_address(self._context) else "the page has no address of https"

    def why_not_believed(self, _headers: Headers, body: bytes) -> str:
        fields, now = read_fields(body), time.time()
        if not verify_fields(fields, self._token):
            return "Telegram has not signed who pressed the button"
        if not -EARLY_SECONDS <= now - float(fields["auth_date"]) <= FRESH_SECONDS:
            return "the button was pressed too long ago"
        self._seen = {one: until for one, until in self._seen.items() if until > now}
        if fields["hash"] in self._seen or len(self._seen) >= MOST_SIGNED:
            return "the button was pressed once, and this came twice"
        self._seen[fields["hash"]] = float(fields["auth_date"]) + FRESH_SECONDS
        return ""

    async def take(self, _headers: Headers, body: bytes) -> RouteAnswer:
        fields = read_fields(body)
        user = str(json.loads(fields["user"])["id"])
        asked = Message(f"page:{fields['hash']}", Address(PLATFORM, user, "dm"), user, "/open", kind="command")
        try:
            return RouteAnswer(HTTPStatus.OK, await self._context.open_page(asked))
        except AccessError as error:
            return RouteAnswer(HTTPStatus.FORBIDDEN, str(error))


def read_fields(body: bytes) -> dict[str, str]:
    """Return the data that Telegram added to the address; empty if it cannot be read."""
    added = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)).get(ADDED, "")
    return dict(parse_qsl(added, keep_blank_values=True))


def verify_fields(fields: dict[str, str], token: str) -> bool:
    """Return True if Telegram signed all fields, and the person and the time are among them."""
    if not {"hash", "user", "auth_date"} <= fields.keys() or not fields["auth_date"].isdecimal():
        return False
    said = "\n".join(f"{name}={fields[name]}" for name in sorted(fields) if name != "hash")
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    signed = hmac.new(key, said.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return hmac.compare_digest(signed.encode(), fields["hash"].encode("utf-8", "replace"))
