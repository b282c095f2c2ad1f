"""Answers about the chat networks and their people: pairings, networks, and a text to a chat."""

import dataclasses
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.access.verbs import InvitationIdParams, InvitationParams, PairingApproveParams, PairingPersonParams
from gateway.adapters.verbs import SteerParams
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, NodePresence
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.status import list_unserved_platforms
from gateway.dispatcher import pairing_commands
from gateway.engine.interface import Record
from gateway.errors import AdapterError, GatewayError
from gateway.messages.message import Attachment, Reply, attachment_from
from gateway.messages.roles import Role
from gateway.outbox.verbs import ChatSendParams
from gateway.records import records, subjects
from gateway.records.activity import CALLER, OWNER
from gateway.verbs import NameParams


async def pairing_list(turns: Turns) -> Any:
    return pairing_commands.list_pairings(turns.context)


async def pairing_approve(turns: Turns, params: PairingApproveParams) -> Any:
    """Approve a pairing. A caller of the control socket counts as the owner; on the page no one can make an owner."""
    by, giver = _find_giver()
    guest = await pairing_commands.approve_pairing(turns.context, params.code, params.role, by, giver, is_listed=True)
    return describe_guest(guest)


def _find_giver() -> tuple[str, Role]:
    caller = CALLER.get(OWNER)
    return pairing_commands.HOST_OPERATOR if caller.place == OWNER.place else caller.name, caller.role


async def pairing_invite(turns: Turns, params: InvitationParams) -> Any:
    asked = (params.role, params.lifetime)
    _, made, ways = await pairing_commands.make_invitation(turns.context, *asked, *_find_giver())
    facts = pairing_commands.describe_invitation(turns.context, made)
    return {**facts, "ways": [{"platform": name, "text": text} for name, text in ways]}


async def pairing_uninvite(people: People, turns: Turns, params: InvitationIdParams) -> Any:
    gone = await people.access.pairings.invitations.take_back(params.number)
    return pairing_commands.describe_invitation(turns.context, gone)


async def pairing_revoke(turns: Turns, params: PairingPersonParams) -> Any:
    giver = CALLER.get(OWNER).role
    gone = await pairing_commands.remove_pairing(turns.context, params.platform, str(params.user_id), giver)
    return describe_guest(gone)


def describe_guest(guest: records.PairingUser) -> dict[str, str]:
    return {"platform": guest.served_as, "user_id": guest.user_id, "user_name": guest.user_name, "role": guest.role}


async def platform_list(base: Base, networks: Networks) -> Any:
    served = [
        {"name": one.name, "state": one.state, **msgspec.to_builtins(one.presence.facts)} for one in networks.platforms
    ]
    return {"platforms": served, "off": list_unserved_platforms(base.settings)}


async def platform_steer(presence: NodePresence, params: SteerParams) -> Any:
    return {"did": await presence.steering.steer(params.verb, params.name)}


async def platform_probe(presence: NodePresence, params: NameParams) -> Any:
    return {"name": params.name, "seconds": await presence.steering.probe(params.name)}


async def chat_send(base: Base, storage: Storage, turns: Turns, networks: Networks, params: ChatSendParams) -> Any:
    """Store the text as a pending reply, and wait a while for its delivery. The outbox sends the reply in any case."""
    if not params.text.strip() and not params.files:
        raise GatewayError("send: the message has no text and no file")
    address = turns.context.places.resolve_destination(params.to, list_unserved_platforms(base.settings))
    attachments = tuple(make_attachment(Path(path)) for path in params.files)
    reply = Reply(uuid.uuid4().hex, address, params.text, attachments=attachments)
    reply = await storage.files.share(reply, subjects.place_of(address))
    tail = await base.engine.tail(subjects.send_subject_of(subjects.place_of(address)))
    await turns.outbox.post(reply)
    is_paused = any(one.name == address.served_as and one.part.is_paused for one in networks.platforms)
    to = turns.context.places.chat_names.show(address)
    with anyio.move_on_after(0 if is_paused else params.wait):
        return {"state": "sent", "message_ids": await _wait_until_sent(tail, reply.id), "to": to}
    return {"state": "owed", "message_ids": [], "to": to}


async def _wait_until_sent(tail: AsyncIterator[Record], reply_id: str) -> list[str]:
    """Wait until the reply is sent, and return the ids of its messages.

    Raises:
        AdapterError: the network refused the reply, or the gateway stops.
    """
    async for record in tail:
        match records.decode_readable(record.data):
            case records.SendSucceeded(last=True) as sent if sent.reply_id == reply_id:
                return [one for part in sent.message_ids for one in part]
            case records.SendFailed(permanent=True) as failed if failed.reply_id == reply_id:
                raise AdapterError(failed.error)
    raise AdapterError("the gateway stops; what was to be sent is kept, and goes out when it runs again")


def make_attachment(path: Path) -> Attachment:
    """Return a file as an attachment of the kind that its name says.

    Raises:
        AdapterError: the file was not found.
    """
    if not path.is_file():
        raise AdapterError(f"file {path} not found")
    return dataclasses.replace(attachment_from(path.resolve()), name=path.name)
