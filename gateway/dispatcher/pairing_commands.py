"""Pairing: what strangers are answered, and how they are let in, listed and removed, in a chat and by the CLI."""

import re
import uuid
from typing import Any

import msgspec

from gateway.commands import CommandResult
from gateway.dispatcher.context import DispatcherContext
from gateway.errors import AccessError
from gateway.messages import Address, Message, Reply
from gateway.records import ActivityRecord, PairingUser
from gateway.roles import ROLES, Role, rank_of

UNKNOWN = """\
I do not know you yet. Your pairing code is {code}, good for one hour.
Whoever runs this gateway lets you in with `hermes-gateway pairing approve {code}`; an admin can write me \
`/pairing approve {code}`.\
"""
CODE_REPLY = "pairing-code:"  # begins the id of a reply that tells a code
HOST_OPERATOR = "whoever runs this gateway"
NUMBER = re.compile(r"#(\d{1,9})")
GIVEN_ROLES = tuple(role for role in ROLES if role != "guest")
APPROVED_AS = re.compile(r"(?P<code>\S+)(\s+[-\u2013\u2014]*as\s+(?P<role>\S+))?")  # a phone may join the two hyphens
WELCOME = "You are let in. Write what you want to know or have done; /help lists the commands."


async def refuse_stranger(context: DispatcherContext, message: Message) -> str:
    """Give a stranger a code, in direct messages; returns why they were turned away."""
    code = await context.access.invite(message)
    if not code:
        return "no rule names this person"
    reply = Reply(f"{CODE_REPLY}{uuid.uuid4().hex}", message.address, UNKNOWN.format(code=code), reply_to=message.id)
    await context.outbox.post(reply)
    return "no rule names this person, who was given a pairing code"


async def approve_pairing(
    context: DispatcherContext, code: str, role: Role, by: str, giver: Role, *, is_listed: bool = False
) -> PairingUser:
    """Let in whoever has this code with this role, and tell them; or give the role to somebody who was let in.

    `giver` is the role of whoever says so.

    Where `is_listed` who asks, `#3` is as good as the code of the third: whoever says it sees who that is.

    Raises:
        AccessError: nobody has the code, or the role is not theirs to give or to take.
    """
    if role == "owner" and by != HOST_OPERATOR:
        raise AccessError("an owner is made where the gateway runs: hermes-gateway pairing approve CODE --as owner")
    if rank_of(role) > rank_of(giver):
        raise AccessError(f"you are {giver} here, and nobody gives more than they have")
    before = context.access.pairings.find_person(code)
    if before and rank_of(before.role) > rank_of(giver):
        raise AccessError(f"{describe_guest(before)} is {before.role} here, which is more than you are")
    if (numbered := NUMBER.fullmatch(code)) and is_listed:
        guest = await context.access.pairings.approve_number(int(numbered[1]), role)
    else:
        guest = await context.access.pairings.approve(code, by, role)
    context.registry.emit(
        "access:paired",
        platform=guest.platform,
        user_id=guest.user_id,
        chat_id=guest.chat_id,
        role=guest.role,
        reason=f"approved by {by}",
    )
    await context.registry.recorders.settled()
    if before is None:
        await context.outbox.post(Reply(uuid.uuid4().hex, Address(guest.platform, guest.chat_id), WELCOME))
    return guest


async def remove_pairing(context: DispatcherContext, platform: str, user_id: str, giver: Role) -> PairingUser:
    """Let somebody in no more.

    Raises:
        AccessError: they were not let in by a code, or are more than whoever says so.
    """
    before = context.access.pairings.find_person(f"{platform}:{user_id}")
    if before and rank_of(before.role) > rank_of(giver):
        raise AccessError(f"{describe_guest(before)} is {before.role} here, which is more than you are")
    return await context.access.pairings.revoke(platform, user_id)


def list_pairings(context: DispatcherContext) -> dict[str, Any]:
    """Returns everybody who was let in and everybody who has asked, without the marks of their codes."""
    pairings, of_askers = context.access.pairings, {"number", "told"}
    return {
        "people": [list_fields(one, {"mark", *of_askers}) for one in pairings.people],
        "asking": [list_fields(one, {"mark"}) for one in pairings.asking],
    }


def list_fields(guest: PairingUser, without: set[str]) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(guest).items() if name not in without}


async def run_pairing_command(
    context: DispatcherContext, args: str, by: str, giver: Role, platform: str
) -> CommandResult:
    """Run `/pairing` for an admin in a chat."""
    verb, _, rest = args.partition(" ")
    try:
        if verb == "approve" and (asked := APPROVED_AS.fullmatch(rest.strip())):
            role = next((one for one in GIVEN_ROLES if one == (asked["role"] or "user").lower()), None)
            if role is None:
                return CommandResult(f"There is no role {asked['role'][:20]}; there is {', '.join(GIVEN_ROLES)}.")
            guest = await approve_pairing(context, asked["code"], role, by, giver)
            return _tell_done(verb, guest, f"may speak now, as {guest.role}.")
        if verb == "revoke" and rest:
            gone = await remove_pairing(context, platform, rest.strip(), giver)
            return _tell_done(verb, gone, "may speak no more.")
        if verb:
            return CommandResult("/pairing takes `approve CODE`, `approve CODE --as ROLE`, `revoke ID`, or nothing.")
        found = list_pairings(context)
    except AccessError as error:
        refused = ActivityRecord(what=f"pairing.{verb}", outcome="refused")
        return CommandResult(f"{str(error)[:1].upper()}{str(error)[1:]}.", activity=refused)
    rows = [f"{one['platform']} {one['user_id']} {one['user_name']} asks to be let in" for one in found["asking"]]
    rows += [
        f"{one['platform']} {one['user_id']} {one['user_name']} was let in as {one['role']}" for one in found["people"]
    ]
    return CommandResult("\n".join(rows) or "Nobody asks to be let in, and nobody was let in by a code.")


def _tell_done(verb: str, guest: PairingUser, what: str) -> CommandResult:
    done = ActivityRecord(what=f"pairing.{verb}", on=f"{guest.platform}:{guest.user_id} {guest.role}")
    return CommandResult(f"{describe_guest(guest)} {what}", activity=done)


def describe_guest(guest: PairingUser) -> str:
    return f"{guest.user_name or guest.user_id} ({guest.platform} {guest.user_id})"
