"""Invitations: the first person with the code of one is authorized with its role, once, before it expires.

People who may give that role create them, and they are valid only as long as these people still may: a person who is
removed takes theirs along. The code is shown once and not stored; trying wrong ones leads to a pause, as with pairing
codes.
"""

import secrets
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from gateway.access.pairing_journal import ALPHABET, PairingJournal, mark_of
from gateway.errors import AccessError
from gateway.logs.signs import as_shown_name
from gateway.messages.message import Message
from gateway.messages.roles import Role
from gateway.records.records import PairingInvitation, PairingUser

LIFETIME = 3600.0
LONGEST = 7 * 86400.0
SHORTEST = 60.0
MOST_OPEN = 20
CODE_LENGTH = 20  # a hundred bits: no one types it
NOT_GOOD = "this invitation is no longer valid: it was used, cancelled, or has expired"

MayGive: TypeAlias = Callable[[PairingInvitation], bool]
"""Return True if the creator may still give that role."""


class Invitations(msgspec.Struct, eq=False):
    """The open invitations."""

    _journal: PairingJournal

    @property
    def open(self) -> tuple[PairingInvitation, ...]:
        return self._journal.invitations

    async def make(self, role: Role, lifetime: float, by: str) -> tuple[str, PairingInvitation]:
        """Create an invitation, and return its code with it.

        Raises:
            AccessError: its time is too long or too short, or too many are open.
        """
        if not SHORTEST <= lifetime <= LONGEST:
            raise AccessError("an invitation lasts from a minute to seven days")
        async with self._journal.changing() as kept:
            if len(self.open) >= MOST_OPEN:
                raise AccessError(f"{MOST_OPEN} invitations are open: cancel one, or wait until it expires")
            code = "".join(secrets.choice(ALPHABET) for _ in range(CODE_LENGTH))
            number = kept.numbered + 1
            end = self._journal.find_end(lifetime)
            made = PairingInvitation(number=number, mark=mark_of(code), role=role, until=end, by=by)
            await self._journal.write(invitations=(*self.open, made), numbered=number)
            return code, made

    async def use(self, code: str, message: Message, may_give: MayGive, may: Callable[[Role], bool]) -> PairingUser:
        """Authorize the author of this message. An invitation that adds nothing to their rights (`may`) stays open.

        Raises:
            AccessError: it is not valid, or adds nothing, or they tried too many.
        """
        by = message.sender
        async with self._journal.changing():
            wrong = self._journal.find_wrong(by)
            mark = mark_of(code.strip().upper())
            found = next((one for one in self.open if secrets.compare_digest(one.mark, mark)), None)
            if found is None or not may_give(found):
                await self._journal.write_wrong(by, wrong)
                raise AccessError(NOT_GOOD)
            if may(found.role):
                raise AccessError("you already have what this invitation gives; it is still valid")
            at = message.address
            who, name, now = message.user_id, as_shown_name(message.user_name), self._journal.clock()
            asked = [one for one in self._journal.asking if (one.served_as, one.user_id) == (at.served_as, who)]
            guest = PairingUser(at.platform, who, name, at.chat_id, now, role=found.role, account=at.account)
            left = {who: tries for who, tries in wrong.items() if who != by}
            await self._journal.let_in(guest, left, found, *asked)
            return guest

    async def take_back(self, number: int) -> PairingInvitation:
        """Revoke an invitation.

        Raises:
            AccessError: the number is unknown.
        """
        async with self._journal.changing():
            gone = next((one for one in self.open if one.number == number), None)
            if gone is None:
                raise AccessError(f"no invitation has the number {number}: see `hermes-gateway pairing list`")
            await self._journal.write(invitations=tuple(one for one in self.open if one is not gone))
            return gone
