"""Refusals under `/v1`, in the shape that OpenAI's clients read."""

from http import HTTPStatus
from typing import Any

import msgspec

from gateway.web.http_request import JSON, HttpResponse
from gateway.web.request_body import WebRefusal

QUOTA = "insufficient_quota"
KINDS = {
    HTTPStatus.UNAUTHORIZED: ("authentication_error", "invalid_api_key"),
    HTTPStatus.FORBIDDEN: ("permission_error", None),
    HTTPStatus.NOT_FOUND: ("invalid_request_error", "not_found"),
    HTTPStatus.TOO_MANY_REQUESTS: ("rate_limit_error", "rate_limit_exceeded"),
}


class CallRefusal(WebRefusal):
    """A refusal with the parameter at fault, and a code for programs."""

    def __init__(
        self, status: HTTPStatus, reason: str, *, param: str | None = None, code: str | None = None, **headers: str
    ) -> None:
        super().__init__(status, reason, **headers)
        self.param = param
        self.code = code


def refuse_field(param: str, reason: str, code: str | None = None) -> CallRefusal:
    """Make the refusal of an invalid or unsupported value."""
    return CallRefusal(HTTPStatus.BAD_REQUEST, f"{param}: {reason}", param=param, code=code)


def describe_refusal(refusal: WebRefusal) -> dict[str, Any]:
    """Describe a refusal for an answer, or for a stream."""
    is_ours = refusal.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    kind, code = KINDS.get(refusal.status, ("server_error" if is_ours else "invalid_request_error", None))
    param = refusal.param if isinstance(refusal, CallRefusal) else None
    code = (refusal.code if isinstance(refusal, CallRefusal) else None) or code
    kind = QUOTA if code == QUOTA else kind
    return {"message": str(refusal), "type": kind, "param": param, "code": code}


def answer_error(refusal: WebRefusal) -> HttpResponse:
    body = msgspec.json.encode({"error": describe_refusal(refusal)})
    return HttpResponse(refusal.status, body + b"\n", JSON, refusal.headers)
