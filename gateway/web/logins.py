"""Who may see the page: a link that is good once and for a minute becomes a login, which lasts as long as it is used.

Only what tells them again is kept of links and logins. A login lasts 30 days after its last use and survives a
restart; `open --end` ends all of them at once, those that watch live included. Its secret is given once, to our own
page, which keeps it for its origin and sends it in a header: no other port of the host gets it.

There are so many logins and links of one person, and whoever makes more ends their own oldest. Whom a proxy names has
no secret here; that they came is kept for as long as a login, so that it is recorded once in that time.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress

import anyio
from msgspec.structs import replace

from gateway.engine.interface import Engine
from gateway.errors import Conflict, EngineError
from gateway.hooks.withheld_codes import CodeKind, compile_words
from gateway.messages.roles import Role
from gateway.records import records, subjects
from gateway.records.follower import LastRecord
from gateway.records.records import Login, LoginLink
from gateway.web.program_keys import mark_of

LINK_SECONDS = 60.0
MOST_LINKS = 16  # of one person
MOST_OF_ONE = 100  # logins of one person
MOST_LOGINS = 1000
LOGIN_SECONDS = 30 * 86400
MOST_APART = 5.0  # seconds by which the clocks of two gateways differ
NOTED_EVERY = 3600.0  # when it was last used is written down so often
SECRET_BYTES = 32
CODE_WORDS = compile_words("[A-Za-z0-9_-]{43}")  # so long is a secret in letters
NAMED = "named "  # begins the mark of whom a proxy names: no secret has such a one


class Logins:
    """Those who are let in, and the links that are open. `last` is loaded before anybody is looked up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self.last = LastRecord(engine, subjects.LOGIN_SUBJECT, records.LoginState(), self._cut_off)
        self._clock = clock
        self._lock = anyio.Lock()
        self._watchers: set[anyio.CancelScope] = set()

    @property
    def logins(self) -> tuple[Login, ...]:
        return self.last.value.logins

    @property
    def code_kind(self) -> CodeKind:
        """The codes of links that are open."""
        return CodeKind(CODE_WORDS, mark_of, self._list_marks)

    def _list_marks(self) -> Collection[str]:
        links, now = self.last.value.links, self._clock()
        return {one.mark for one in links if one.until + MOST_APART > now} if links else ()

    async def open_link(self, role: Role = "owner", person: str = "owner") -> str:
        """A code that lets its first user in, as this person and with this role; of one person a few are good.

        Raises EngineError where it cannot be written.
        """
        code = secrets.token_urlsafe(SECRET_BYTES)

        def add(kept: records.LoginState) -> records.LoginState:
            now = self._clock()
            links = [one for one in kept.links if one.until > now]
            theirs = [one for one in links if one.person == person]
            gone = theirs[: max(0, len(theirs) + 1 - MOST_LINKS)]
            link = LoginLink(mark_of(code), now + LINK_SECONDS, role, person)
            return replace(kept, links=(*(one for one in links if one not in gone), link))

        await self._change(add)
        return code

    async def redeem(self, code: str) -> str:
        """The secret of a new login for a code that is good; "" for any other. Nobody can use it again."""
        mark, secret = mark_of(code), secrets.token_urlsafe(SECRET_BYTES)

        def use(kept: records.LoginState) -> records.LoginState:
            now = self._clock()
            link = next((one for one in kept.links if secrets.compare_digest(one.mark, mark)), None)
            left = tuple(one for one in kept.links if one is not link)
            if link is None or not 0 <= link.until - now <= LINK_SECONDS + MOST_APART:
                return replace(kept, links=left)
            login = Login(_mark_login(secret), link.role, now, now, link.person)
            return replace(kept, links=left, logins=make_room((*self._list_lasting(), login)))

        await self._change(use)
        return secret if any(one.mark == _mark_login(secret) for one in self.logins) else ""

    async def find(self, secret: str) -> Login | None:
        """Whose login it is; None: nobody's, or it has ended. It was used now."""
        return await self._use(_mark_login(secret))

    async def note_named(self, name: str, role: Role) -> bool:
        """Somebody has come whom a proxy names. True: for the first time in as long as a login lasts."""
        mark, now = f"{NAMED}{name}", self._clock()
        if await self._use(mark):
            return False
        is_new = False

        def add(kept: records.LoginState) -> records.LoginState:
            nonlocal is_new
            lasting = self._list_lasting()
            is_new = all(one.mark != mark for one in lasting)
            added = (Login(mark, role, now, now, name),) if is_new else ()
            return replace(kept, logins=make_room((*lasting, *added)))

        try:
            await self._change(add)
        except EngineError:  # nor is anything recorded then
            return False
        return is_new

    async def _use(self, mark: str) -> Login | None:
        found = next((one for one in self._list_lasting() if secrets.compare_digest(one.mark, mark)), None)
        if found and self._clock() - found.used > NOTED_EVERY:
            used = replace(found, used=self._clock())
            with suppress(EngineError):  # a journal that is ill can be looked at all the same
                await self._change(
                    lambda kept: replace(kept, logins=tuple(used if one.mark == mark else one for one in kept.logins))
                )
        return found

    async def end(self, login: Login | None = None) -> int:
        """This one, or all: how many there were. Links that are open are good no more, and who watches is cut off."""
        before: tuple[Login, ...] = ()

        def remove(kept: records.LoginState) -> records.LoginState:
            nonlocal before
            before = self._list_lasting()
            left = tuple(one for one in before if login and one.mark != login.mark)
            return replace(kept, logins=left, links=kept.links if login else ())

        await self._change(remove)
        gone = [one for one in before if login is None or one.mark == login.mark]
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

    def _cut_off(self, before: records.LoginState, now: records.LoginState) -> None:
        """Whoever watches, where a login has ended; whoever is still let in comes back by itself."""
        if {one.mark for one in before.logins} - {one.mark for one in now.logins}:
            for watcher in list(self._watchers):
                watcher.cancel()

    async def _change(self, change: Callable[[records.LoginState], records.LoginState]) -> None:
        """Once more where another gateway was faster.

        Raises EngineError where it cannot be written: then nobody is let in.
        """
        async with self._lock:
            while (changed := change(self.last.value)) != self.last.value:
                with suppress(Conflict):
                    await self.last.replace(replace(changed, at=self._clock()))
                    return


def make_room(logins: tuple[Login, ...]) -> tuple[Login, ...]:
    """So many of one person, so many in all: the oldest go, of whoever has most."""
    kept = list(logins)
    counts = Counter(one.person for one in kept)
    while kept and (len(kept) > MOST_LOGINS or max(counts.values()) > MOST_OF_ONE):
        person, _ = counts.most_common(1)[0]
        kept.remove(next(one for one in kept if one.person == person))
        counts[person] -= 1
    return tuple(kept)


def _mark_login(secret: str) -> str:
    """Unlike that of the logins of before, whose secret was a cookie and went to all ports of the host."""
    return mark_of(f"login {secret}")


def make_page_link(url: str, code: str) -> str:
    return f"{url.rstrip('/')}/open?code={code}"
