"""The route for Slack's calls, for an app that sends its events to our URL instead of over a connection that we open.

Bolt answers a call like an envelope: once its event is in the journal or settled; so an event that we do not have comes
again, with a new signature. A call with the signature of an earlier call is a replay by someone who has read it, and
does nothing. So each signature is in the journal, before anything is done, for as long as it is valid: an event that
acts at once acts once, whatever happens to the gateway.
"""

import re
from contextlib import suppress
from http import HTTPStatus

import anyio
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.shared.network_routes import Headers, RouteAnswer
from gateway.adapters.slack.connection import PLATFORM
from gateway.engine.interface import Engine, NewRecord
from gateway.errors import Duplicate, EngineError
from gateway.records import subjects

SIGNATURE, STAMP = "x-slack-signature", "x-slack-request-timestamp"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
SIGNATURE_TTL = 660.0  # seconds: a signature is valid for five minutes around its time, whichever clock is ahead
PURGE_TIMEOUT = 5.0  # seconds
_STAMP = re.compile(r"[0-9]{1,11}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


class SlackRoute:
    """The route of one app; fills `NetworkRoute`."""

    content_types: tuple[str, ...] = (JSON, FORM)
    largest = 1 << 20

    def __init__(self, app: AsyncApp, presence: Presence, secret: str, engine: Engine) -> None:
        self._app = app
        self._presence = presence
        self._verifier = SignatureVerifier(secret)
        self._engine = engine
        self._subject = subjects.signature_subject_of(PLATFORM, presence.name)

    def why_not_heard(self, headers: Headers) -> str:
        is_shown = _STAMP.fullmatch(headers.get(STAMP, "")) and _SIGNATURE.fullmatch(headers.get(SIGNATURE, ""))
        return "" if is_shown else "it shows no signature of Slack's"

    def why_not_believed(self, headers: Headers, body: bytes) -> str:
        try:
            is_ours = self._verifier.is_valid(body, headers[STAMP], headers[SIGNATURE])
        except UnicodeDecodeError:
            return "it is not text"
        return "" if is_ours else "it was not signed with this secret within the last five minutes"

    async def take(self, headers: Headers, body: bytes) -> RouteAnswer:
        """Take a call; an unreadable one is skipped, and acknowledged.

        Raises:
            EngineError: the journal takes no appends now; Slack must call again.
        """
        signed = NewRecord(self._subject, b"{}", msg_id=f"{self._subject}:{headers[SIGNATURE]}", ttl=SIGNATURE_TTL)
        try:
            (seq,) = await self._engine.append(signed)
        except Duplicate:
            return RouteAnswer()
        is_taken = False
        try:
            answer = await self._dispatch(headers, body)
            is_taken = answer.status < HTTPStatus.BAD_REQUEST
        finally:
            if not is_taken:  # also after a cancellation: otherwise a repetition of the call would do nothing
                with suppress(EngineError), anyio.move_on_after(PURGE_TIMEOUT, shield=True):
                    await self._engine.purge(self._subject, upto=seq, after=seq - 1)
        return answer

    async def _dispatch(self, headers: Headers, body: bytes) -> RouteAnswer:
        response = None
        with self._presence.skipping("call", lambda: body.decode(errors="replace")):
            request = AsyncBoltRequest(body=body.decode(), headers=dict(headers))
            response = await self._app.async_dispatch(request)
            if response.status == 404 and request.body.get("type") == "event_callback":
                raise LookupError("its event has no type")
        if response is None or response.status == 404:
            return RouteAnswer()
        kind = response.first_headers().get("content-type", "text/plain")
        return RouteAnswer(HTTPStatus(response.status), response.body or "", kind)
