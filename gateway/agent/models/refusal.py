"""The refusal of an endpoint, and its meaning: a kind of error, words, and when to try again."""

import re
from collections.abc import Mapping
from typing import Any

from gateway.worker.json_decoder import JsonDecoder

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
    501: "missing",
}
TOO_LONG = re.compile(r"context.{0,20}(length|window|size)|maximum context|too many tokens|prompt is too long")
NO_CREDIT = re.compile(r"insufficient[_ ](quota|credit|balance|funds)|exceeded your current quota|billing")
FILTERED = re.compile(r"content[_ ](filter|policy)|safety system")
LONGEST_REASON = 500

_decode = JsonDecoder[Any]().decode


class RefusedRequest(Exception):
    """An answer with another status than success. Its text is the endpoint's own; `target`: where it redirects to."""

    def __init__(self, status: int, headers: Mapping[str, str], text: str, target: str = "") -> None:
        super().__init__(f"HTTP {status}: {find_words(text) or 'without a word'}"[:LONGEST_REASON])
        self.status = status
        self.target = target
        self._headers = headers
        self._text = text

    @property
    def kind(self) -> str:
        words = self._text.lower()
        if NO_CREDIT.search(words) and self.status in (402, 403, 429):
            return "quota"
        if self.status in (400, 413, 422):
            if TOO_LONG.search(words):
                return "context"
            if FILTERED.search(words):
                return "filter"
        return BY_STATUS.get(self.status, "overload" if self.status >= 500 else "request")

    @property
    def retry_after(self) -> float | None:
        """Seconds, where it says so."""
        try:
            if "retry-after-ms" in self._headers:
                return float(self._headers["retry-after-ms"]) / 1000
            return float(self._headers["retry-after"])
        except (KeyError, ValueError):
            return None


def find_words(text: str) -> str:
    """Return the message in it, or all of it; a page for browsers is just named, since its beginning is of no use."""
    try:
        body = _decode(text.encode())
    except ValueError:
        return "a web page" if text.startswith("<") else text
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message") if isinstance(inner, dict) else inner
    return message if isinstance(message, str) else text
