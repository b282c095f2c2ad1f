"""Who asks for the page: whoever has a login, or whom a reverse proxy that is trusted for it names in a header.

The header counts from an address in `web.trusted_proxies` alone; from anywhere else it is as if it were not there.
Where a proxy sends it, it decides: a login in that browser may be somebody else's. What is no plain name is refused,
and so is a name that the configuration does not know.
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
HEADER = "x-token"  # of the page: the secret of its login, or the name that a proxy gives the person
NOT_A_NAME = "the proxy does not say who you are, or not in a way that has one meaning"
NOBODY = "nobody of your name is let in here: `web.people` in the configuration says who is"
NOT_BY_PAGE = f"the page alone changes something: it says your name in `{HEADER}`"
NAME = re.compile(WEB_NAME_PATTERN)

FindRole: TypeAlias = Callable[[str], Role | None]
"""What somebody of this name on the platform `web` may do; None: nothing."""


class Visitor(NamedTuple):
    """`login` says who it is and what they may do now; `is_named`: a proxy says so."""

    login: Login
    is_named: bool = False


class Visitors:
    """Finds out who asks. `header` is empty where no proxy names people."""

    def __init__(self, rules: HostRules, logins: Logins, find_role: FindRole, header: str) -> None:
        self._rules = rules
        self._logins = logins
        self._find_role = find_role
        self._header = header.lower()

    def read_name(self, request: HttpRequest, peer: str) -> str:
        """The name that a trusted proxy gives whoever asks; empty where it gives none.

        Raises:
            WebRefusal: what it gives is no name.
        """
        given = request.headers.get(self._header) if self._header and self._rules.is_proxy(peer) else None
        if given is not None and not NAME.fullmatch(given):
            raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_A_NAME)
        return given or ""

    async def find(self, request: HttpRequest, peer: str) -> Visitor:
        """Raises WebRefusal: nobody who is let in."""
        token = request.headers.get(HEADER, "")
        if name := self.read_name(request, peer):
            role = None if name == OWNER else self._find_role(name)
            if role is None:
                raise WebRefusal(HTTPStatus.FORBIDDEN, NOBODY)
            if request.method not in ("GET", "HEAD") and token != name:  # a page elsewhere can send no such header
                raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_BY_PAGE)
            return Visitor(Login("", role, 0.0, 0.0, name), is_named=True)
        login = await self._logins.find(token) if token else None
        role = self._find_role(login.person) if login else None
        if login is None or role is None:
            raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_LET_IN)
        return Visitor(replace(login, role=pick_low_role(login.role, role)))
