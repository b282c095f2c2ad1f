"""The senders of webhooks: how each one proves that it has the secret, and the id that it gives a call.

Senders sign the bytes as they are sent. Signatures are compared as bytes, however they are written; a time in the
signed text must be of now. A right signature takes as long to check as a wrong one.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from gateway.config.webhooks import WebhookSigner
from gateway.hooks.wires.signing import TOLERANCE, key_of

Headers: TypeAlias = Mapping[str, str]

TOKEN_HEADERS = ("x-webhook-token", "x-gitlab-token")
# The headers that hooks get. All others are dropped, since some hold secrets.
TOLD_HEADERS = (
    *("content-type", "user-agent", "idempotency-key"),
    *("x-github-event", "x-github-delivery", "x-github-hook-id"),
    *("x-gitlab-event", "x-gitlab-event-uuid", "x-gitlab-instance"),
    *("x-slack-request-timestamp", "x-slack-retry-num", "x-slack-retry-reason"),
    *("webhook-id", "webhook-timestamp"),
)
KIND_FIELDS = ("type", "event_type", "object_kind", "event")
MOST_SIGNATURES = 20
_HEX = re.compile(r"[0-9A-Fa-f]{64}")
_STAMP = re.compile(r"[0-9]{1,11}")


class ShownSignatures(NamedTuple):
    """The signatures of a request: the signed text before the body, each signature, and its time if it has one."""

    prefix: str = ""
    signatures: tuple[bytes, ...] = ()
    stamp: str | None = None


class Sender(NamedTuple):
    """One kind of sender. `header` has its signature, and `id_header` or `id_field` its id for a call.

    If `is_id_signed` is False, anyone could change the id.
    """

    read: Callable[[Headers], ShownSignatures]
    header: str
    id_header: str = ""
    id_field: str = ""
    is_id_signed: bool = True


def make_key(signer: WebhookSigner, secret: str) -> bytes:
    """Return the key of a secret. Raises ValueError if it is not valid for this signer."""
    if not secret.strip():
        raise ValueError("the secret is blank")
    return key_of(secret) if signer == "standard" else secret.encode()


def find_sender(headers: Headers) -> WebhookSigner | None:
    """Return the signer whose header the request has; None if it has no signature."""
    return next((name for name, sender in SENDERS.items() if sender.header in headers), None)


def has_token(headers: Headers, key: bytes) -> bool:
    """Return True if a header holds the secret itself."""
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    shown = [headers.get(name, "") for name in TOKEN_HEADERS] + [bearer.strip() if scheme.lower() == "bearer" else ""]
    wanted = hashlib.sha256(key).digest()
    fits = [hmac.compare_digest(hashlib.sha256(one.encode("latin-1")).digest(), wanted) for one in shown]
    return any(fits)  # of all headers, so that it takes the same time


def sign_body(signer: WebhookSigner, key: bytes, headers: Headers, body: bytes) -> tuple[bytes, str]:
    """Return the signature that this request should have, and why it is refused; "" if it is right."""
    shown = SENDERS[signer].read(headers)
    made = hmac.new(key, shown.prefix.encode("latin-1"), hashlib.sha256)
    made.update(body)
    digest = made.digest()
    fits = [hmac.compare_digest(digest, one) for one in shown.signatures]
    if signer == "token":
        return digest, "" if has_token(headers, key) else "it does not show the secret"
    if not fits:
        return digest, "it is not signed"
    return digest, "" if any(fits) else "its signature is not made of this body with this secret"


def is_in_time(signer: WebhookSigner, headers: Headers, now: float) -> bool:
    """Return True if the call was signed within the last five minutes, or if its signature has no time."""
    stamp = SENDERS[signer].read(headers).stamp
    return stamp is None or (bool(_STAMP.fullmatch(stamp)) and abs(now - int(stamp)) <= TOLERANCE)


def find_id(signer: WebhookSigner, headers: Headers, fields: Mapping[str, Any]) -> str:
    """Return the sender's own id for the call; a repeated call has the same one."""
    sender = SENDERS[signer]
    found = fields.get(sender.id_field) if sender.id_field else headers.get(sender.id_header)
    return found if isinstance(found, str) else ""


def find_kind(signer: WebhookSigner, headers: Headers, fields: Mapping[str, Any]) -> str:
    """Return the kind of the event, in the sender's own words."""
    said: list[Any] = [next((fields[key] for key in KIND_FIELDS if isinstance(fields.get(key), str)), "")]
    event = fields.get("event")
    if signer == "github":
        said = [headers.get("x-github-event", ""), fields.get("action")]
    elif signer == "slack" and isinstance(event, dict):
        said.append(event.get("type"))
    return ".".join(part for part in said if isinstance(part, str) and part)


def find_challenge(signer: WebhookSigner, body: Any) -> str:
    """Return the challenge that a sender wants to see before it sends anything; "" for any other call."""
    asks = signer == "slack" and isinstance(body, dict) and body.get("type") == "url_verification"
    said = body.get("challenge") if asks else ""
    return said if isinstance(said, str) else ""


def _read_github(headers: Headers) -> ShownSignatures:
    return ShownSignatures(signatures=_decode_hex(headers.get("x-hub-signature-256", ""), "sha256="))


def _read_stripe(headers: Headers) -> ShownSignatures:
    parts = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    stamps = [value for key, _, value in parts if key == "t"]
    shown = [value for key, _, value in parts if key == "v1"][:MOST_SIGNATURES]
    if len(stamps) != 1:
        return ShownSignatures(stamp="")
    return ShownSignatures(f"{stamps[0]}.", tuple(one for value in shown for one in _decode_hex(value)), stamps[0])


def _read_slack(headers: Headers) -> ShownSignatures:
    stamp = headers.get("x-slack-request-timestamp", "")
    return ShownSignatures(f"v0:{stamp}:", _decode_hex(headers.get("x-slack-signature", ""), "v0="), stamp)


def _read_standard(headers: Headers) -> ShownSignatures:
    name, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    shown = headers.get("webhook-signature", "").split(" ")[:MOST_SIGNATURES] if name else []
    made = tuple(one for value in shown if value.startswith("v1,") for one in _decode_base64(value[3:]))
    return ShownSignatures(f"{name}.{stamp}.", made, stamp)


def _decode_hex(written: str, prefix: str = "") -> tuple[bytes, ...]:
    value = written.removeprefix(prefix)
    return (bytes.fromhex(value),) if written.startswith(prefix) and _HEX.fullmatch(value) else ()


def _decode_base64(written: str) -> tuple[bytes, ...]:
    try:
        return (base64.b64decode(written, validate=True),)
    except ValueError:  # not base64, or not even ASCII
        return ()


SENDERS: Mapping[WebhookSigner, Sender] = {
    "github": Sender(_read_github, "x-hub-signature-256", id_header="x-github-delivery", is_id_signed=False),
    "stripe": Sender(_read_stripe, "stripe-signature", id_field="id"),
    "slack": Sender(_read_slack, "x-slack-signature", id_field="event_id"),
    "standard": Sender(_read_standard, "webhook-signature", id_header="webhook-id"),
    "token": Sender(lambda _headers: ShownSignatures(), "", id_header="idempotency-key"),
}
