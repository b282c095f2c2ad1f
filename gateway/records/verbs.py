"""The verb of the record of activity."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from gateway.verbs import Shown, Verb, show

MOST_ROWS = 1000
NEWEST = (1 << 63) - 1
SHOWN_NAMES: Mapping[str, Shown] = {"*": show("name", "is_shared")}
"""The part that an operator sees of names of people and chats, which an answer has by id."""


class ActivityParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next records after this sequence (0: from the first), of those since then.

    With `last`, the last so many instead; before the sequence `before`, unless that is 0. Only records whose `who`, or
    its name, and `what` match these patterns are included, such as `telegram:*`, `Ann` and `hooks.*`.
    """

    after: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    since: float = 0.0
    last: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)] = 0
    before: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    who: str = "*"
    what: str = "*"


VERBS = (Verb("activity.list", "List who did what on the gateway.", ActivityParams, "admin", page="look"),)
