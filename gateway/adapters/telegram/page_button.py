"""The button that opens the page: Telegram says who has pressed it, signed with the bot's token.

The button has one address for everybody, and no secret in it. What Telegram adds to that is sent here by our own page
behind the address, and becomes a link such as `/open` gives: once, and soon.
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
EARLY_SECONDS: Final = 30.0  # by which clocks may differ
ADDED: Final = "tgWebAppData"
MOST_SIGNED: Final = 1000  # remembered, so that each is good once


def page_route_of(served_as: str) -> str:
    """What its route is called; no bot can have that name."""
    return f"{served_as}+page"


def find_page_address(context: AdapterContext) -> str:
    """What the button opens; empty where the page has no address that Telegram would open."""
    url = context.routes.public_url.rstrip("/")
    return f"{url}/enter/{context.served_as.replace(':', '/')}" if url.lower().startswith("https:") else ""


class PageButtonRoute:
    """Fills `NetworkRoute`."""

    content_types: tuple[str, ...] = ("application/x-www-form-urlencoded",)
    largest = 1 << 14

    def __init__(self, context: AdapterContext, token: str) -> None:
        self._context = context
        self._token = token
        self._seen: dict[str, float] = {}  # signatures that were good, and until when they would be

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
    """What Telegram has added to the address; no field where that cannot be read."""
    added = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)).get(ADDED, "")
    return dict(parse_qsl(added, keep_blank_values=True))


def verify_fields(fields: dict[str, str], token: str) -> bool:
    """Whether these are all that Telegram has said, and it has said who and when."""
    if not {"hash", "user", "auth_date"} <= fields.keys() or not fields["auth_date"].isdecimal():
        return False
    said = "\n".join(f"{name}={fields[name]}" for name in sorted(fields) if name != "hash")
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    signed = hmac.new(key, said.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return hmac.compare_digest(signed.encode(), fields["hash"].encode("utf-8", "replace"))
