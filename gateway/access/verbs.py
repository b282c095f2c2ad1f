"""The verbs of pairing: requests, paired people, and invitations."""

import msgspec

from gateway.messages.roles import Scope
from gateway.verbs import NoParams, Verb

LIFETIME = 3600.0  # seconds of an invitation


class PairingApproveParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The person with this code is paired, with this role."""

    code: str
    role: Scope = "user"


class InvitationParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first person who comes with a new code, within so many seconds, is paired with this role."""

    role: Scope = "user"
    lifetime: float = LIFETIME


class InvitationIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The invitation of this number."""

    number: int


class PairingPersonParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The person whose pairing ends."""

    platform: str
    user_id: str | int


_GUEST, _INVITATION = "{said[platform]}:{said[user_id]} {said[role]}", "#{said[number]} {said[role]}"

VERBS = (
    Verb("pairing.list", "List requests, people and invitations.", NoParams, "admin", authors="placed", page="shared"),
    Verb(
        "pairing.approve",
        "Authorize the person with this code.",
        PairingApproveParams,
        "admin",
        on=_GUEST,
        page=("code", "role"),
    ),
    Verb("pairing.revoke", "Remove a person.", PairingPersonParams, "admin", on=_GUEST),
    Verb("pairing.invite", "Create an invitation.", InvitationParams, "admin", on=_INVITATION),
    Verb("pairing.uninvite", "Cancel an invitation.", InvitationIdParams, "admin", on=_INVITATION),
)
