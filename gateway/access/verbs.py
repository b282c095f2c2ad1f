"""The verbs of pairing: who asks to be let in, who was, and by which invitation."""

import msgspec

from gateway.roles import Scope
from gateway.verbs import NoParams, Verb

LIFETIME = 3600.0  # seconds of an invitation


class PairingApproveParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever has this code is let in, with this role."""

    code: str
    role: Scope = "user"


class InvitationParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whoever comes first with a new code is let in with this role, within so many seconds."""

    role: Scope = "user"
    lifetime: float = LIFETIME


class InvitationIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The invitation of this number."""

    number: int


class PairingPersonParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """This person is no longer let in."""

    platform: str
    user_id: str | int


_GUEST, _INVITATION = "{said[platform]}:{said[user_id]} {said[role]}", "#{said[number]} {said[role]}"

VERBS = (
    Verb("pairing.list", "List requests, people and invitations.", NoParams, "admin", authors="placed", page="shared"),
    Verb("pairing.approve", "Let in who has a code.", PairingApproveParams, "admin", on=_GUEST, page=("code", "role")),
    Verb("pairing.revoke", "Remove a person.", PairingPersonParams, "admin", on=_GUEST),
    Verb("pairing.invite", "Create an invitation.", InvitationParams, "admin", on=_INVITATION),
    Verb("pairing.uninvite", "Take an invitation back.", InvitationIdParams, "admin", on=_INVITATION),
)
