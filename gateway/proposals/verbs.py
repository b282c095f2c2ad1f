"""The verbs of proposals: make one, list them, withdraw one. No verb of the page answers one."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from gateway.verbs import NoParams, Verb

ProposalKind: TypeAlias = Literal["settings", "model", "network", "hook", "person"]
ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]
SettingText: TypeAlias = Annotated[str, msgspec.Meta(max_length=2000)]


class ProposalParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change: settings by their names, fields of a model or a network, a hook of an index, a person to forget."""

    kind: ProposalKind
    name: ShortText = ""
    values: Annotated[dict[ShortText, SettingText | None], msgspec.Meta(max_length=20)] = {}


class ProposalIdParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The proposal of this id."""

    id: str


VERBS = (
    Verb(
        "proposals.make",
        "Propose a change of the gateway.",
        ProposalParams,
        "admin",
        on="{said[kind]} {said[name]}",
        page=("kind", "name", "values"),
    ),
    Verb("proposals.list", "List proposals and their outcomes.", NoParams, "admin", page="shared"),
    Verb("proposals.withdraw", "Withdraw a proposal.", ProposalIdParams, "admin", on="{id}", page=("id",)),
)
