"""One account at work: what is said in its rooms is taken, what is owed is sent, until it is cancelled.

The homeserver tells in one answer what is new in all rooms, and until when. Of a room in which much was said it tells
the end, and that there is more: that is fetched from behind, as far back as we have read.
"""

import logging
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
from nio import AsyncClient, SyncResponse

from gateway.adapters import Adapter, AdapterContext, AdapterError, AdapterHost, Attachment, Presence, fetch_file

from .connection import ERRORS, FILTER, connected, expect, get, take_buttons_away
from .reader import Event, MatrixFile, MatrixReader, address_of, gone_from
from .settings import MatrixSettings
from .transport import LARGEST, MatrixTransport

WAIT = 30_000  # milliseconds that the homeserver waits for something new
LONGEST_SYNC = 120.0  # seconds; the first one tells all rooms
PAGE = 100
MOST_MISSED = 5000  # events of one room
ENCRYPTED = "somebody wrote in an encrypted room, which cannot be read here: talk in one that is not ({})"

log = logging.getLogger(__name__)


class MatrixAdapter:
    """Fills `Adapter`."""

    def __init__(self, settings: MatrixSettings, context: AdapterContext) -> None:
        self._settings = settings
        self._context = context

    async def serve(self, presence: Presence) -> None:
        """Until cancelled.

        Raises:
            AdapterError: Matrix cannot be used now; the message says why, and what helps.
        """
        with ERRORS.translated():
            async with connected(self._settings) as client:
                await self._work(client, presence)

    async def _work(self, client: AsyncClient, presence: Presence) -> None:
        me = str(expect(await client.whoami()).user_id)
        client.user_id = me
        host: AdapterHost[MatrixFile] = AdapterHost(self._context, presence, me)
        receiver = MatrixReceiver(client, host, presence)
        transport = MatrixTransport(client, host, self._settings, presence)
        presence.probe = partial(probe, client)
        presence.way_in = f"write `!start {{code}}` to {me}, in a room with nobody else"
        since = await host.open_cursor()
        news = await sync(client, since, 0)
        async with host.sending(transport, transport.show_typing):
            while True:
                await receiver.take(news, since)
                since = news.next_batch
                await host.keep(since)
                presence.up(me)
                news = await sync(client, since, WAIT)


class MatrixReceiver:
    """Takes what is new."""

    def __init__(self, client: AsyncClient, host: AdapterHost[MatrixFile], presence: Presence) -> None:
        self._client = client
        self._host = host
        self._presence = presence
        self._reader = MatrixReader(client, host)
        self._entered: set[str] = set()  # rooms into which we went lately

    async def take(self, news: SyncResponse, since: str) -> None:
        """When this returns, all of it is in the journal. What was said before we ever listened is not for us."""
        async with anyio.create_task_group() as tasks:
            for room, info in news.rooms.join.items() if since else ():
                tasks.start_soon(self._take_room, room, info, since)
        for room in news.rooms.invite:
            with ERRORS.logged(log.warning, "an invitation to %s cannot be followed", room):
                expect(await self._client.join(room))
                self._entered.add(room)

    async def _take_room(self, room: str, info: Any, since: str) -> None:
        for event in await self._list_events(room, info.timeline, since):
            with self._presence.skipping("event", lambda: event):  # noqa: B023 - asked within the loop
                await self._take_event(room, event)
        self._entered.discard(room)

    async def _take_event(self, room: str, event: Event) -> None:
        if event["type"] == "m.room.encrypted":
            self._presence.complain(ENCRYPTED.format(room))
        if gone := gone_from(event):
            await self._host.delete(address_of(self._client.rooms[room], {}), gone, event["sender"])
        found = await self._reader.read(self._client.rooms[room], event)
        if found is None:
            return
        receipt = await self._host.take(found.incoming, self._fetch, found.asked)
        message = found.incoming.message
        is_pressed = message.kind == "button" and receipt.decision in ("settled", "queued") and not receipt.is_closed
        if is_pressed:
            with ERRORS.logged(log.info, "a button that was pressed looks as before"):
                await take_buttons_away(self._client, room, message.reply_to)

    async def _list_events(self, room: str, timeline: Any, since: str) -> list[Event]:
        """In their order; of a room into which we came, what was said since we were asked to."""
        events = [one.source for one in timeline.events]
        if timeline.limited and timeline.prev_batch:
            is_new = room in self._entered or any(self._is_mine(one, "join") for one in events)
            if not any(self._is_mine(one, "invite") for one in events):
                events = [*await self._fetch_missed(room, timeline.prev_batch, None if is_new else since), *events]
        asked = [number for number, one in enumerate(events) if self._is_mine(one, "invite")]
        return events[asked[-1] + 1 :] if asked else events

    async def _fetch_missed(self, room: str, start: str, end: str | None) -> list[Event]:
        """What lies between, or behind our invitation."""
        found, at = list[Event](), str(start)
        while at and len(found) < MOST_MISSED:
            page = expect(await self._client.room_messages(room, at, end, limit=PAGE))
            for one in page.chunk:
                found.append(one.source)
                if self._is_mine(one.source, "invite"):
                    return found[::-1]
            at = page.end if page.chunk else ""
        if at:
            log.warning("more than %s events were missed in %s; the older ones are left out", MOST_MISSED, room)
        return found[::-1]

    def _is_mine(self, event: Event, membership: str) -> bool:
        """Does it say this of us?"""
        is_member = event.get("type") == "m.room.member" and event.get("state_key") == self._client.user_id
        return is_member and event["content"].get("membership") == membership

    async def _fetch(self, file: MatrixFile, folder: Path) -> Attachment | str:
        return await fetch_file(file.about, file.event, folder, LARGEST, partial(self._download, file.place))

    async def _download(self, place: str) -> bytes:
        """No more than we take, whatever was said of its size."""
        server, _, media = place.removeprefix("mxc://").partition("/")
        data = bytearray()
        with ERRORS.translated():
            path = f"/_matrix/client/v1/media/download/{quote(server, '')}/{quote(media, '')}"
            async with await get(self._client, path) as answer:
                async for piece in answer.content.iter_chunked(65536):
                    data += piece
                    if len(data) > LARGEST:
                        raise AdapterError(f"it is larger than {LARGEST / 1e6:.0f} MB")
        return bytes(data)


async def sync(client: AsyncClient, since: str, wait: int) -> SyncResponse:
    """What is new; the first time with all that is known of the rooms."""
    with anyio.fail_after(LONGEST_SYNC):
        found: SyncResponse = expect(await client.sync(wait, FILTER, since or None, full_state=not client.next_batch))
    return found


async def probe(client: AsyncClient) -> None:
    with ERRORS.translated():
        expect(await client.whoami())


ADAPTER: type[Adapter] = MatrixAdapter
