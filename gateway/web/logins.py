"""Access to the page: a link that works once, within a minute, becomes a login, which lasts as long as it is used.

Only marks of links and logins are kept, which recognize a secret and do not reveal it. A login lasts 30 days after its
last use and survives a restart; `open --end` ends all of them at once, and closes their streams. Its secret is sent
once, to our own page, which keeps it for its origin and sends it in a header: no other port of the host gets it.

Each person has a limited number of logins and links, and a further one ends the person's oldest. A person whom a proxy
names has no secret here; the visit is kept for as long as a login, so that it is recorded once in that time.
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
NOTED_EVERY = 3600.0  # at most this often the last use is written
SECRET_BYTES = 32
CODE_WORDS = compile_words("[A-Za-z0-9_-]{43}")  # the length of a secret in characters
NAMED = "named "  # begins the mark of a person whom a proxy names: no secret's mark begins with it


class Logins:
    """The logins, and the open links. Load `last` before you look up a login."""

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
        """The codes of open links."""
        return CodeKind(CODE_WORDS, mark_of, self._list_marks)

    def _list_marks(self) -> Collection[str]:
        if not (links := self.last.value.links):  # nearly always, and every event asks
            return ()
        now = self._clock()
        return {one.mark for one in links if one.until + MOST_APART > now}

    async def open_link(self, role: Role = "owner", person: str = "owner") -> str:
        """Make a link's code: its first user logs in as this person, with this role. Each person can have a few.

        Raises EngineError if the code cannot be written.
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
        """Exchange a valid code for the secret of a new login, and end the code; return "" for any other."""
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
        """Return the login of a secret, and note its use; None if the secret is unknown or the login has ended."""
        return await self._use(_mark_login(secret))

    async def note_named(self, name: str, role: Role) -> bool:
        """Note the visit of a person whom a proxy names; return True for the first one in the lifetime of a login."""
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
        except EngineError:  # the visit is then not recorded either
            return False
        return is_new

    async def _use(self, mark: str) -> Login | None:
        found = next((one for one in self._list_lasting() if secrets.compare_digest(one.mark, mark)), None)
        if found and self._clock() - found.used > NOTED_EVERY:
            used = replace(found, used=self._clock())
            with suppress(EngineError):  # the page works even if the journal takes no appends
                await self._change(
                    lambda kept: replace(kept, logins=tuple(used if one.mark == mark else one for one in kept.logins))
                )
        return found

    async def end(self, login: Login | None = None) -> int:
        """End this login, or all of them, and return their number; open streams are closed.

        The end of all logins ends open links too.
        """
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
        """Return a scope for a long answer: it is cancelled when any login ends.

        Call `leave` when the answer is over.
        """
        watcher = anyio.CancelScope()
        self._watchers.add(watcher)
        return watcher

    def leave(self, watcher: anyio.CancelScope) -> None:
        self._watchers.discard(watcher)

    def _list_lasting(self) -> tuple[Login, ...]:
        now = self._clock()
        return tuple(one for one in self.logins if now - one.used < LOGIN_SECONDS)

    def _cut_off(self, before: records.LoginState, now: records.LoginState) -> None:
        """Close all streams when a login has ended; pages with a valid login reconnect by themselves."""
        if {one.mark for one in before.logins} - {one.mark for one in now.logins}:
            for watcher in list(self._watchers):
                watcher.cancel()

    async def _change(self, change: Callable[[records.LoginState], records.LoginState]) -> None:
        """Write a change, and try again if another gateway wrote first.

        Raises EngineError if it cannot be written: then no login is made.
        """
        async with self._lock:
            while (changed := change(self.last.value)) != self.last.value:
                with suppress(Conflict):
                    await self.last.replace(replace(changed, at=self._clock()))
                    return


def make_room(logins: tuple[Login, ...]) -> tuple[Login, ...]:
    """Limit the logins of each person, and all of them: the oldest ones of the person with the most are removed."""
    kept = list(logins)
    counts = Counter(one.person for one in kept)
    while kept and (len(kept) > MOST_LOGINS or max(counts.values()) > MOST_OF_ONE):
        person, _ = counts.most_common(1)[0]
        kept.remove(next(one for one in kept if one.person == person))
        counts[person] -= 1
    return tuple(kept)


def _mark_login(secret: str) -> str:
    """Return the mark of a login.

    It differs from marks of older logins, whose secret was a cookie for all ports of a host.
    """
    return mark_of(f"login {secret}")


def make_page_link(url: str, code: str) -> str:
    return f"{url.rstrip('/')}/open?code={code}"
