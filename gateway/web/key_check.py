"""The key of a request, and the limit on wrong keys.

Guessing is slowed: a peer that sends wrong keys must wait, this machine included. The right key always works: it cannot
be a lucky guess, and a program is not locked out by a page that guesses on the same machine.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from gateway.records.records import ProgramKey
from gateway.web.host_rules import HostRules
from gateway.web.http_request import HttpRequest
from gateway.web.program_keys import ProgramKeys
from gateway.web.request_body import WebRefusal

NOBODY_HAS = "unknown API key: it is mistyped, or was revoked; the known ones: hermes-gateway keys list"
MOST_WRONG = 10  # keys of one peer, in WINDOW seconds
WINDOW = 60.0
MOST_PEERS = 10_000


class KeyLimiter(msgspec.Struct, eq=False):
    """The counts of wrong keys by peer; beyond a limit, the peers that were longest silent are forgotten."""

    _clock: Callable[[], float] = time.monotonic
    # By peer: when the window began, and the count.
    _wrong: OrderedDict[str, tuple[float, int]] = msgspec.field(default_factory=OrderedDict)

    def refuse(self, peer: str, what: str, usual: WebRefusal) -> WebRefusal:
        """Count a wrong key; return the usual refusal or, after too many, one that says how long to wait."""
        if wait := self.note_wrong(peer):
            said = f"too many wrong {what} came from there"
            return WebRefusal(HTTPStatus.TOO_MANY_REQUESTS, said, Retry_After=str(wait))
        return usual

    def note_wrong(self, peer: str) -> int:
        """Count a wrong key; return for how many seconds this peer must wait, or 0 for not yet."""
        now = self._clock()
        since, count = self._wrong.pop(peer, (now, 0))
        if now - since >= WINDOW:
            since, count = now, 0
        self._wrong[peer] = (since, count + 1)
        if len(self._wrong) > MOST_PEERS:
            self._wrong.popitem(last=False)
        return math.ceil(since + WINDOW - now) if count >= MOST_WRONG else 0


class KeyCheck(msgspec.Struct, eq=False):
    """The check that finds the key of a request."""

    _keys: ProgramKeys
    _rules: HostRules
    _limiter: KeyLimiter = msgspec.field(default_factory=KeyLimiter)

    def find(self, request: HttpRequest, peer: str) -> ProgramKey | None:
        """Return the key of a request; None if it shows none.

        Raises:
            WebRefusal: the key is unknown, or too many wrong ones came from this peer.
        """
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if not key:
            return None
        found = self._keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            unknown = WebRefusal(HTTPStatus.UNAUTHORIZED, NOBODY_HAS, WWW_Authenticate="Bearer")
            raise self._limiter.refuse(self._rules.find_peer(request.headers, peer), "keys", unknown)
        return found
