"""The way of Telegram's updates into the journal: a poll, each group and the cursor in one append, the next poll.

Only the next poll lets Telegram forget, and it names what the journal has; so a crash at any moment loses nothing, and
an update that is fetched twice is taken once. A stranger's messages and files are neither stored nor downloaded.

An update that the library cannot parse keeps its place among the others, and is skipped when its turn comes.

A slow file holds up only its own chat: others go on, while the cursor stays before the first group that is not done.
Until it moves, each poll returns the groups in progress again, and they are ignored.
"""

import logging
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeAlias

import anyio
import anyio.abc
from telegram import Bot, MessageReactionUpdated, ReactionType, ReactionTypeCustomEmoji, ReactionTypeEmoji, Update

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.inbox import KeyedLock, add_files, add_network_message
from gateway.adapters.shared.incoming import check_message, make_reaction
from gateway.adapters.shared.read_positions import ReadCursor
from gateway.adapters.telegram import buttons
from gateway.adapters.telegram.connection import PLATFORM
from gateway.adapters.telegram.files import fetch_file
from gateway.adapters.telegram.reader import TelegramIncoming, TelegramReader
from gateway.adapters.telegram.update_groups import UpdateGroup, group_updates
from gateway.adapters.telegram.updates import UpdateSource
from gateway.engine.interface import NewRecord
from gateway.messages.message import Address, Message

log = logging.getLogger(__name__)

POLL = 15  # seconds that Telegram holds a poll without updates, at most
WINDOW = 0.4  # seconds within which the parts of one message come
SHORTEST_POLL = 1.0  # seconds: a server that holds no polls is not asked more often
PAGE = 100

RawUpdate: TypeAlias = Mapping[str, Any]


