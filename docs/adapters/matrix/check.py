"""Whether the token is good, for `setup`."""

import uuid

from gateway.adapters import PlatformReport

from .connection import ERRORS, connected, expect, find_room, post
from .format import render_messages, write_content
from .settings import MatrixSettings


async def check(settings: MatrixSettings) -> PlatformReport:
    """Whose token it is.

    Raises:
        AdapterError: nobody's, or the homeserver cannot be reached.
    """
    with ERRORS.translated():
        async with connected(settings) as client:
            me = expect(await client.whoami())
            return PlatformReport(str(me.user_id), todo=("invite it into a room; it comes by itself",))


async def say(settings: MatrixSettings, chat: str, text: str) -> None:
    """One text into a room, or to a person.

    Raises:
        AdapterError: it was refused; with the reason.
    """
    with ERRORS.translated():
        async with connected(settings) as client:
            for one in render_messages(text):
                await post(client, await find_room(client, chat), write_content(one), uuid.uuid4().hex)
