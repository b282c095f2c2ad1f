"""A person's lasting approvals for tools, in the journal: one record each.

`always` lasts for that person until it is revoked, in every session and across restarts; `session` for one session. A
tool without an approval asks for one, and without an answer it is denied.
"""

import logging
from collections.abc import Mapping

import msgspec

from gateway.access.access_control import AccessControl
from gateway.engine.interface import Engine
from gateway.messages.message import Message
from gateway.questions.text import to_code_line
from gateway.records import records, subjects
from gateway.records.stores import make_value_put, read_store
from gateway.sessions.session import Session

SESSION_TTL = 30 * records.DAY  # for as long as unused sessions can be resumed
SESSION, ALWAYS = "session", "always"
OWNER = "approvals"  # starts the names under which they are stored

log = logging.getLogger(__name__)


class ToolApprovals(msgspec.Struct, frozen=True):
    """The approvals of one person in one session."""

    engine: Engine
    person: str
    session_id: str
    is_private: bool  # no one else writes in this session

    async def known(self) -> dict[str, str]:
        """Return how long each approval lasts, by `tool` or `tool:subject`."""
        found = dict.fromkeys(await self._keys(SESSION), SESSION)
        return found | dict.fromkeys(await self._keys(ALWAYS), ALWAYS)

    async def keep(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Store the approvals of a turn."""
        for key, how in after.items():
            if before.get(key) != how and how in (SESSION, ALWAYS):
                ttl = SESSION_TTL if how == SESSION else None
                await self.engine.append(make_value_put(self._owner(how), key, how, ttl=ttl))

    async def revoke(self, key: str) -> None:
        """Revoke an approval: the tool asks again from now on."""
        for owner in (*self._owners(SESSION), *self._owners(ALWAYS)):
            await self.engine.purge(subjects.hook_store_subject_of(owner, key))

    async def _keys(self, how: str) -> list[str]:
        owners = self._owners(how)
        return [kept.key for one in owners async for _, kept in read_store(self.engine, one, fresh=False)]

    def _owners(self, how: str) -> tuple[str, ...]:
        """Return the owners of stored approvals.

        The first version shared a session's approvals; in a private one they count.
        """
        shared = (f"{OWNER}/session/{self.session_id}",) if how == SESSION and self.is_private else ()
        return (self._owner(how), *shared)

    def _owner(self, how: str) -> str:
        """Return a name that no hook has: a folder's name contains no slash."""
        return f"{OWNER}/{self.person}" if how == ALWAYS else f"{OWNER}/session/{self.session_id}/{self.person}"


class TurnApprovals(msgspec.Struct, eq=False):
    """The approvals of one turn, read when a tool first needs one; without `kept` its author approves nothing.

    `allowed`: how long each lasts, including those of this turn.
    """

    _kept: ToolApprovals | None
    allowed: dict[str, str] = {}
    _known: dict[str, str] | None = None

    async def load(self) -> None:
        """Read the approvals, once."""
        if self._kept and self._known is None:
            self._known = await self._kept.known()
            self.allowed |= {key: how for key, how in self._known.items() if key not in self.allowed}

    async def keep(self) -> None:
        """Store the turn's new approvals."""
        if self._kept and self.allowed:
            await self._kept.keep(self._known or {}, self.allowed)


def approvals_of(engine: Engine, message: Message, session: Session) -> ToolApprovals:
    """Return the approvals of this message's author, in this session."""
    return ToolApprovals(engine, message.sender, session.session_id, message.address.chat_type == "dm")


def find_approvals(engine: Engine, access: AccessControl, message: Message, session: Session) -> TurnApprovals:
    """Return the lasting approvals of this message's author, if they may approve."""
    can_approve = access.can_approve_own(message)
    return TurnApprovals(approvals_of(engine, message, session) if can_approve else None)


async def expire_approvals(engine: Engine, access: AccessControl) -> None:
    """Revoke approvals of people who are not approvers, which the first version allowed."""
    found = [one async for one in records.read_all(engine, subjects.HOOK_STORE_SUBJECTS, records.StoredValue)]
    for record, kept in found:
        mark, _, person = kept.hook.partition("/")
        if mark != OWNER or person.startswith(f"{SESSION}/"):
            continue  # one for a session is not used if its person is not an approver, and expires
        platform, _, user = person.partition(":")
        role = access.find_highest_role(platform, user)
        if role is None or not access.can_approve(role, is_own=True):
            log.warning("%s may approve nothing (tools.approvers): what stood for good ends: %s", person, kept.key)
            await engine.purge(record.subject, record.seq)


async def run_approvals_command(found: ToolApprovals, args: str) -> str:
    """Run `/approvals`: list the approvals by number, or `revoke NUMBER`; return the answer."""
    known = sorted((await found.known()).items())
    if not args:
        rows = [f"{number}. {to_code_line(key)} ({how})" for number, (key, how) in enumerate(known, 1)]
        return (
            "\n".join([*rows, "/approvals revoke NUMBER takes one back."]) if rows else "Nothing is allowed for good."
        )
    verb, _, number = args.partition(" ")
    if verb != "revoke" or not number.strip().isdecimal() or not 0 < int(number) <= len(known):
        return "/approvals lists them, /approvals revoke NUMBER takes one back."
    key, _ = known[int(number) - 1]
    await found.revoke(key)
    return f"I ask again before {to_code_line(key)}."
