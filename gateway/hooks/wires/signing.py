"""Signed requests by Standard Webhooks: a signature proves that an owner of the secret has just sent this body, once.

The signature covers `id.timestamp.body`, byte for byte, so that nothing is parsed before it is verified.
"""

import base64
import binascii
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping

import msgspec

TOLERANCE = 300.0
MAX_REMEMBERED = 10_000
MIN_SECRET_BYTES = 24


class BadSignature(ValueError):
    """The error of a request that was not signed with this secret, not recently, or not for the first time."""


def key_of(secret: str) -> bytes:
    """Return the key of a secret: `whsec_` and base64, or any other text of at least 24 characters."""
    if secret.startswith("whsec_"):
        try:
            key = base64.b64decode(secret[6:], validate=True)
        except binascii.Error:
            raise ValueError("what follows whsec_ is not base64") from None
    else:
        key = secret.encode()
    if len(key) < MIN_SECRET_BYTES:
        raise ValueError(f"the secret is shorter than {MIN_SECRET_BYTES} bytes; make one: openssl rand -base64 32")
    return key


def sign(key: bytes, message: str, timestamp: float, body: bytes) -> dict[str, str]:
    """Return the signature headers for this body."""
    stamp = str(int(timestamp))
    return {
        "webhook-id": message,
        "webhook-timestamp": stamp,
        "webhook-signature": f"v1,{_signature(key, message, stamp, body)}",
    }


def _signature(key: bytes, message: str, stamp: str, body: bytes) -> str:
    signed = f"{message}.{stamp}.".encode() + body
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


class Verifier(msgspec.Struct, eq=False):
    """A verifier that accepts each signed request once, within five minutes."""

    _key: bytes
    _clock: Callable[[], float]
    _seen: OrderedDict[str, float] = msgspec.field(default_factory=OrderedDict)

    def verify(self, headers: Mapping[str, str], body: bytes) -> None:
        """Verify a request; raises BadSignature with the reason. Header names are in lower case."""
        message, stamp, given = (headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature"))
        if not (message and stamp.isascii() and stamp.isdigit() and len(stamp) < 12 and given):
            raise BadSignature("the request is not signed")
        now = self._clock()
        if abs(now - int(stamp)) > TOLERANCE:
            raise BadSignature("the request was not signed within the last five minutes")
        wanted = f"v1,{_signature(self._key, message, stamp, body)}".encode()
        if not any(hmac.compare_digest(wanted, one.encode("utf-8", "replace")) for one in given.split(" ")):
            raise BadSignature("the signature does not fit this request")
        if message in self._seen:
            raise BadSignature("the request was here before")
        self._seen[message] = now
        while self._seen and (
            len(self._seen) > MAX_REMEMBERED or now - next(iter(self._seen.values())) > 2 * TOLERANCE
        ):
            self._seen.popitem(last=False)
