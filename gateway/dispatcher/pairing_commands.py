"""Pairing: the answer to strangers, and inviting, authorizing, listing and removing people, in a chat and by CLI."""

import re
import uuid
from typing import Any

import msgspec

from gateway.access.invitations import LIFETIME
from gateway.dispatcher.commands import CommandResult, parse_command, say_error
from gateway.dispatcher.context import DispatcherContext
from gateway.errors import AccessError
from gateway.messages.message import Message, Reply, address_of
from gateway.messages.roles import ROLES, Role, rank_of
from gateway.records.records import ActivityRecord, PairingInvitation, PairingUser
from gateway.yaml_source.units import format_duration, parse_duration

UNKNOWN = """\
You are not authorized yet. Your pairing code is {code}, valid for one hour.
The operator of this gateway authorizes you with `hermes-gateway pairing approve {code}`; an admin can write me \
`/pairing approve {code}`.\
"""
CODE_REPLY = "pairing-code:"  # starts the id of a reply with a code
HOST_OPERATOR = "the person who runs this gateway"
NUMBER = re.compile(r"#(\d{1,9})")
TAKES = (
    "/pairing takes `approve CODE`, `approve CODE --as ROLE`, `revoke ID`, `invite`, "
    "`invite --as ROLE --for 1h`, `uninvite NUMBER`, or nothing."
)
GIVEN_ROLES = tuple(role for role in ROLES if role != "guest")
APPROVED_AS = re.compile(r"(?P<code>\S+)(\s+[-\u2013\u2014]*as\s+(?P<role>\S+))?")  # a phone may join the two hyphens
INVITED = re.compile(r"(\s*[-\u2013\u2014]*as\s+(?P<role>\S+))?(\s*[-\u2013\u2014]*for\s+(?P<lifetime>\S+))?\s*")
INVITATION = """\
Invitation #{number}: the first person who opens it can use this bot as {role}. It is valid once, for {lifetime}; \
`/pairing uninvite {number}` takes it back.\
"""
ANYWHERE = "write `/start {code}` to the bot, in a direct message"
NOWHERE = "no bot is connected yet that could take `/start {code}`: `hermes-gateway setup --help` connects one"
WELCOME = "You can use this bot now. Ask a question, or give it a task; /help lists the commands."


async def refuse_stranger(context: DispatcherContext, message: Message, first: str = "") -> str:
    """Send a stranger a pairing code after the text `first`, if they may get a code; return why they are denied."""
    code = await context.access.invite(message)
    if not code:
        return "no rule names this person"
    text = "\n\n".join(filter(None, [first, UNKNOWN.format(code=code)]))
    name = f"{CODE_REPLY}{uuid.uuid4().hex}"
    reply = Reply(name, message.address, text, reply_to=message.id, codes=(code,))
    await context.outbox.post(reply)
    return "no rule names this person, who got a pairing code"


async def approve_pairing(
    context: DispatcherContext, code: str, role: Role, by: str, giver: Role, *, is_listed: bool = False
) -> PairingUser:
    """Authorize the person with this code in this role, and notify them; or change the role of an authorized person.

    `giver` is the role of the person who approves. If `is_listed`, the approver sees the list of requests, and the code
    `#3` means the third request.

    Raises:
        AccessError: the code is unknown, or this approver may not give or take the role.
    """
    check_role(role, by, giver)
    before = context.access.pairings.find_person(code)
    if before and rank_of(before.role) > rank_of(giver):
        raise AccessError(f"{describe_guest(before)} is {before.role} here, which is more than you are")
    if (numbered := NUMBER.fullmatch(code)) and is_listed:
        guest = await context.access.pairings.approve_number(int(numbered[1]), role)
    else:
        guest = await context.access.pairings.approve(code, by, role)
    await report_guest(context, guest, f"approved by {by}")
    if before is None:
        await context.outbox.post(Reply(uuid.uuid4().hex, address_of(guest.served_as, guest.chat_id), WELCOME))
    return guest


