"""Who may see the page: a link that is good once and for a minute becomes a login, which lasts as long as it is used.

Only what tells them again is kept of links and logins. A login lasts 30 days after its last use and survives a
restart; `open --end` ends all of them at once, those that watch live included. What changes anything wants, beside the
cookie that a browser sends by itself, a token that only our own page knows.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from contextlib import suppress

import anyio
from msgspec.structs import replace

from gateway import record_subjects, records
from gateway.engine import Engine
from gateway.errors import EngineError
from gateway.records import Login
from gateway.roles import Role
from gateway.web.program_keys import mark_of

LINK_SECONDS = 60.0
MOST_LINKS = 16
MOST_LOGINS = 100
LOGIN_SECONDS = 30 * 86400
NOTED_EVERY = 3600.0  # when it was last used is written down so often
SECRET_BYTES = 32


class Logins:
    """Those who are let in, and the links that are open. `load` before anybody is looked up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._engine = engine
        self._clock = clock
        self._lock = anyio.Lock()
        self._seq = 0
        self._links: dict[str, tuple[float, Role, str]] = {}  # until when, and as whom
        self._watchers: set[anyio.CancelScope] = set()
        self.logins: tuple[Login, ...] = ()

    async def load(self) -> None:
        seq, kept = await records.read_last(self._engine, record_subjects.LOGIN_SUBJECT, records.LoginState)
        self._seq, self.logins = seq, kept.logins if kept else ()

    def open_link(self, role: Role = "owner", person: str = "owner") -> str:
        """A code that lets its first user in, as this person and with this role; only the newest few are good."""
        code = secrets.token_urlsafe(SECRET_BYTES)
        self._links[mark_of(code)] = self._clock() + LINK_SECONDS, role, person
        while len(self._links) > MOST_LINKS:
            del self._links[next(iter(self._links))]
        return code

    async def redeem(self, code: str) -> str:
        """The secret of a new login for a code that is good; "" for any other. Nobody can use it again."""
        until, role, person = self._links.pop(mark_of(code), (0.0, "guest", ""))
        now = self._clock()
        if not 0 <= until - now <= LINK_SECONDS:
            return ""
        secret = secrets.token_urlsafe(SECRET_BYTES)
        login = Login(mark_of(secret), role, now, now, person)
        async with self._lock:
            await self._keep((*self._list_lasting()[-MOST_LOGINS + 1 :], login))
        return secret

    async def find(self, secret: str) -> Login | None:
        """Whose login it is; None: nobody's, or it has ended. It was used now."""
        mark = mark_of(secret)
        found = next((one for one in self._list_lasting() if secrets.compare_digest(one.mark, mark)), None)
        if found and self._clock() - found.used > NOTED_EVERY:
            async with self._lock:
                used = replace(found, used=self._clock())
                with suppress(EngineError):  # a journal that is ill can be looked at all the same
                    await self._keep(tuple(used if one.mark == mark else one for one in self.logins))
        return found

    async def end(self, login: Login | None = None) -> int:
        """This one, or all: how many there were. Links that are open are good no more, and who watches is cut off."""
        async with self._lock:
            kept = tuple(one for one in self._list_lasting() if login and one.mark != login.mark)
            count = len(self._list_lasting()) - len(kept)
            await self._keep(kept)
        if login is None:
            self._links.clear()
        for watcher in list(self._watchers):
            watcher.cancel()  # whoever is still let in comes back by itself
        return count

    def watch(self) -> anyio.CancelScope:
        """For what goes on for long: it is cancelled once somebody's login ends. `leave` when it is over."""
        watcher = anyio.CancelScope()
        self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: anyio.CancelScope) -> None:
        self._watchers.discard(watcher)

    def _list_lasting(self) -> tuple[Login, ...]:
        now = self._clock()
        return tuple(one for one in self.logins if now - one.used < LOGIN_SECONDS)

    async def _keep(self, logins: tuple[Login, ...]) -> None:
        """Raises EngineError where it cannot be written: then nobody is let in."""
        state = records.LoginState(logins=logins, at=self._clock())
        self._seq = await records.replace_last(self._engine, record_subjects.LOGIN_SUBJECT, state, self._seq)
        self.logins = logins


def token_of(secret: str) -> str:
    """What our own page says beside the cookie; who has only that cannot tell the cookie from it."""
    return hashlib.sha256(f"token:{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def is_token(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token_of(secret).encode())
