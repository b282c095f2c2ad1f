"""What went wrong with a model, in one taxonomy for all providers: the `kind` of a `ModelError`.

auth, quota, rate, overload, context, network, timeout, filter, missing, request, response; `other` for the rest.
"""

import re
from collections.abc import Mapping
from typing import Any

from gateway.errors import ModelError

BY_STATUS: Mapping[int, str] = {
    400: "request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "missing",
    408: "timeout",
    413: "context",
    422: "request",
    429: "rate",
}
TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|maximum context|too many tokens|prompt is too long")
NO_CREDIT = re.compile(r"insufficient[_ ](quota|credit|balance|funds)|exceeded your current quota|billing")
FILTERED = re.compile(r"content[_ ](filter|policy)|safety system")
LONGEST = 500


def as_model_error(error: Exception) -> ModelError:
    """The error of a provider's library as one of ours; the libraries' own classes are known by name and status."""
    if isinstance(error, ModelError):
        return error
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return ModelError(_text_of(error), kind=_kind(status, error), retry_after=_retry_after(error))
    name = f"{type(error).__name__} {type(error.__cause__).__name__}"
    if "Timeout" in name:
        return ModelError("the model's endpoint took too long to answer", kind="timeout")
    if re.search(r"Connect|Protocol|Network|ReadError|WriteError|Closed", name):
        cause = error.__cause__ or error
        return ModelError(f"the model's endpoint could not be reached: {cause}"[:LONGEST], kind="network")
    if isinstance(error, ValueError):
        return ModelError(f"the model's endpoint sent what is no answer: {error}"[:LONGEST], kind="response")
    return ModelError(f"{type(error).__name__}: {error}"[:LONGEST])


def _kind(status: int, error: Exception) -> str:
    words = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {error}".lower()
    if NO_CREDIT.search(words) and status in (402, 403, 429):
        return "quota"
    if status in (400, 413, 422):
        if TOO_LONG.search(words):
            return "context"
        if FILTERED.search(words):
            return "filter"
    return BY_STATUS.get(status, "overload" if status >= 500 else "request")


def _text_of(error: Exception) -> str:
    """The endpoint's own words, cut: some send a whole page of HTML."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        body = body["error"]
    said = body.get("message") if isinstance(body, dict) else None
    return f"HTTP {getattr(error, 'status_code', '?')}: {said or error}"[:LONGEST]


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        if "retry-after-ms" in headers:
            return float(headers["retry-after-ms"]) / 1000
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return None


LONGEST_LINE = 16_000_000


class SseDecoder:
    """Feed it bytes; it gives the data of the events that are complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of each event that this piece completes. Raises ValueError when a line has no end."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > LONGEST_LINE:
            raise ValueError("a line of the stream has no end")
        events = []
        for line in lines:
            line = line.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data = []
        return events

    def rest(self) -> bytes:
        """What came without the end of an event, once the stream is over."""
        if self._rest.startswith(b"data:"):
            self._data.append(self._rest[5:].strip())
            self._rest = b""
        return b"\n".join(self._data) or self._rest
