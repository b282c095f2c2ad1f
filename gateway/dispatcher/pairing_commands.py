"""Pairing: what strangers are answered, and how they are let in, listed and removed, in a chat and by the CLI."""

import uuid
from typing import Any

import msgspec

from gateway.dispatcher.context import DispatcherContext
from gateway.errors import AccessError
from gateway.messages import Address, Message, Reply
from gateway.records import PairingUser

UNKNOWN = """\
I do not know you yet. Your pairing code is {code}, good for one hour.
Whoever runs this gateway lets you in with `hermes-gateway pairing approve {code}`; an admin can write me \
`/pairing approve {code}`.\
"""
WELCOME = "You are let in. Write what you want to know or have done; /help lists the commands."


async def refuse_stranger(context: DispatcherContext, message: Message) -> str:
    """Give a stranger a code, in direct messages; returns why they were turned away."""
    code = await context.access.invite(message)
    if not code:
        return "no rule names this person"
    reply = Reply(uuid.uuid4().hex, message.address, UNKNOWN.format(code=code), reply_to=message.id)
    await context.outbox.post(reply)
    return "no rule names this person, who was given a pairing code"


async def approve_pairing(context: DispatcherContext, code: str, by: str) -> PairingUser:
    """Let in whoever has this code, and tell them.

    Raises:
        AccessError: nobody has it.
    """
    guest = await context.access.pairings.approve(code)
    context.registry.emit(
        "access:paired",
        platform=guest.platform,
        user_id=guest.user_id,
        chat_id=guest.chat_id,
        reason=f"approved by {by}",
    )
    await context.outbox.post(Reply(uuid.uuid4().hex, Address(guest.platform, guest.chat_id), WELCOME))
    return guest


def list_pairings(context: DispatcherContext) -> dict[str, Any]:
    """Returns everybody who was let in and everybody who has asked, without the marks of their codes."""
    both = {"people": context.access.pairings.people, "asking": context.access.pairings.asking}
    return {
        name: [{key: value for key, value in msgspec.to_builtins(one).items() if key != "mark"} for one in guests]
        for name, guests in both.items()
    }


async def run_pairing_command(context: DispatcherContext, args: str, by: str, platform: str) -> str:
    """Run `/pairing` for an admin in a chat; returns the answer."""
    verb, _, rest = args.partition(" ")
    try:
        if verb == "approve" and rest:
            return f"{describe_guest(await approve_pairing(context, rest, by))} may speak now."
        if verb == "revoke" and rest:
            return f"{describe_guest(await context.access.pairings.revoke(platform, rest.strip()))} may speak no more."
        if verb:
            return "/pairing takes `approve CODE`, `revoke ID`, or nothing."
        found = list_pairings(context)
    except AccessError as error:
        return f"{str(error)[:1].upper()}{str(error)[1:]}."
    rows = [f"{one['platform']} {one['user_id']} {one['user_name']} asks to be let in" for one in found["asking"]]
    rows += [f"{one['platform']} {one['user_id']} {one['user_name']} was let in" for one in found["people"]]
    return "\n".join(rows) or "Nobody asks to be let in, and nobody was let in by a code."


def describe_guest(guest: PairingUser) -> str:
    return f"{guest.user_name or guest.user_id} ({guest.platform} {guest.user_id})"
