"""One account's line to its homeserver, and what goes wrong there in our words.

The library gives errors back, and would wait by itself where it is told to be slow; here they are raised at once,
since whoever calls knows what to do meanwhile.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
from nio import AsyncClient, AsyncClientConfig, ErrorResponse

from gateway.adapters import AdapterError, NetworkErrors

from .settings import MatrixSettings

PATIENCE = 60.0  # seconds for one request
QUIET: dict[str, Any] = {"types": []}
FILTER: dict[str, Any] = {
    "presence": QUIET,
    "account_data": QUIET,
    "room": {"ephemeral": QUIET, "account_data": QUIET},
}
NO_TOKEN = ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED", "M_USER_LOCKED")
IN_VAIN = ("M_BAD_JSON", "M_INVALID_PARAM", "M_NOT_FOUND", "M_TOO_LARGE", "M_UNKNOWN")


class MatrixError(Exception):
    """The homeserver refused; `response` says why."""

    def __init__(self, response: ErrorResponse) -> None:
        super().__init__(response.message)
        self.response = response

    @property
    def code(self) -> str:
        return str(self.response.status_code or "")


def translate(error: Exception) -> AdapterError:
    """In our words, with what helps."""
    if not isinstance(error, MatrixError):
        return AdapterError(f"the homeserver cannot be reached: {type(error).__name__}")
    said = f"{error.response.message} ({error.code})" if error.code else "it answers with what is not Matrix"
    if error.code in NO_TOKEN:
        return AdapterError(f"the access token is not good any more: {said}; log in anew, and set MATRIX_ACCESS_TOKEN")
    if error.code == "M_LIMIT_EXCEEDED":
        seconds = (error.response.retry_after_ms or 5000) / 1000
        return AdapterError(f"Matrix wants {seconds:.1f} s of silence (too many messages)", retry_after=seconds)
    if error.code == "M_FORBIDDEN":
        return AdapterError(f"the bot is blocked there, or is not in the room: {said}", permanent=True)
    return AdapterError(f"Matrix: {said}", permanent=error.code in IN_VAIN)


ERRORS = NetworkErrors((MatrixError, aiohttp.ClientError, TimeoutError), translate)


def expect(response: Any) -> Any:
    """What the homeserver answered.

    Raises:
        MatrixError: it refused.
    """
    if isinstance(response, ErrorResponse):
        raise MatrixError(response)
    return response


@asynccontextmanager
async def connected(settings: MatrixSettings) -> AsyncIterator[AsyncClient]:
    """A client of the library's; nothing is asked yet."""
    if not settings.homeserver:
        raise AdapterError("there is no homeserver; set MATRIX_HOMESERVER")
    config = AsyncClientConfig(
        max_limit_exceeded=0,
        max_timeouts=0,
        request_timeout=PATIENCE,
        encryption_enabled=False,
        store_sync_tokens=False,
    )
    client = AsyncClient(settings.homeserver.rstrip("/"), config=config)
    client.access_token = settings.access_token.reveal().strip()
    try:
        yield client
    finally:
        await client.close()


async def find_room(client: AsyncClient, chat: str) -> str:
    """The room; for a person, the one that they share with the bot alone, which is made where there is none."""
    if not chat.startswith("@"):
        return chat
    for room in client.rooms.values():
        if chat in room.users and room.member_count == 2:
            return str(room.room_id)
    return str(expect(await client.room_create(is_direct=True, invite=[chat])).room_id)


async def post(client: AsyncClient, room: str, content: dict[str, Any], name: str, kind: str = "m.room.message") -> str:
    """The id of what was sent. What is sent again under one name is the same event, also after our death."""
    return str(expect(await client.room_send(room, kind, content, tx_id=name)).event_id)


async def fetch_event(client: AsyncClient, room: str, event: str) -> dict[str, Any] | None:
    """As it stands there; None: it is not there, or not for us.

    Raises:
        AdapterError: that is not known now.
    """
    with ERRORS.translated():
        try:
            return dict(expect(await client.room_get_event(room, event)).event.source)
        except MatrixError as error:
            if error.code in ("M_NOT_FOUND", "M_FORBIDDEN"):
                return None
            raise


async def take_buttons_away(client: AsyncClient, room: str, event: str) -> None:
    """The reactions of ours under a message."""
    path = f"/_matrix/client/v1/rooms/{quote(room, '')}/relations/{quote(event, '')}/m.annotation/m.reaction?limit=100"
    async with await get(client, path) as answer:
        found = (await answer.json())["chunk"]
    for one in found:
        if one["sender"] == client.user_id:
            expect(await client.room_redact(room, one["event_id"]))


async def get(client: AsyncClient, path: str) -> aiohttp.ClientResponse:
    """For what the library has no method, or one of earlier days.

    Raises:
        AdapterError: the homeserver does not give it.
    """
    answer: aiohttp.ClientResponse = await client.send(
        "GET", path, headers={"Authorization": f"Bearer {client.access_token}"}
    )
    if answer.status != 200:
        answer.release()
        raise AdapterError(f"the homeserver does not give it ({answer.status})")
    return answer
