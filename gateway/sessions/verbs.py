"""The verbs of sessions: lists, contents, search, export and removal."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal, TypeAlias

import msgspec

from gateway.records.verbs import SHOWN_NAMES
from gateway.verbs import NoParams, Shown, Verb, show

_placed = partial(Verb, authors="placed", raw=True)

RowCount: TypeAlias = Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)]
"""At most so many; -1: all."""
SessionOrder: TypeAlias = Literal["latest", "began", "turns", "name"]


class SessionListParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sessions that match, at most so many; `after` is where the page before them ended.

    `platform` and `person` (`telegram:1002`) began them; `search` is a part of their title, of the name or id of the
    person or the chat, or of the key. `sort`: the last used, the newest or the longest first, or by name.
    """

    platform: str = ""
    limit: RowCount = 50
    after: str = ""
    person: str = ""
    search: str = ""
    sort: SessionOrder = "latest"


class SessionShowParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session, as `SessionParams` names it; of its entries the last ones, before the one of this number.

    `longest`: of each text at the most so many characters. -1: all.
    """

    session: str
    before: RowCount = -1
    limit: RowCount = -1
    longest: RowCount = -1


class SessionParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session's id, how one begins, or a session key."""

    session: str


class SessionSearchParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words that are looked for."""

    query: str
    limit: RowCount = 20
    after: str = ""


class SessionExportParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session, and the format of its export."""

    session: str
    format: Literal["markdown", "json"] = "markdown"


class StatisticsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last days."""

    days: RowCount = 30


_LISTED = show(
    *("session_id", "session_key", "chat", "platform", "user_id"),
    *("began", "last_active", "is_current", "turns", "entries"),
)
_TOTALS = show("name", "sessions", "turns", "failed", "input_tokens", "output_tokens", "cost")
_PAGE: Mapping[str, Shown] = {"sessions": _LISTED, "next": True, "names": SHOWN_NAMES}
_STATISTICS = {"total": _TOTALS, "platforms": _TOTALS, "days": _TOTALS}

VERBS = (
    _placed("sessions.list", "List sessions.", SessionListParams, "operator", shown=_PAGE, page="look"),
    _placed(
        "sessions.show",
        "Show the messages of a session.",
        SessionShowParams,
        "admin",
        on="{session}",
        kind="look",
        page="look",
    ),
    _placed("sessions.search", "Search the messages.", SessionSearchParams, "admin", on="", kind="look", page="look"),
    _placed(
        "sessions.export",
        "Export a session.",
        SessionExportParams,
        "admin",
        on="{session}",
        kind="look",
        page=("session", "format"),
    ),
    _placed("sessions.stop", "Interrupt a turn.", SessionParams, "admin", on="{session}", page=("session",)),
    _placed("sessions.delete", "Delete a session.", SessionParams, "admin", on="{session}", page=("session",)),
    _placed("sessions.rebuild", "Rebuild the search index.", NoParams, "admin"),
    _placed("sessions.statistics", "Count turns and tokens by day.", StatisticsParams, "operator", shown=_STATISTICS),
)
