"""The removal of secrets from text: those of the configuration, and any text with the shape of a secret.

It is a module beside `text`, which the command line imports for its help without loading JSON.
"""

import json
import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote

REPLACEMENT = "[secret]"
SECRET_NAME = re.compile(
    r"token|secret|passw|pwd|signature|credential|authorization|(?:api|access)[-_]?key|(?:^|[-_])(?:sig|key|auth|jwt)$",
    re.IGNORECASE,
)
MIN_SECRET_LENGTH = 6  # shorter ones occur in too many words

_NAMES_OF_SECRETS = (
    r"(?:access_|refresh_|bot_|auth_|client_)?(?:token|secret|password|passwd|api_?key|authorization|signature)"
)


class TokenShape(NamedTuple):
    """The shape of a secret. Groups of the pattern are kept.

    Every text with such a secret has one of the signs: most texts have none, and need not be searched.
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
        (("/open?code=",), r"(/open\?code=)[A-Za-z0-9_-]{20,}"),  # links to the page
        (("://",), r"(://[^\s/:@]{0,200}:)[^\s/@]{1,500}(?=@)"),
        (("PRIVATE KEY",), r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)(?:[^-]|-(?!----)){1,8000}+(?:-----END)?"),
    )
)


class Redactor:
    """Removes secrets from text. It never forgets one that it has learned: an old token may still be in use."""

    def __init__(self, secrets: Iterable[str] = (), shapes: Iterable[TokenShape] = ()) -> None:
        self._shapes = [*shapes, *_SHAPES]
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None  # made when it is first needed: most commands clean nothing
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        known = set(self._known)
        for secret in secrets:
            if len(secret) >= MIN_SECRET_LENGTH:
                known |= {secret, quote(secret, safe="", errors="replace"), json.dumps(secret)[1:-1]}
        if known != self._known:  # the log's thread may be reading the set that there is: it is left as it is
            self._known, self._pattern = known, None

    def clean(self, text: str) -> str:
        if self._known:
            text = (self._pattern or self._compile()).sub(REPLACEMENT, text)
        if not self._any_sign.search(text):
            return text
        for signs, pattern in self._shapes:
            if any(sign in text for sign in signs):
                text = re.sub(pattern, _replace_match, text)
        return text

    def clean_all(self, data: Any) -> Any:
        """Clean every text in builtin data; keys, numbers and booleans stay as they are.

        Most data is clean, and one look at all its texts together shows that.
        """
        together = "\n".join(_list_texts(data))
        if self.clean(together) == together:
            return data
        match data:
            case str():
                return self.clean(data)
            case dict():
                return {key: self.clean_all(value) for key, value in data.items()}
            case list() | tuple():
                return [self.clean_all(value) for value in data]
        return data

    @cached_property
    def _any_sign(self) -> re.Pattern[str]:
        """One look instead of one for each sign."""
        return re.compile("|".join(re.escape(sign) for signs, _ in self._shapes for sign in signs))

    def _compile(self) -> re.Pattern[str]:
        known = self._known
        pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
        if known is self._known:
            self._pattern = pattern
        return pattern


def _list_texts(data: Any) -> list[str]:
    texts, waiting = [], [data]
    while waiting:
        match waiting.pop():
            case str() as text:
                texts.append(text)
            case dict() as fields:
                waiting += fields.values()
            case (list() | tuple()) as values:
                waiting += values
    return texts


def _replace_match(found: re.Match[str]) -> str:
    return (found[1] if found.lastindex else "") + REPLACEMENT
