"""Pairing requests: each stranger gets a code, and shows it to an approver.

A code is sent only in direct messages, is valid for an hour and for one approval, and authorizes one person on one
network, with the bot to which they wrote: as a user only in direct messages, with a higher role everywhere. A stranger
leaves only this one small record, and the number of requests is limited, by people and time. Codes are not stored, only
their hashes; people are stored by id. Trying wrong codes leads to a pause, for that person only.

All of it is one record, changed by compare-and-set: the last one counts.
"""

import secrets
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from msgspec.structs import replace

from gateway.access.invitations import CODE_LENGTH, Invitations
from gateway.access.pairing_journal import ALPHABET, PairingJournal, mark_of
from gateway.engine.interface import Engine
from gateway.errors import AccessError, EngineError
from gateway.hooks.withheld_codes import SIGN, CodeKind, compile_words
from gateway.logs.signs import as_shown_name
from gateway.messages.message import Message
from gateway.messages.roles import Role
from gateway.records.records import PairingUser

CODE_PAUSE = 600.0  # seconds before the same person gets another code
MOST_ASKING = 20  # requests on one network
PAIRING_LENGTH = 8
CODE_WORDS = compile_words(f"{SIGN}{{{PAIRING_LENGTH}}}|{SIGN}{{{CODE_LENGTH}}}")


