"""What the control socket answers about the chat networks and their people: who asks, who is served, one text out."""

import dataclasses
import uuid
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import msgspec

from gateway.access.invitations import LIFETIME
from gateway.control.params import NameParams, NoParams
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.daemon.status import list_unserved_platforms
from gateway.dispatcher import pairing_commands
from gateway.engine.interface import Record
from gateway.errors import AdapterError, GatewayError
from gateway.messages.message import Attachment, Reply, attachment_from
from gateway.records import records, subjects
from gateway.records.activity import CALLER, OWNER
from gateway.roles import Role

TEXT_LIMIT = 100_000


class PairingApproveParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever has this code is let in, with this role."""

    code: str
    role: Literal["owner", "admin", "operator", "user"] = "user"


class InvitationParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever comes first with a new code is let in with this role, within so many seconds."""

    role: Literal["owner", "admin", "operator", "user"] = "user"
    lifetime: float = LIFETIME


class InvitationIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The invitation of this number."""

    number: int


class PairingPersonParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This person is no longer let in."""

    platform: str
    user_id: str | int


class PlatformSteerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pause, resume or restart a network."""

    verb: str
    name: str


class ChatSendParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text, and files, to `platform`, `platform:chat` or `platform:chat:thread`."""

    to: str
    text: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""
    files: tuple[str, ...] = ()
    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 30.0


async def _list_pairings(gateway: Gateway, _params: NoParams) -> Any:
    return pairing_commands.list_pairings(gateway.context)


async def _approve(gateway: Gateway, asked: PairingApproveParams) -> Any:
    """Whoever reaches the control socket is the owner; on the page somebody is by their login, and makes no owner."""
    by, giver = _find_giver()
    guest = await pairing_commands.approve_pairing(gateway.context, asked.code, asked.role, by, giver, is_listed=True)
    return describe_guest(guest)


def _find_giver() -> tuple[str, Role]:
    caller = CALLER.get(OWNER)
    return pairing_commands.HOST_OPERATOR if caller.place == OWNER.place else caller.name, caller.role


async def _invite(gateway: Gateway, asked: InvitationParams) -> Any:
    _, made, ways = await pairing_commands.make_invitation(gateway.context, asked.role, asked.lifetime, *_find_giver())
    facts = pairing_commands.describe_invitation(gateway.context, made)
    return {**facts, "ways": [{"platform": name, "text": text} for name, text in ways]}


async def _uninvite(gateway: Gateway, params: InvitationIdParams) -> Any:
    gone = await gateway.access.pairings.invitations.take_back(params.number)
    return pairing_commands.describe_invitation(gateway.context, gone)


async def _revoke(gateway: Gateway, params: PairingPersonParams) -> Any:
    giver = CALLER.get(OWNER).role
    gone = await pairing_commands.remove_pairing(gateway.context, params.platform, str(params.user_id), giver)
    return describe_guest(gone)


def describe_guest(guest: records.PairingUser) -> dict[str, str]:
    return {
        "platform": guest.served_as,
        "user_id": guest.user_id,
        "user_name": guest.user_name,
        "role": guest.role,
    }


async def _list_platforms(gateway: Gateway, _params: NoParams) -> Any:
    served = [
        {"name": one.name, "state": one.state, **msgspec.to_builtins(one.presence.facts)} for one in gateway.platforms
    ]
    return {"platforms": served, "off": list_unserved_platforms(gateway.settings)}


async def _steer(gateway: Gateway, params: PlatformSteerParams) -> Any:
    return {"did": await gateway.steering.steer(params.verb, params.name)}


async def _probe(gateway: Gateway, params: NameParams) -> Any:
    return {"name": params.name, "seconds": await gateway.steering.probe(params.name)}


async def _send(gateway: Gateway, asked: ChatSendParams) -> Any:
    """Owe the text, and wait a while to see it arrive; what is owed goes out even if nobody waits."""
    if not asked.text.strip() and not asked.files:
        raise GatewayError("send: there is nothing to send")
    address = gateway.context.places.resolve_destination(asked.to, list_unserved_platforms(gateway.settings))
    attachments = tuple(make_attachment(Path(path)) for path in asked.files)
    reply = Reply(uuid.uuid4().hex, address, asked.text, attachments=attachments)
    reply = await gateway.shared_files.share(reply, subjects.place_of(address))
    tail = await gateway.engine.tail(subjects.send_subject_of(subjects.place_of(address)))
    await gateway.outbox.post(reply)
    is_paused = any(one.name == address.served_as and one.part.is_paused for one in gateway.platforms)
    with anyio.move_on_after(0 if is_paused else asked.wait):
        return {"state": "sent", "message_ids": await wait_until_sent(tail, reply.id)}
    return {"state": "owed", "message_ids": []}


async def wait_until_sent(tail: AsyncIterator[Record], reply_id: str) -> list[str]:
    """The ids of what arrived.

    Raises:
        AdapterError: it was given up.
    """
    async for record in tail:
        match records.decode_readable(record.data):
            case records.SendSucceeded(last=True) as sent if sent.reply_id == reply_id:
                return [one for part in sent.message_ids for one in part]
            case records.SendFailed(permanent=True) as failed if failed.reply_id == reply_id:
                raise AdapterError(failed.error)
    raise AdapterError("the gateway stops; what was to be sent is kept, and goes out when it runs again")


def make_attachment(path: Path) -> Attachment:
    """A file as what its name says it is.

    Raises:
        AdapterError: there is no such file.
    """
    if not path.is_file():
        raise AdapterError(f"there is no file {path}")
    return dataclasses.replace(attachment_from(path.resolve()), name=path.name)


PLATFORM_VERBS: Mapping[str, GatewayVerb[Any]] = {
    "pairing.list": GatewayVerb(NoParams, _list_pairings),
    "pairing.approve": GatewayVerb(PairingApproveParams, _approve),
    "pairing.revoke": GatewayVerb(PairingPersonParams, _revoke),
    "pairing.invite": GatewayVerb(InvitationParams, _invite),
    "pairing.uninvite": GatewayVerb(InvitationIdParams, _uninvite),
    "platform.list": GatewayVerb(NoParams, _list_platforms),
    "platform.steer": GatewayVerb(PlatformSteerParams, _steer),
    "platform.probe": GatewayVerb(NameParams, _probe),
    "chat.send": GatewayVerb(ChatSendParams, _send),
}
