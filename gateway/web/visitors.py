"""Who asks for the page: whoever has a login, or whom a reverse proxy that is trusted for it names in a header.

The header counts from an address in `web.trusted_proxies` alone; from anywhere else it is as if it were not there.
Where a proxy sends it, it decides: a login in that browser may be somebody else's. What is no plain name is refused,
and so is a name that the configuration does not know.
"""

import re
import secrets
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from gateway.adapters.page.places import OWNER
from gateway.records import Login
from gateway.roles import Role, pick_low_role
from gateway.web.host_rules import HostRules
from gateway.web.http_request import HttpRequest
from gateway.web.logins import SECRET_BYTES, Logins
from gateway.web.program_keys import mark_of
from gateway.web.request_body import WebRefusal

NOT_LET_IN = "open the link that `hermes-gateway open` prints; programs with a key ask below /v1"
NOT_A_NAME = "the proxy does not say who you are, or not in a way that has one meaning"
NOBODY = "nobody of your name is let in here: `web.people` in the configuration says who is"
NAME = re.compile(r"[!-+\--9;-~]{1,200}")  # printable, without a space, a comma and a colon

FindRole: TypeAlias = Callable[[str], Role | None]
"""What somebody of this name on the platform `web` may do; None: nothing."""


class Visitor(NamedTuple):
    """`login` says who it is and what they may do now; `secret` is what their browser shows, and keeps."""

    login: Login
    secret: str
    is_named: bool = False


class Visitors:
    """Finds out who asks. `header` is empty where no proxy names people; `cookie` is where a login lies."""

    def __init__(self, rules: HostRules, logins: Logins, find_role: FindRole, header: str, cookie: str) -> None:
        self._rules = rules
        self._logins = logins
        self._find_role = find_role
        self._header = header.lower()
        self.cookie = cookie

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
        secret = read_cookie(request, self.cookie)
        if name := self.read_name(request, peer):
            role = None if name == OWNER else self._find_role(name)
            if role is None:
                raise WebRefusal(HTTPStatus.FORBIDDEN, NOBODY)
            secret = secret or secrets.token_urlsafe(SECRET_BYTES)
            return Visitor(Login(mark_of(secret), role, 0.0, 0.0, name), secret, is_named=True)
        login = await self._logins.find(secret) if secret else None
        role = self._find_role(login.person) if login else None
        if login is None or role is None:
            raise WebRefusal(HTTPStatus.FORBIDDEN, NOT_LET_IN)
        return Visitor(replace(login, role=pick_low_role(login.role, role)), secret)


def read_cookie(request: HttpRequest, name: str) -> str:
    """ "" where there is none, or more than one of that name."""
    pairs = (pair.strip().partition("=") for pair in request.headers.get("cookie", "").replace(",", ";").split(";"))
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else ""
