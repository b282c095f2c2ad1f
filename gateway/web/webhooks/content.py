"""The content of a webhook call, as data: JSON or a form. No part of it is run.

Strangers wrote it, so its size is limited before it is decoded.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from gateway.config.webhooks import WebhookSigner
from gateway.web.request_body import WebRefusal
from gateway.web.webhooks.senders import SENDERS, TOLD_HEADERS, find_id, find_kind
from gateway.worker.json_decoder import JsonDecoder

LONGEST_HEADER = 300
LONGEST_KIND = 100
MOST_FIELDS = 1000
FORM = "application/x-www-form-urlencoded"
_JSON = re.compile(r"application/(?:[a-z0-9.-]+\+)?json")
_PLAIN_ID = re.compile(r"[!-~]{1,128}")
_decode = JsonDecoder[Any]().decode


class WebhookCall(msgspec.Struct, frozen=True):
    """One authenticated call. `id` is the sender's own, or made from the signature: a repeated call has the same one.

    `mark` identifies the call too, if its `id` is not part of the signed text.
    """

    id: str
    kind: str
    headers: Mapping[str, str]
    body: Any
    text: str
    mark: str = ""


def check_content_type(headers: Mapping[str, str]) -> None:
    """Raise WebRefusal for a body that is neither JSON nor a form."""
    kind, *parameters = [part.strip().lower() for part in headers.get("content-type", "").split(";")]
    is_utf8 = all(one.replace('"', "") in ("", "charset=utf-8") for one in parameters)
    if not (is_utf8 and (kind == FORM or _JSON.fullmatch(kind))):
        raise WebRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this takes application/json, or a form, in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise WebRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "this takes what is not compressed")


def parse_call(signer: WebhookSigner, headers: Mapping[str, str], body: bytes, digest: bytes) -> WebhookCall:
    """Parse a call; `digest` is the signature that it should have.

    Raises:
        WebRefusal: the body does not match its type.
    """
    try:
        text = body.decode()
        found = _parse_form(text) if headers["content-type"].lower().startswith(FORM) else _decode(body)
    except ValueError:
        raise WebRefusal(HTTPStatus.BAD_REQUEST, "the body is not what its type says") from None
    fields = found if isinstance(found, dict) else {}
    told = {name: headers[name][:LONGEST_HEADER] for name in TOLD_HEADERS if name in headers}
    made = uuid.uuid4().hex if signer == "token" else digest.hex()  # a token alone allows repeated calls of one text
    mark = "" if SENDERS[signer].is_id_signed else digest.hex()
    kind = find_kind(signer, headers, fields)[:LONGEST_KIND]
    return WebhookCall(_shorten_id(find_id(signer, headers, fields)) or made, kind, told, found, text, mark)


def _parse_form(text: str) -> Any:
    """Parse the fields of a form. If its only field is `payload`, parse the JSON in it: some senders write it so."""
    fields: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict"):
        known = fields.get(name)
        fields[name] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
    if list(fields) == ["payload"] and isinstance(fields["payload"], str):
        return _decode(fields["payload"].encode())
    return fields


def _shorten_id(name: str) -> str:
    """Return a name that is short and printable: the name itself, or else its hash."""
    if not name or _PLAIN_ID.fullmatch(name):
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
