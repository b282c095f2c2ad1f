"""The verb of the record of activity."""

from typing import Annotated

import msgspec

from gateway.verbs import Verb

MOST_ROWS = 1000
NEWEST = (1 << 63) - 1


class ActivityParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The next records after this sequence (0: from the first), of those since then.

    With `last`, the last so many instead; before the sequence `before`, unless that is 0. Only records whose `who` and
    `what` match these patterns are included, such as `telegram:*` and `hooks.*`.
    """

    after: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    since: float = 0.0
    last: Annotated[int, msgspec.Meta(ge=0, le=MOST_ROWS)] = 0
    before: Annotated[int, msgspec.Meta(ge=0, le=NEWEST)] = 0
    who: str = "*"
    what: str = "*"


VERBS = (Verb("activity.list", "List who did what on the gateway.", ActivityParams, "admin", page="look"),)
