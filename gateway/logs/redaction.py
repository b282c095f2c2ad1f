"""Secrets are taken out of text: those that the configuration holds, and whatever has the shape of one.

It stands beside `text`, which the command line imports for its help: that need not load JSON for it.
"""

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

REPLACEMENT = "[secret]"
MIN_SECRET_LENGTH = 6  # what is shorter stands in too many words

_NAMES_OF_SECRETS = (
    r"(?:access_|refresh_|bot_|auth_|client_)?(?:token|secret|password|passwd|api_?key|authorization|signature)"
)
# Each shape with what must stand in a text for it to be worth a search: most lines hold none of it. Groups are kept.
_SHAPES: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (signs, re.compile(pattern))
    for signs, pattern in (
        ((":", "%3A", "%3a"), r"(?<![0-9])[0-9]{6,12}(?::|%3[Aa])[A-Za-z0-9_-]{30,}"),  # Telegram
        (("xox", "xapp-"), r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}"),  # Slack
        (("hooks.slack.com/",), r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]+"),
        (("/api/webhooks/",), r"(/api/webhooks/[0-9]+/)[A-Za-z0-9_-]+"),  # Discord
        ((".",), r"(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}"),  # Discord
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

    def __init__(self, secrets: Iterable[str] = ()) -> None:
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
        for signs, shape in _SHAPES:
            if any(sign in text for sign in signs):
                text = shape.sub(_replace_match, text)
        return text


def _replace_match(found: re.Match[str]) -> str:
    return (found[1] if found.lastindex else "") + REPLACEMENT
