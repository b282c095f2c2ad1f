"""`POST /webhooks/NAME`: check the sender, read the call, and confirm that it is in the journal.

An unknown name, one whose secret is not set and a wrong secret get the same answer, in the same time: each is compared
with some secret. A call without any token or signature is refused before any byte of the body is read.
"""

import logging
import math
import secrets
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import NamedTuple

import anyio
import msgspec

from gateway.config.webhooks import WEBHOOK_NAME, WebhookSettings
from gateway.errors import EngineError
from gateway.web.host_rules import HostRules
from gateway.web.http_request import HttpRequest, HttpResponse, answer_json
from gateway.web.key_check import KeyLimiter
from gateway.web.request_body import RequestBody, WebRefusal
from gateway.web.webhooks.content import check_content_type, parse_call
from gateway.web.webhooks.intake import WebhookIntake
from gateway.web.webhooks.senders import find_challenge, find_sender, has_token, is_in_time, sign_body

log = logging.getLogger(__name__)

PATH = "/webhooks/"
UNBELIEVED = "unknown webhook, or this was not signed with its secret"
MOST_LARGE = 32  # large bodies that are read at the same time
MOST_SMALL = 128  # bodies of at most `MOST_UNASKED` bytes; a quarter of the port's connections
MINUTE = 60.0
COME_AGAIN = "10"
TOO_MANY = "too many call at the same time"
DEFAULT_SIZE = WebhookSettings(secret_env="", verify="token").max_size


class Webhook(NamedTuple):
    """A webhook that was configured in `origin`. `trouble`: why it cannot be called; empty if its key is known."""

    name: str
    settings: WebhookSettings
    origin: str
    key: bytes = b""
    trouble: str = ""
    remark: str = ""


class WebhookCounts(msgspec.Struct):
    """The outcomes of calls since the start. `refusal` is the reason of the last refused one."""

    taken: int = 0
    known: int = 0
    refused: int = 0
    refusal: str = ""
    refused_at: float = 0.0


class UsedPlace(NamedTuple):
    """A place in use: one body that is being read."""

    peer: str
    body: RequestBody
    scope: anyio.CancelScope


