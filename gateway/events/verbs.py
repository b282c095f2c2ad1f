"""The verb of events: they are watched as they happen."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.events.catalogue import get_event_spec
from gateway.verbs import Shown, Verb, cut_answer, show

# Neither `id` nor `cause`: the names that a model gave are in them.
_FIELDS: Mapping[str, Shown] = {
    **show("time", "resumed", "platform", "account", "platforms", "user_id", "chat_id", "thread_id", "chat_type"),
    **show("message_id", "message_ids", "role", "scope", "session_id", "session_key", "new_session_id"),
    **show("old_session_id", "turn_id", "agent", "hook", "iteration", "hop", "index", "tokens", "duration"),
    **show("completed", "interrupted", "attempts", "in_place", "compression_count", "sent_at", "due", "late_by"),
    "webhook": True,
    "usage": show("input_tokens", "output_tokens", "calls", "cost"),
    "person": True,
}


class TailParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events of these names, which may be patterns; without any, all."""

    names: tuple[str, ...] | None = None

    @property
    def patterns(self) -> str:
        """The patterns as the record of activity has them."""
        return " ".join(self.names or ())


def cut_event(told: Any) -> Any:
    """Return what an operator sees of an event; if a hook made the event up itself, only that it happened."""
    fields = _FIELDS if get_event_spec(told["event"]) else show("time")
    return cut_answer(told, {**show("event", "lost"), "fields": fields})


VERBS = (
    Verb(
        "events.tail",
        "Watch events as they happen.",
        TailParams,
        "operator",
        authors="placed",
        shown=cut_event,
        on="{patterns}",
        kind="look",
        lasts=True,
        raw=True,
    ),
)
