"""The visitors of the page: each has a login, or a name from a reverse proxy that is trusted for it.

The header counts only from an address in `web.trusted_proxies`, and is ignored from any other. If the proxy sends it,
it decides: a login in that browser may belong to another person. An invalid name is refused, and so is one that the
configuration does not know.
"""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from gateway.adapters.page.places import OWNER
from gateway.config.fields import WEB_NAME_PATTERN
from gateway.messages.roles import Role, pick_low_role
from gateway.records.records import Login
from gateway.web.host_rules import HostRules
from gateway.web.http_request import HttpRequest
from gateway.web.logins import Logins
from gateway.web.request_body import WebRefusal

NOT_LET_IN = (
    "this browser has no login: run `hermes-gateway open` where the gateway runs, or write /open to the bot, and open "
    "the link; programs with a key ask below /v1"
)
HEADER = "x-token"  # from the page: the secret of its login, or the name that a proxy gives the person
NOT_A_NAME = "the proxy does not say who you are, or not in a way that has one meaning"
NOBODY = "you are not authorized here: add your name to `web.people` in the configuration"
NOT_BY_PAGE = f"the page alone changes something: it says your name in `{HEADER}`"
NAME = re.compile(WEB_NAME_PATTERN)

FindRole: TypeAlias = Callable[[str], Role | None]
"""The role of a person on the platform `web`; None: the person has no access."""


class Visitor(NamedTuple):
    """A visitor. `login` says who it is and what the person may do now; `is_named`: a proxy named the person."""

    login: Login
    is_named: bool = False


class Visitors:
    """The identification of visitors. `header` is empty if no proxy names people."""

    def __init__(self, rules: HostRules, logins: Logins, find_role: FindRole, header: str) -> None:
        self._rules = rules
        self._logins = logins
        self._find_role = find_role
        self._header = header.lower()

    def read_name(self, request: HttpRequest, peer: str) -> str:
        """Return the name that a trusted proxy gives the visitor; "" if it gives none.

        Raises:
            WebRefusal: the name is invalid.
        """
        given = request.headers.get(self._header) if self._header and self._rules.is_proxy(peer) else None
        if given is not None and not NAME.fullmatch(given):
            raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_A_NAME)
        return given or ""

    async def find(self, request: HttpRequest, peer: str) -> Visitor:
        """Return the visitor of a request; raises WebRefusal if the visitor has no access."""
        token = request.headers.get(HEADER, "")
        if name := self.read_name(request, peer):
            role = None if name == OWNER else self._find_role(name)
            if role is None:
                raise WebRefusal(HTTPStatus.FORBIDDEN, NOBODY)
            if request.method not in ("GET", "HEAD") and token != name:  # a page elsewhere cannot send this header
                raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_BY_PAGE)
            return Visitor(Login("", role, 0.0, 0.0, name), is_named=True)
        login = await self._logins.find(token) if token else None
        role = self._find_role(login.person) if login else None
        if login is None or role is None:
            raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_LET_IN)
        return Visitor(replace(login, role=pick_low_role(login.role, role)))