class BodyPlaces(msgspec.Struct, eq=False):
    """The places for senders that are not authenticated yet: so few that they fill neither memory nor port.

    If no place is free, the sender with most of them loses one: from the older half, the body that has received the
    fewest bytes. So slow senders cannot lock out others, not even from the same address.
    """

    _held: list[UsedPlace] = []

    @asynccontextmanager
    async def hold(self, peer: str, body: RequestBody) -> AsyncIterator[None]:
        """Hold a place inside the block.

        Raises:
            WebRefusal: another body needed the place.
        """
        self._make_room(body)
        with anyio.CancelScope() as scope:
            place = UsedPlace(peer, body, scope)
            self._held.append(place)
            try:
                yield
            finally:
                with suppress(ValueError):
                    self._held.remove(place)
        if scope.cancelled_caught:
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, TOO_MANY, Retry_After=COME_AGAIN)

    def _make_room(self, body: RequestBody) -> None:
        alike = [one for one in self._held if one.body.is_large == body.is_large]
        if len(alike) < (MOST_LARGE if body.is_large else MOST_SMALL):
            return
        (greedy, _), *_ = Counter(one.peer for one in alike).most_common(1)
        own = [one for one in alike if one.peer == greedy]
        slowest = min(own[: (len(own) + 1) // 2], key=lambda one: one.body.came)
        self._held.remove(slowest)
        slowest.scope.cancel()


class WebhookReceiver(msgspec.Struct, eq=False):
    """The receiver of calls; `list_webhooks` returns the present webhooks, by name."""

    _list_webhooks: Callable[[], Mapping[str, Webhook]]
    _intake: WebhookIntake
    _rules: HostRules
    counts: dict[str, WebhookCounts] = {}
    _limiter: KeyLimiter = msgspec.field(default_factory=KeyLimiter)
    _places: BodyPlaces = msgspec.field(default_factory=BodyPlaces)
    _came: dict[str, deque[float]] = {}  # times of calls in the last minute, by name
    _decoy: bytes = msgspec.field(default_factory=lambda: secrets.token_bytes(32))

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse:
        """Answer a call; raises WebRefusal."""
        if request.method != "POST":
            raise WebRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "a webhook is called by POST", Allow="POST")
        if request.query:
            raise WebRefusal(
                HTTPStatus.BAD_REQUEST, "a webhook takes no values from its address: put secrets into headers"
            )
        check_content_type(request.headers)
        webhooks = {name: one for name, one in self._list_webhooks().items() if not one.trouble}
        name = request.path.removeprefix(PATH)
        webhook = webhooks.get(name) if WEBHOOK_NAME.fullmatch(name) else None
        shown = find_sender(request.headers)
        is_believed = self._has_token(webhook, request.headers)
        if not is_believed and not shown:
            raise self._refuse(webhook, "it shows neither a signature nor the secret", request, peer)
        largest = max([DEFAULT_SIZE, *(one.settings.max_size for one in webhooks.values())])
        body = await self._read(request, peer, largest, is_believed=is_believed)
        signer, key = (webhook.settings.verify, webhook.key) if webhook else (shown or "token", self._decoy)
        digest, why_not = sign_body(signer, key, request.headers, body)
        if not why_not and not is_in_time(signer, request.headers, time.time()):
            why_not = "it was not signed within the last five minutes"
        if why_not or webhook is None:
            raise self._refuse(webhook, why_not, request, peer)
        self._check_rate(webhook, body)
        call = parse_call(signer, request.headers, body, digest)
        if challenge := find_challenge(signer, call.body):
            return HttpResponse(body=challenge.encode("utf-8", "replace"))
        try:
            is_new = await self._intake.take(webhook.name, webhook.settings, call)
        except EngineError as error:
            log.warning("webhook %s: %s was not taken: %s", webhook.name, call.id, error)
            what = "the journal takes nothing now; come again"
            raise WebRefusal(HTTPStatus.SERVICE_UNAVAILABLE, what, Retry_After=COME_AGAIN) from None
        counts = self._counts_of(webhook)
        counts.taken, counts.known = counts.taken + is_new, counts.known + (not is_new)
        return answer_json({"id": call.id, "known": not is_new}, HTTPStatus.ACCEPTED)

    def _has_token(self, webhook: Webhook | None, headers: Mapping[str, str]) -> bool:
        is_right = has_token(headers, webhook.key if webhook else self._decoy)
        return is_right and webhook is not None and webhook.settings.verify == "token"

    async def _read(self, request: HttpRequest, peer: str, largest: int, *, is_believed: bool) -> bytes:
        if is_believed:
            return await request.body.read(largest)
        async with self._places.hold(self._rules.find_peer(request.headers, peer), request.body):
            return await request.body.read(largest)

    def _check_rate(self, webhook: Webhook, body: bytes) -> None:
        """Raise WebRefusal for a body that is too large, or for a call beyond the rate."""
        if len(body) > webhook.settings.max_size:
            what = f"this takes at most {webhook.settings.max_size} bytes"
            raise WebRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, what)
        now, came = time.monotonic(), self._came.setdefault(webhook.name, deque())
        while came and came[0] <= now - MINUTE:
            came.popleft()
        if len(came) >= webhook.settings.rate:
            wait = str(math.ceil(came[0] + MINUTE - now))
            raise WebRefusal(HTTPStatus.TOO_MANY_REQUESTS, "too many calls in a minute", Retry_After=wait)
        came.append(now)

    def _refuse(self, webhook: Webhook | None, why: str, request: HttpRequest, peer: str) -> WebRefusal:
        """Make the refusal of an unauthenticated call; only the operator sees the reason."""
        if webhook:
            counts = self._counts_of(webhook)
            counts.refused, counts.refusal, counts.refused_at = counts.refused + 1, why, time.time()
        unbelieved = WebRefusal(HTTPStatus.UNAUTHORIZED, UNBELIEVED)
        return self._limiter.refuse(self._rules.find_peer(request.headers, peer), "calls", unbelieved)

    def _counts_of(self, webhook: Webhook) -> WebhookCounts:
        return self.counts.setdefault(webhook.name, WebhookCounts())
