"""Who may see the page: a link that is good once and for a minute becomes a login, which lasts as long as it is used.

Only what tells them again is kept of links and logins. A login lasts 30 days after its last use and survives a
restart; `open --end` ends all of them at once, those that watch live included. What changes anything wants, beside the
cookie that a browser sends by itself, a token that only our own page knows.

There are so many logins and links of one person, and whoever makes more ends their own oldest. Whom a proxy names has
no secret here; that they came is kept for as long as a login, so that it is recorded once in that time.
"""

import hashlib
import hmac
import secrets
import time
from collections import Counter
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
MOST_LINKS = 16  # of one person
MOST_OF_ONE = 100  # logins of one person
MOST_LOGINS = 1000
LOGIN_SECONDS = 30 * 86400
NOTED_EVERY = 3600.0  # when it was last used is written down so often
SECRET_BYTES = 32
NAMED = "named "  # begins the mark of whom a proxy names: no secret has such a one


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
        """A code that lets its first user in, as this person and with this role; of one person a few are good."""
        code, now = secrets.token_urlsafe(SECRET_BYTES), self._clock()
        self._links = {mark: link for mark, link in self._links.items() if link[0] > now}
        theirs = [mark for mark, link in self._links.items() if link[2] == person]
        for mark in theirs[: max(0, len(theirs) + 1 - MOST_LINKS)]:
            del self._links[mark]
        self._links[mark_of(code)] = now + LINK_SECONDS, role, person
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
            await self._keep(make_room((*self._list_lasting(), login)))
        return secret

    async def find(self, secret: str) -> Login | None:
        """Whose login it is; None: nobody's, or it has ended. It was used now."""
        return await self._use(mark_of(secret))

    async def note_named(self, name: str, role: Role) -> bool:
        """Somebody has come whom a proxy names. True: for the first time in as long as a login lasts."""
        mark, now = f"{NAMED}{name}", self._clock()
        if await self._use(mark):
            return False
        async with self._lock:
            is_new = all(one.mark != mark for one in self._list_lasting())
            if is_new:
                try:
                    await self._keep(make_room((*self._list_lasting(), Login(mark, role, now, now, name))))
                except EngineError:  # nor is anything recorded then
                    return False
            return is_new

    async def _use(self, mark: str) -> Login | None:
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
            gone = [one for one in self._list_lasting() if one not in kept]
            await self._keep(kept)
        if login is None:
            self._links.clear()
        for watcher in list(self._watchers):
            watcher.cancel()  # whoever is still let in comes back by itself
        return sum(not one.mark.startswith(NAMED) for one in gone)

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


def make_room(logins: tuple[Login, ...]) -> tuple[Login, ...]:
    """So many of one person, so many in all: the oldest go, of whoever has most."""
    kept = list(logins)
    counts = Counter(one.person for one in kept)
    while kept and (len(kept) > MOST_LOGINS or max(counts.values()) > MOST_OF_ONE):
        person, _ = counts.most_common(1)[0]
        kept.remove(next(one for one in kept if one.person == person))
        counts[person] -= 1
    return tuple(kept)


def token_of(secret: str) -> str:
    """What our own page says beside the cookie; who has only that cannot tell the cookie from it."""
    return hashlib.sha256(f"token:{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def is_token(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token_of(secret).encode())
