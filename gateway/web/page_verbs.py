"""The verbs that the page reads and acts with, by the column `page` of their rows.

A verb without that column is not available to the page. No verb here writes a hook's folder, the configuration or a
file, and parameters that could name a path or a program are left out: a proposal only asks, and an owner answers it
elsewhere. The row also has the role that the verb requires.
"""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from gateway.control.params import describe_params
from gateway.control.server import VerbAnswer, encode_message
from gateway.errors import AccessError, GatewayError, RoleRefused
from gateway.messages.roles import Role, rank_of
from gateway.records.activity import CALLER
from gateway.verbs import Page
from gateway.web.http_request import JSON, HttpRequest
from gateway.web.request_body import WebRefusal
from gateway.web.shared_answers import SharedAnswers
from gateway.worker.json_decoder import JsonDecoder

MAX_BODY = 256 << 10
MOST_TEXT = 50_000_000  # characters of an archive, which is in memory while it is sent

_decode_body = JsonDecoder[dict[str, Any]](dict[str, Any]).decode


class PageVerbs(msgspec.Struct, eq=False):
    """The caller of verbs for the page, in the name of the current person."""

    _verbs: Mapping[str, VerbAnswer]
    _redact: Callable[[str], str]
    _shared: SharedAnswers = msgspec.field(default_factory=SharedAnswers)

    def list_allowed(self, role: Role) -> list[str]:
        """List the page's verbs that this role may use."""
        rows = [found.verb for found in self._verbs.values()]
        return sorted(verb.name for verb in rows if verb.page != "" and rank_of(role) >= rank_of(verb.role))

    async def look(self, name: str, request: HttpRequest) -> bytes:
        """Return the answer of a verb that only reads, as JSON. Raises WebRefusal."""
        page = self._find_page(name)
        if not isinstance(page, str) or not page:
            raise WebRefusal(HTTPStatus.NOT_FOUND, "the page asks for nothing of that name")
        find = partial(self._ask, name, request.fields, is_text=True)
        if page == "look":
            return await find()
        caller = CALLER.get()
        who = caller.name if page == "personal" else ""
        return await self._shared.get((name, request.query, caller.role, who), find)

    async def act(self, name: str, request: HttpRequest) -> bytes:
        """Run a verb that changes something, and return its answer as JSON; the body is read after all other checks.

        Raises:
            WebRefusal: the page does not have this verb, the request is invalid, or the verb cannot be done now.
        """
        page = self._find_page(name)
        if not isinstance(page, tuple):
            raise WebRefusal(HTTPStatus.NOT_FOUND, "the page does nothing of that name")
        if request.query:
            raise WebRefusal(HTTPStatus.BAD_REQUEST, f"{name}: put the parameters into the body, not into the address")
        if request.content_type != JSON:
            raise WebRefusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"{name}: this takes {JSON}")
        try:
            given = _decode_body(await request.body.read(MAX_BODY))
        except ValueError as error:
            raise WebRefusal(
                HTTPStatus.BAD_REQUEST, self._redact(f"{name}: this is not an object of JSON: {error}")
            ) from None
        if others := given.keys() - set(page):
            what = f"{name}: the page gives it no {', '.join(sorted(others))[:200]}"
            raise WebRefusal(HTTPStatus.BAD_REQUEST, self._redact(what))
        return await self._ask(name, given, is_text=False)

    def _find_page(self, name: str) -> Page:
        return self._verbs[name].verb.page if name in self._verbs else ""

    async def _ask(self, name: str, given: Mapping[str, Any], *, is_text: bool) -> bytes:
        found = self._verbs[name]
        try:
            params = msgspec.convert(given, found.verb.params, strict=not is_text)
        except (msgspec.ValidationError, OverflowError, ValueError) as error:
            what = self._redact(f"{name}: {error}; {describe_params(found.verb.params)}")
            raise WebRefusal(HTTPStatus.BAD_REQUEST, what) from None
        texts = dict[str, str]()
        try:
            said = await found.answer(params, partial(_collect, texts))
            return encode_message({**said, "texts": texts} if texts else said)
        except RoleRefused as error:
            raise WebRefusal(HTTPStatus.FORBIDDEN, str(error)) from None
        except GatewayError as error:
            raise WebRefusal(HTTPStatus.CONFLICT, self._redact(str(error))) from None


async def _collect(texts: dict[str, str], kind: str, fields: Any) -> None:
    """Collect the texts that a verb sends piece by piece: an answer here comes at once. Raises AccessError."""
    if kind == "piece":
        texts[fields["name"]] = texts.get(fields["name"], "") + fields["text"]
        if sum(map(len, texts.values())) > MOST_TEXT:
            raise AccessError("this is too much for the page: take it at the terminal")
