"""How a setting says what it means: to the reader of the reference, to an editor, and to the check of the file."""

from typing import Any

from msgspec import Meta

HTTP_PATTERN = r"^(https?://\S+)?$"
WEBSOCKET_PATTERN = r"^(wss?://\S+)?$"


def describe(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)
