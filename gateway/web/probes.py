"""`/health`, `/ready` and `/metrics`, answered without any library.

`/health` is 200 as long as the process answers. `/ready` is 503 with the reasons until every configured part is up. If
other machines can reach the port, reasons and figures require the key of an operator.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from typing import TypeAlias

import anyio
import msgspec

from gateway.web.http_request import HttpRequest, HttpResponse, answer_json
from gateway.web.key_check import KeyCheck
from gateway.web.metric_text import CONTENT_TYPE, HistogramMetric, Metric, render_metrics
from gateway.web.request_body import WebRefusal

WANTS_KEY = (
    "an API key is required, in a header `Authorization: Bearer KEY`: hermes-gateway keys new NAME --as operator"
)
METRICS_SECONDS = 1.0


class Reason(msgspec.Struct, frozen=True):
    """A part of the gateway that is not up: a reason why it is not ready."""

    part: str
    state: str
    detail: str


FindReasons: TypeAlias = Callable[[], Awaitable[Sequence[Reason]]]
CollectMetrics: TypeAlias = Callable[[], Awaitable[Iterable[Metric | HistogramMetric]]]


class Probes(msgspec.Struct, eq=False):
    """Answers the three paths."""

    _is_open: bool
    _keys: KeyCheck
    _find_reasons: FindReasons
    _collect_metrics: CollectMetrics
    _redact: Callable[[str], str]
    _collecting: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    _metrics: bytes = b""
    _stale_at: float = float("-inf")  # a steady clock may begin below zero

    async def answer(self, request: HttpRequest, peer: str) -> HttpResponse:
        """Answer a request; raises WebRefusal."""
        if request.method not in ("GET", "HEAD"):
            raise WebRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "this is only read", Allow="GET, HEAD")
        match request.path:
            case "/health":
                return HttpResponse(body=b"ok\n")
            case "/ready":
                return await self._answer_ready(request, peer)
            case "/metrics":
                if not self._is_operator(request, peer):
                    raise WebRefusal(HTTPStatus.UNAUTHORIZED, WANTS_KEY, WWW_Authenticate="Bearer")
                return HttpResponse(body=await self._read_metrics(), content_type=CONTENT_TYPE)
        raise WebRefusal(HTTPStatus.NOT_FOUND, "not found")

    async def _answer_ready(self, request: HttpRequest, peer: str) -> HttpResponse:
        is_told = self._is_operator(request, peer)
        reasons = await self._find_reasons()
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        return answer_json({"ready": not reasons, **({"reasons": reasons} if is_told else {})}, status)

    async def _read_metrics(self) -> bytes:
        """Return the figures, collected at most once a second."""
        async with self._collecting:
            if time.monotonic() >= self._stale_at:
                self._metrics = self._redact(render_metrics(await self._collect_metrics())).encode("utf-8", "replace")
                self._stale_at = time.monotonic() + METRICS_SECONDS
            return self._metrics

    def _is_operator(self, request: HttpRequest, peer: str) -> bool:
        """Return True if the caller may see reasons and figures.

        Raises:
            WebRefusal: the key is wrong, as were too many from there, or its role is too low.
        """
        found = self._keys.find(request, peer)
        if found is None:
            return not self._is_open
        if found.role != "operator":
            raise WebRefusal(HTTPStatus.FORBIDDEN, f"this key is a {found.role}'s; an operator's is wanted here")
        return True
