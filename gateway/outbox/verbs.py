"""The verb of the outbox: one text to a chat."""

from typing import Annotated

import msgspec

from gateway.verbs import Verb

TEXT_LIMIT = 100_000


class ChatSendParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text, and files, to `platform`, `platform:chat` or `platform:chat:thread`."""

    to: str
    text: Annotated[str, msgspec.Meta(max_length=TEXT_LIMIT)] = ""
    files: tuple[str, ...] = ()
    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 30.0


VERBS = (
    Verb(
        "chat.send",
        "Send a text and files.",
        ChatSendParams,
        "admin",
        authors="send",
        on="{to}",
        kind="often",
        page=("to", "text", "wait"),
    ),
)