class Pairings:
    """The authorized people, and the requests. Load `last` before any look-up."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        self._journal = PairingJournal(engine, clock)
        self.last = self._journal.last
        self.invitations = Invitations(self._journal)

    @property
    def people(self) -> tuple[PairingUser, ...]:
        return self._journal.kept.people

    @property
    def asking(self) -> tuple[PairingUser, ...]:
        """The requests whose code is still valid."""
        return self._journal.asking

    @property
    def owners(self) -> tuple[PairingUser, ...]:
        """The recorded owners of platforms."""
        return self._journal.kept.owners

    def find_role(self, served_as: str, user_id: str) -> Role | None:
        """Return the role of an authorized person; None if they are not."""
        found = (one.role for one in self.people if (one.served_as, one.user_id) == (served_as, user_id))
        return next(found, None)

    async def invite(self, message: Message) -> str:
        """Return a code for the sender; "" for no direct message, too soon, or too many requests."""
        if message.address.chat_type != "dm" or message.kind not in ("text", "command") or not message.user_id:
            return ""
        async with self._journal.changing() as kept:
            at, now = message.address, self._journal.clock()
            there = [one for one in self.asking if one.served_as == at.served_as]
            before = next((one for one in there if one.user_id == message.user_id), None)
            if (before and before.told and now - before.at < CODE_PAUSE) or (
                before is None and len(there) >= MOST_ASKING
            ):
                return ""
            code = "".join(secrets.choice(ALPHABET) for _ in range(PAIRING_LENGTH))
            name = as_shown_name(message.user_name)
            number = (before and before.number) or kept.numbered + 1
            numbered, mark = max(number, kept.numbered), mark_of(code)
            guest = PairingUser(
                at.platform, message.user_id, name, at.chat_id, now, mark, number=number, account=at.account
            )
            try:
                asking = (*(one for one in self.asking if one is not before), guest)
                await self._journal.write(asking=asking, numbered=numbered)
            except AccessError:
                return ""  # their next message asks again
            return code

    async def note_untold(self, served_as: str, chat_id: str) -> None:
        """Note that a code could not be sent: its person gets another one at their next message."""
        with suppress(AccessError, EngineError):  # then they get another one a while later
            async with self._journal.changing():
                there = (served_as, chat_id)
                now = [replace(one, told=one.told and (one.served_as, one.chat_id) != there) for one in self.asking]
                await self._journal.write(asking=tuple(now))

    async def approve_number(self, number: int, role: Role = "user") -> PairingUser:
        """Authorize the person of this request, for an approver who sees the list with ids.

        Raises:
            AccessError: the request was not found.
        """
        async with self._journal.changing() as kept:
            guest = next((one for one in self.asking if number and one.number == number), None)
            if guest is None:
                raise AccessError(f"no pairing request has the number {number}; see `hermes-gateway pairing list`")
            return await self._let_in(guest, role, kept.wrong)

    @property
    def code_kind(self) -> CodeKind:
        """The codes of pairing requests and of invitations."""
        return CodeKind(CODE_WORDS, lambda word: mark_of(word.upper()), self._list_marks)

    def _list_marks(self) -> Collection[str]:
        kept = self._journal.last.value
        if not (kept.asking or kept.invitations):  # nearly always, and every event asks
            return ()
        return {one.mark for one in self.asking} | {one.mark for one in self.invitations.open}

    def find_person(self, name: str) -> PairingUser | None:
        """Return the authorized person of this name (`telegram:1002`)."""
        return next((one for one in self.people if f"{one.served_as}:{one.user_id}" == name.strip()), None)

    async def approve(self, code: str, by: str, role: Role = "user") -> PairingUser:
        """Authorize the person with this code in this role; or change an authorized person's role, by their name.

        `by` is the approver: each has a limited number of tries.

        Raises:
            AccessError: the code is unknown or expired, or they tried too many wrong ones.
        """
        async with self._journal.changing():
            wrong = self._journal.find_wrong(by)
            mark = mark_of(code.strip().upper())
            asked = next((one for one in self.asking if secrets.compare_digest(one.mark, mark)), None)
            guest = asked or self.find_person(code)
            if guest is None:
                await self._journal.write_wrong(by, wrong)
                raise AccessError(
                    "the code was not found, or it is more than an hour old; the person can ask the bot for a new one"
                )
            left = {who: tries for who, tries in wrong.items() if who != by}
            return await self._let_in(guest, role, left)

    async def _let_in(self, guest: PairingUser, role: Role, wrong: Mapping[str, tuple[float, ...]]) -> PairingUser:
        known = replace(guest, at=self._journal.clock(), mark="", role=role, number=0, told=True)
        await self._journal.let_in(known, wrong, guest)
        return known

    async def revoke(self, served_as: str, user_id: str) -> PairingUser:
        """Remove a person's authorization.

        Raises:
            AccessError: no such person was authorized by a code.
        """
        async with self._journal.changing():
            gone = next((one for one in self.people if (one.served_as, one.user_id) == (served_as, user_id)), None)
            if gone is None:
                raise AccessError(
                    f"no user with the id {user_id!r} was paired on {served_as}; "
                    "remove a user of the configuration there"
                )
            await self._journal.write(people=tuple(one for one in self.people if one is not gone))
            return gone

    async def forget(self, platform: str, user_id: str) -> bool:
        """Forget a person: authorization and requests. Return False if there was nothing."""
        async with self._journal.changing() as kept:
            who = (platform, user_id)
            lists = {"people": kept.people, "asking": kept.asking, "owners": kept.owners}
            left = {
                kind: tuple(one for one in those if who != (one.platform, one.user_id)) for kind, those in lists.items()
            }
            name = f"{platform}:{user_id}"
            wrong = {one: tries for one, tries in kept.wrong.items() if one != name}
            theirs = tuple(one for one in kept.invitations if one.by != name)
            if left == lists and wrong == kept.wrong and theirs == kept.invitations:
                return False
            await self._journal.write(**left, wrong=wrong, invitations=theirs)
            return True

    async def keep_owners(self, owners: Mapping[str, str]) -> None:
        """Record the owners by platform, if no rule names them."""
        async with self._journal.changing() as kept:
            if {one.platform: one.user_id for one in kept.owners} == owners:
                return  # another gateway was faster
            now = self._journal.clock()
            await self._journal.write(owners=tuple(PairingUser(*one, at=now, role="owner") for one in owners.items()))