async def remove_pairing(context: DispatcherContext, platform: str, user_id: str, giver: Role) -> PairingUser:
    """Remove a person's authorization.

    Raises:
        AccessError: the person was not authorized by a code, or has a role above the remover's.
    """
    before = context.access.pairings.find_person(f"{platform}:{user_id}")
    if before and rank_of(before.role) > rank_of(giver):
        raise AccessError(f"{describe_guest(before)} is {before.role} here, which is more than you are")
    return await context.access.pairings.revoke(platform, user_id)


async def make_invitation(
    context: DispatcherContext, role: Role, lifetime: float, by: str, giver: Role
) -> tuple[str, PairingInvitation, list[tuple[str, str]]]:
    """Make an invitation; return its code, its record, and for each network the text to pass on, with the code.

    Raises:
        AccessError: this person may not give the role, or the invitation cannot be made.
    """
    check_role(role, by, giver)
    code, made = await context.access.pairings.invitations.make(role, lifetime, by)
    is_served = any(one.served for one in context.places.about().networks)
    ways = context.reports.ways_in() or [("", ANYWHERE if is_served else NOWHERE)]
    return code, made, [(name, text.format(code=code)) for name, text in ways]


def check_role(role: Role, by: str, giver: Role) -> None:
    """Raise AccessError if this person may not give the role."""
    if role == "owner" and by != HOST_OPERATOR:
        raise AccessError("an owner is made where the gateway runs: hermes-gateway pairing approve CODE --as owner")
    if rank_of(role) > rank_of(giver):
        raise AccessError(f"you are {giver} here, and cannot give a higher role")


async def use_invitation(context: DispatcherContext, message: Message, role: Role | None) -> tuple[str, bool]:
    """Return the answer to a person who sent the code of an invitation, and True if the code authorizes them.

    `role` is the role that the person already has. The answer is "" for any other message, or if no invitation is open.
    """
    typed, invitations = parse_command(message.text), context.access.pairings.invitations
    is_alone = message.address.chat_type == "dm" and message.kind in ("text", "command") and bool(message.user_id)
    if not (typed and typed.word == "start" and typed.args and is_alone and invitations.open):
        return "", False

    def may_give(made: PairingInvitation) -> bool:
        if made.by == HOST_OPERATOR:
            return True
        platform, _, user_id = made.by.partition(":")
        giver = context.access.find_highest_role(platform, user_id)
        return giver is not None and made.role != "owner" and rank_of(made.role) <= rank_of(giver)

    def has(given: Role) -> bool:
        return role is not None and rank_of(role) >= rank_of(given)

    try:
        guest = await invitations.use(typed.args, message, may_give, has)
    except AccessError as error:
        return say_error(error), False
    await report_guest(context, guest, "invited")
    who, place = f"{guest.platform}:{guest.user_id}", f"{guest.served_as}:{guest.user_id}"
    await context.activity.write(ActivityRecord(what="pairing.use", on=f"{place} {guest.role}", who=who, place=place))
    return WELCOME, True


async def report_guest(context: DispatcherContext, guest: PairingUser, reason: str) -> None:
    """Notify hooks that a person was authorized."""
    context.registry.emit(
        "access:paired",
        platform=guest.platform,
        account=guest.account,
        user_id=guest.user_id,
        chat_id=guest.chat_id,
        role=guest.role,
        reason=reason,
    )
    await context.registry.recorders.settled()


def list_pairings(context: DispatcherContext) -> dict[str, Any]:
    """Return the authorized people, the requests and the open invitations, without the digests of their codes."""
    pairings, of_askers = context.access.pairings, {"number", "told"}
    return {
        "people": [list_fields(one, {"mark", *of_askers}) for one in pairings.people],
        "asking": [list_fields(one, {"mark"}) for one in pairings.asking],
        "invited": [describe_invitation(context, one) for one in pairings.invitations.open],
    }


