"""The sources of Telegram's updates: polls, or Telegram's calls to the port.

A call is stored in the journal before it is acknowledged, and read from there like a poll: so the parts of a message
are grouped, and a slow file holds up only its own chat, in both ways. An update's number is its place in the journal,
since calls may arrive in another order than that of their own numbers.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import anyio
import msgspec
from telegram import Bot, Update

from gateway.adapters.shared.adapter import Presence
from gateway.adapters.telegram.connection import PLATFORM
from gateway.engine.interface import Engine, NewRecord, SettledRecords
from gateway.errors import AdapterError, Duplicate
from gateway.records import records, subjects

ANSWER = 10.0  # seconds for the answer to a poll, beside its own: a connection that is silent for longer is frozen
REPEATS = 3600.0  # seconds for which a repeated call is recognized after it was read
UPDATE_KINDS = (Update.MESSAGE, Update.EDITED_MESSAGE, Update.CALLBACK_QUERY, Update.MESSAGE_REACTION)


class FetchedUpdates(msgspec.Struct, eq=False):
    """The updates that Telegram returns to polls."""

    _bot: Bot
    _presence: Presence

    async def fetch(self, offset: int, seconds: int, limit: int) -> list[Any]:
        asked = {"offset": offset or None, "timeout": seconds, "limit": limit, "allowed_updates": UPDATE_KINDS}
        found = await self._bot.do_api_request("getUpdates", asked, read_timeout=ANSWER + seconds)
        if not isinstance(found, list):
            raise AdapterError("what answers polls here is not a Bot API server: it sends no list of updates")
        self._presence.answered()
        return found


class PendingUpdates:
    """The updates of one bot that Telegram's calls brought."""

    def __init__(self, engine: Engine, bot: str) -> None:
        self._engine = engine
        self._bot = bot
        self._subject = subjects.update_subject_of(PLATFORM, bot)
        self._news = anyio.Event()
        self._settled = 0

    async def hold(self, update: Mapping[str, Any]) -> None:
        """Write an update to the journal, unless it is there already.

        Raises:
            EngineError: the journal takes no appends now.
        """
        kept = records.PendingUpdate(platform=PLATFORM, update=dict(update), person=find_person(update))
        name = f"{self._subject}:{update['update_id']}"
        try:
            await self._engine.append(NewRecord(self._subject, records.encode(kept), msg_id=name))
        except Duplicate:
            return
        self._news.set()

    async def fetch(self, offset: int, seconds: int, limit: int) -> list[Any]:
        await self._settle(offset - 1)
        news = self._news = anyio.Event()
        if not (found := await self._read(offset, limit)) and seconds:
            with anyio.move_on_after(seconds):
                await news.wait()
            found = await self._read(offset, limit)
        return found

    async def _read(self, offset: int, limit: int) -> list[Any]:
        found = await records.read_readable(self._engine, self._subject, max(offset - 1, self._settled), limit)
        kept = [(record.seq, records.decode(record.data)) for record in found]
        return [{**one.update, "update_id": seq} for seq, one in kept if isinstance(one, records.PendingUpdate)]

    async def _settle(self, upto: int) -> None:
        if upto > self._settled:
            self._settled = upto
            await self._engine.append(settled=(SettledRecords(self._subject, upto, REPEATS),))


def find_person(update: Mapping[str, Any]) -> str:
    """Return the author of an update, as `telegram:1002`; "" if it has none."""
    for kind in UPDATE_KINDS:
        about = update.get(kind)
        if isinstance(about, Mapping):
            who = about.get("from") or about.get("user")
            if isinstance(who, Mapping) and type(who.get("id")) is int:
                return f"{PLATFORM}:{who['id']}"
    return ""


UpdateSource: TypeAlias = FetchedUpdates | PendingUpdates
"""A source of updates as Telegram wrote them, in their order."""
