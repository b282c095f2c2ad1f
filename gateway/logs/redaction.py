"""Secrets are taken out of text: those that the configuration holds, and whatever has the shape of one.

It stands beside `text`, which the command line imports for its help: that need not load JSON for it.
"""

import json
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

REPLACEMENT = "[secret]"
MIN_SECRET_LENGTH = 6  # what is shorter stands in too many words

_NAMES_OF_SECRETS = (
    r"(?:access_|refresh_|bot_|auth_|client_)?(?:token|secret|password|passwd|api_?key|authorization|signature)"
)


class TokenShape(NamedTuple):
    """What a secret looks like. Groups of the pattern are kept.

    One of the signs stands in every text that holds such a secret: most texts hold none, and need not be searched.
    """

    signs: tuple[str, ...]
    pattern: str


_SHAPES = tuple(
    TokenShape(signs, pattern)
    for signs, pattern in (
        (("eyJ",), r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),  # JSON web tokens
        (("sk-", "rk-", "pk-"), r"\b[srp]k-[A-Za-z0-9_-]{16,}"),  # models
        (("AIza", "AKIA"), r"\bAIza[A-Za-z0-9_-]{30,}|\bAKIA[0-9A-Z]{16}\b"),
        (("gh", "glpat-"), r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"),
        (("earer",), r"(\b[Bb]earer\s{1,9})(?=[^\s]{0,200}[0-9])[A-Za-z0-9._~+/=-]{8,}"),
        (("=",), rf"(\b(?i:{_NAMES_OF_SECRETS})=)[^\s&\"'<>]{{6,}}"),
        (('":', "':", '" :', "' :"), rf"([\"'](?i:{_NAMES_OF_SECRETS})[\"']\s{{0,9}}:\s{{0,9}}[\"'])[^\"'\s]{{6,}}"),
        (("://",), r"(://[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)"),
        (("PRIVATE KEY",), r"(?s:(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).{0,8000}?-----END)"),
    )
)


class Redactor:
    """Takes secrets out of text. What it has learned it never forgets: an old token may still be somewhere."""

    def __init__(self, secrets: Iterable[str] = (), shapes: Iterable[TokenShape] = ()) -> None:
        self._shapes = [(shape.signs, re.compile(shape.pattern)) for shape in (*shapes, *_SHAPES)]
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            if len(secret) >= MIN_SECRET_LENGTH:
                self._known |= {secret, quote(secret, safe="", errors="replace"), json.dumps(secret)[1:-1]}
        longest_first = sorted(self._known, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def clean(self, text: str) -> str:
        if self._pattern:
            text = self._pattern.sub(REPLACEMENT, text)
        for signs, shape in self._shapes:
            if any(sign in text for sign in signs):
                text = shape.sub(_replace_match, text)
        return text


def _replace_match(found: re.Match[str]) -> str:
    return (found[1] if found.lastindex else "") + REPLACEMENT