def list_fields(guest: PairingUser, without: set[str]) -> dict[str, Any]:
    found = msgspec.to_builtins(guest) | {"platform": guest.served_as}
    return {name: value for name, value in found.items() if name not in {"account", *without}}


def describe_invitation(context: DispatcherContext, made: PairingInvitation) -> dict[str, Any]:
    """Return an invitation's fields for display; `left` is its remaining time in seconds."""
    left = max(0.0, made.until - context.engine.clock.latest_possible())
    return {"number": made.number, "role": made.role, "by": made.by, "left": left}


async def run_pairing_command(
    context: DispatcherContext, args: str, by: str, giver: Role, platform: str
) -> CommandResult:
    """Run `/pairing` for an admin in a chat."""
    verb, _, rest = args.partition(" ")
    try:
        if verb == "approve" and (asked := APPROVED_AS.fullmatch(rest.strip())):
            guest = await approve_pairing(context, asked["code"], _find_role(asked["role"]), by, giver)
            return _tell_done(verb, guest, f"may write to the bot now, as {guest.role}.")
        if verb == "invite" and (asked := INVITED.fullmatch(rest)):
            return await _invite(context, asked, by, giver)
        if verb == "uninvite" and (numbered := NUMBER.fullmatch(f"#{rest.strip().removeprefix('#')}")):
            taken = await context.access.pairings.invitations.take_back(int(numbered[1]))
            done = ActivityRecord(what="pairing.uninvite", on=f"#{taken.number} {taken.role}")
            return CommandResult(f"Invitation #{taken.number} is no longer valid.", activity=done)
        if verb == "revoke" and rest:
            gone = await remove_pairing(context, platform, rest.strip(), giver)
            return _tell_done(verb, gone, "may speak no more.")
        if verb:
            return CommandResult(TAKES)
        found = list_pairings(context)
    except AccessError as error:
        refused = ActivityRecord(what=f"pairing.{verb}", outcome="refused")
        return CommandResult(say_error(error), activity=refused)
    rows = [f"{one['platform']} {one['user_id']} {one['user_name']} asks for access" for one in found["asking"]]
    rows += [
        f"{one['platform']} {one['user_id']} {one['user_name']} is paired as {one['role']}" for one in found["people"]
    ]
    rows += [f"invitation #{one['number']} is open, as {one['role']}, made by {one['by']}" for one in found["invited"]]
    return CommandResult("\n".join(rows) or "No pairing requests, and no paired users.")


async def _invite(context: DispatcherContext, asked: re.Match[str], by: str, giver: Role) -> CommandResult:
    lifetime = parse_duration(asked["lifetime"]) if asked["lifetime"] else LIFETIME
    if lifetime is None:
        raise AccessError(f"{asked['lifetime'][:20]!r} is not a duration: write 30m, 2h or 1d")
    code, made, ways = await make_invitation(context, _find_role(asked["role"]), lifetime, by, giver)
    told = INVITATION.format(number=made.number, role=made.role, lifetime=format_duration(lifetime))
    rows = [f"{name}: {text}" if name else text for name, text in ways]
    done = ActivityRecord(what="pairing.invite", on=f"#{made.number} {made.role}")
    return CommandResult("\n".join([told, *rows]), activity=done, codes=(code,))


def _find_role(name: str | None) -> Role:
    """Return the role of this name; raise AccessError if no role has this name."""
    role = next((one for one in GIVEN_ROLES if one == (name or "user").lower()), None)
    if role is None:
        raise AccessError(f"{(name or 'user')[:20]!r} is not a role; the roles are {', '.join(GIVEN_ROLES)}")
    return role


def _tell_done(verb: str, guest: PairingUser, what: str) -> CommandResult:
    done = ActivityRecord(what=f"pairing.{verb}", on=f"{guest.served_as}:{guest.user_id} {guest.role}")
    return CommandResult(f"{describe_guest(guest)} {what}", activity=done)


def describe_guest(guest: PairingUser) -> str:
    return f"{guest.user_name or guest.user_id} ({guest.served_as} {guest.user_id})"
