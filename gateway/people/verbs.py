"""The verbs of people: list them, and count, export or remove their data."""

from typing import Annotated, Literal, TypeAlias

import msgspec

from gateway.messages.roles import Role
from gateway.verbs import Verb

PeopleOrder: TypeAlias = Literal["name", "id", "latest", "sessions", "role"]


class PersonParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person by network and id, as `telegram:1002`."""

    person: str


class PeopleListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most so many (-1: all) from the one at `first` on, of those who match.

    `search`: a part of the name or the id. `sort`: by name, those without one last; by id; the latest to speak first;
    the most sessions first; or the highest role first.
    """

    limit: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1
    first: Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] = 0
    search: str = ""
    sort: PeopleOrder = "name"
    platform: str = ""
    role: Role | Literal["", "none"] = ""


VERBS = (
    Verb("people.list", "List people.", PeopleListParams, "admin", page="look", raw=True),
    Verb(
        "people.show",
        "Show how much data of a person there is.",
        PersonParams,
        "admin",
        on="{person}",
        kind="look",
        page="look",
        raw=True,
    ),
    Verb(
        "people.export",
        "Export all data of a person.",
        PersonParams,
        "admin",
        on="{person}",
        page=("person",),
        raw=True,
    ),
    Verb("people.forget", "Remove all data of a person.", PersonParams, "admin", on="{said[pseudonym]}", raw=True),
)