class TelegramReceiver:
    """The reader of one bot's updates from a source.

    `place`, beside the bot's id, names the cursor of a separate source.
    """

    def __init__(
        self, bot: Bot, context: AdapterContext, presence: Presence, source: UpdateSource, place: str = ""
    ) -> None:
        self._bot = bot
        self._context = context
        self._presence = presence
        self._bot_id = str(bot.id)
        self._fetch = partial(fetch_file, bot=bot)
        self._reader = TelegramReader(bot.bot, context)
        self._source = source
        self._cursor = ReadCursor(context.parts.engine, PLATFORM, f"{self._bot_id}{place}", 0)
        self._next = 0
        self._under_way: list[UpdateGroup] = []
        self._seen: set[int] = set()
        self._unreadable: dict[int, tuple[RawUpdate, Exception]] = {}
        self._one_done = anyio.Event()
        self._order = KeyedLock()
        self._journal = anyio.Lock()  # each append names the cursor's last move

    async def begin(self) -> None:
        """Take the cursor, and check that Telegram lets us read.

        Raises:
            TelegramError: it does not, for instance because another program reads.
        """
        await self._cursor.take()
        self._next = self._cursor.value
        await self._poll(0, limit=1)

    async def read_held(self) -> None:
        """Read the updates that the source has now, and no more."""
        async with anyio.create_task_group() as tasks:
            while await self._read(0, tasks) or self._under_way:
                if self._under_way:
                    await self._wait_for_one()

    async def run(self) -> None:
        """Read updates until cancelled.

        Raises:
            Conflict: another reader has taken over.
            TelegramError: Telegram cannot be reached, or refuses.
        """
        async with anyio.create_task_group() as tasks:
            while True:
                begun = time.monotonic()
                if await self._read(int(min(POLL, self._presence.certain_for())), tasks):
                    continue
                if self._under_way:
                    await self._wait_for_one()
                else:
                    await anyio.sleep(max(begun + SHORTEST_POLL - time.monotonic(), 0))

    async def _read(self, seconds: int, tasks: anyio.abc.TaskGroup) -> bool:
        """Begin to take the new updates; return False if there were none."""
        if not (updates := await self._poll(seconds)):
            return False
        self._presence.received()
        for unit in await self._whole(updates):
            self._under_way.append(unit)
            self._seen.update(update.update_id for update in unit.updates)
            tasks.start_soon(self._take, unit, tasks)
        return True

    async def _wait_for_one(self) -> None:
        """Wait for one group to be done: until then, a poll returns it again instead of waiting for news."""
        self._one_done = anyio.Event()
        with anyio.move_on_after(WINDOW):
            await self._one_done.wait()

    async def _poll(self, seconds: int, limit: int = PAGE) -> list[Update]:
        found = await self._source.fetch(self._next, seconds, limit)
        return [update for raw in found if (update := self._build(raw)) is not None]

    def _build(self, raw: Any) -> Update | None:
        """Return the update, if it is new; one that cannot be parsed has only its number."""
        number = raw.get("update_id") if isinstance(raw, Mapping) else None
        if type(number) is not int:
            self._presence.skip("update", lambda: raw, ValueError("it has no update_id"))
            return None
        if number < self._next or number in self._seen:
            return None
        try:
            update = Update.de_json(raw, self._bot)
            UpdateGroup([update]).takes(update)  # grouping looks at all updates at once
            return update
        except Exception as error:  # noqa: BLE001 - the library raises anything, where a field is not what it was
            self._unreadable[number] = (raw, error)
            return Update(number)

    async def _whole(self, updates: list[Update]) -> list[UpdateGroup]:
        """Group the fetched updates, and fetch again while the rest of the last group is on its way."""
        found = group_updates(updates)
        while found[-1].may_grow and len(updates) < PAGE:
            await anyio.sleep(WINDOW)
            again = await self._poll(0)
            if len(again) <= len(updates):
                break
            updates, found = again, group_updates(again)
        return found

    async def _take(self, unit: UpdateGroup, tasks: anyio.abc.TaskGroup) -> None:
        """Take one group, after those before it in its chat."""
        chat = unit.updates[0].effective_chat
        async with self._order.hold(str(chat.id) if chat else ""):
            if (unreadable := self._unreadable.pop(unit.first, None)) is not None:
                raw, error = unreadable
                self._presence.skip("update", lambda: raw, error)
                async with self._journal:
                    await self._cursor.move(self._after(unit))
            with self._presence.skipping("update", lambda: [one.to_dict() for one in unit.updates]):
                await self._settle(unit, tasks)
            self._next = self._after(unit)
            self._under_way.remove(unit)
            self._one_done.set()
            self._seen = {number for number in self._seen if number >= self._next}

    async def _settle(self, unit: UpdateGroup, tasks: anyio.abc.TaskGroup) -> None:
        if (reaction := unit.updates[0].message_reaction) is not None:
            await self._react(reaction)
        elif (arrival := self._reader.read(unit.updates)) is not None:
            check_message(arrival.message)
            if arrival.message.is_overheard:
                await self._context.receive(arrival.message, bot=self._bot_id)
            else:
                await self._receive(arrival, unit, tasks)

    def _after(self, unit: UpdateGroup) -> int:
        """Return the first update that is not done once this group is: Telegram may forget all before it."""
        others = [one.first for one in self._under_way if one is not unit]
        return max(min(others, default=max(self._seen, default=unit.last) + 1), self._next)

    async def _receive(self, arrival: TelegramIncoming, unit: UpdateGroup, tasks: anyio.abc.TaskGroup) -> None:
        query = unit.updates[0].callback_query
        is_moving = False
        async with AsyncExitStack() as journal:

            async def complete(message: Message) -> tuple[Message, list[NewRecord]]:
                """Add the files first, so that other chats go on meanwhile; then make one append after the other."""
                nonlocal is_moving
                full = add_network_message(message, arrival, self._context)
                message = await add_files(full, arrival, self._fetch, self._context)
                await journal.enter_async_context(self._journal)
                is_moving = True
                return message, [self._cursor.put(self._after(unit))]

            asked = buttons.find_asked_user(query) if query else ""
            receipt = await self._context.receive(arrival.message, bot=self._bot_id, asked=asked, complete=complete)
            if query is not None:
                tasks.start_soon(buttons.answer_press, self._bot, query, receipt)
            if is_moving:
                await self._cursor.settle(self._after(unit))

    async def _react(self, update: MessageReactionUpdated) -> None:
        """Take a reaction; an anonymous one has no person, and is ignored."""
        if update.user is None or update.user.is_bot:
            return
        address = Address(PLATFORM, str(update.chat.id), "dm" if update.chat.type == "private" else "group")
        before, after = names_of(update.old_reaction), names_of(update.new_reaction)
        who, under = str(update.user.id), str(update.message_id)
        message = make_reaction(address, who, under, added=after - before, removed=before - after)
        await self._context.receive(message, bot=self._bot_id)


def names_of(given: tuple[ReactionType, ...]) -> set[str]:
    """Return the emoji of reactions, and the ids of custom ones."""
    return {
        one.emoji if isinstance(one, ReactionTypeEmoji) else one.custom_emoji_id
        for one in given
        if isinstance(one, ReactionTypeEmoji | ReactionTypeCustomEmoji)
    }
