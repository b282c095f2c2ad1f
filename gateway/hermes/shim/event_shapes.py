"""What Hermes 0.19 tells a handler of each of its events: exactly these keys.

Handlers compare the keys that they get with those that they know, so one written for Hermes is shown no others.
"""

from collections.abc import Mapping

_ROWS = (
    ("gateway:startup", "platforms"),
    ("session:start", "platform user_id session_id session_key"),
    ("session:end session:reset", "platform user_id session_key"),
    ("session:compress", "platform session_id old_session_id in_place compression_count"),
    ("agent:start", "platform user_id chat_id thread_id chat_type session_id message"),
    ("agent:step", "platform user_id session_id iteration tool_names tools"),
    ("agent:end", "platform user_id chat_id thread_id chat_type session_id message response"),
    ("command:*", "platform user_id command raw_command args raw_args"),
)
HERMES_KEYS: Mapping[str, frozenset[str]] = {
    name: frozenset(keys.split()) for names, keys in _ROWS for name in names.split()
}


def get_hermes_keys(event: str) -> frozenset[str] | None:
    """The keys of this event; None for one that Hermes does not have."""
    domain, _, _ = event.partition(":")
    return HERMES_KEYS.get(event) or HERMES_KEYS.get(f"{domain}:*")
