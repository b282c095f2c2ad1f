"""Telegram's updates, into the journal: a poll, each unit and the cursor behind it in one append, then the next poll.

Only the next poll lets Telegram forget, and it names what the journal has; so a crash at any moment loses nothing, and
what is fetched twice is taken once. Nothing of a stranger's is written or fetched.

A file that comes slowly holds up its own chat alone: others go on, while the cursor stays before the first unit that is
not done. Until it moves, each poll brings again what is under way, and that is passed over.
"""

import logging
from contextlib import AsyncExitStack
from functools import partial

import anyio
import anyio.abc
from telegram import Bot, MessageReactionUpdated, ReactionType, ReactionTypeCustomEmoji, ReactionTypeEmoji, Update

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.inbox import KeyedLock, add_files, add_network_message
from gateway.adapters.shared.incoming import make_reaction, read_or_skip
from gateway.adapters.shared.read_positions import ReadCursor
from gateway.adapters.telegram import buttons
from gateway.adapters.telegram.connection import PLATFORM
from gateway.adapters.telegram.files import fetch_file
from gateway.adapters.telegram.reader import TelegramIncoming, TelegramReader
from gateway.adapters.telegram.settings import TelegramSettings
from gateway.adapters.telegram.update_groups import UpdateGroup, group_updates
from gateway.engine import NewRecord
from gateway.messages import Address, Message

log = logging.getLogger(__name__)

POLL = 25  # seconds that Telegram holds a poll for which it has nothing
WINDOW = 0.4  # what belongs together comes within it
PAGE = 100
UPDATE_KINDS = (Update.MESSAGE, Update.EDITED_MESSAGE, Update.CALLBACK_QUERY, Update.MESSAGE_REACTION)


class TelegramReceiver:
    """Reads one bot's updates."""

    def __init__(self, bot: Bot, settings: TelegramSettings, context: AdapterContext, presence: Presence) -> None:
        self._bot = bot
        self._context = context
        self._presence = presence
        self._bot_id = str(bot.id)
        self._fetch = partial(fetch_file, bot=bot, folder=context.files / PLATFORM)
        self._reader = TelegramReader(bot.bot, settings)
        self._cursor = ReadCursor(context.parts.engine, PLATFORM, self._bot_id)
        self._next = 0
        self._under_way: list[UpdateGroup] = []
        self._seen: set[int] = set()
        self._one_done = anyio.Event()
        self._order = KeyedLock()
        self._journal = anyio.Lock()  # each append names the cursor's last move

    async def begin(self) -> None:
        """Take the cursor, and see that Telegram lets us read.

        Raises:
            TelegramError: it does not, for instance because somebody else reads.
        """
        await self._cursor.take()
        self._next = self._cursor.value
        await self._poll(0, limit=1)

    async def run(self) -> None:
        """Until cancelled.

        Raises:
            Conflict: another reader goes on where this one was.
            TelegramError: Telegram cannot be reached, or refuses.
        """
        async with anyio.create_task_group() as tasks:
            while True:
                if updates := await self._poll(POLL):
                    self._presence.received()
                    for unit in await self._whole(updates):
                        self._under_way.append(unit)
                        self._seen.update(update.update_id for update in unit.updates)
                        tasks.start_soon(self._take, unit, tasks)
                elif self._under_way:
                    await self._wait_for_one()

    async def _wait_for_one(self) -> None:
        """As long as something is under way, a poll brings it again instead of waiting for news."""
        self._one_done = anyio.Event()
        with anyio.move_on_after(WINDOW):
            await self._one_done.wait()

    async def _poll(self, seconds: int, limit: int = PAGE) -> list[Update]:
        updates = await self._bot.get_updates(
            offset=self._next or None, timeout=seconds, limit=limit, allowed_updates=UPDATE_KINDS
        )
        self._presence.answered()
        return [one for one in updates if one.update_id >= self._next and one.update_id not in self._seen]

    async def _whole(self, updates: list[Update]) -> list[UpdateGroup]:
        """What was fetched, and what belongs to the end of it and is still on its way: fetched again, not forgotten."""
        found = group_updates(updates)
        while found[-1].may_grow and len(updates) < PAGE:
            await anyio.sleep(WINDOW)
            again = await self._poll(0)
            if len(again) <= len(updates):
                break
            updates, found = again, group_updates(again)
        return found

    async def _take(self, unit: UpdateGroup, tasks: anyio.abc.TaskGroup) -> None:
        """One unit, behind those before it in its chat."""
        chat = unit.updates[0].effective_chat
        async with self._order.hold(str(chat.id) if chat else ""):
            if (reaction := unit.updates[0].message_reaction) is not None:
                await self._react(reaction)
            elif (arrival := read_or_skip(self._reader.read, unit.updates, f"update {unit.first}")) is not None:
                await self._receive(arrival, unit, tasks)
            self._next = self._after(unit)
            self._under_way.remove(unit)
            self._one_done.set()
            self._seen = {number for number in self._seen if number >= self._next}

    def _after(self, unit: UpdateGroup) -> int:
        """The first update that is not done when this unit is: what Telegram may be told to forget lies before it."""
        others = [one.first for one in self._under_way if one is not unit]
        return max(min(others, default=max(self._seen, default=unit.last) + 1), self._next)

    async def _receive(self, arrival: TelegramIncoming, unit: UpdateGroup, tasks: anyio.abc.TaskGroup) -> None:
        query = unit.updates[0].callback_query
        is_moving = False
        async with AsyncExitStack() as journal:

            async def complete(message: Message) -> tuple[Message, list[NewRecord]]:
                """The files first: while they come, other chats go on. Then one append after the other."""
                nonlocal is_moving
                message = await add_files(
                    add_network_message(message, arrival, self._context), arrival.files, self._fetch
                )
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
        """An anonymous reaction is nobody's, and so not told."""
        if update.user is None or update.user.is_bot:
            return
        address = Address(PLATFORM, str(update.chat.id), "dm" if update.chat.type == "private" else "group")
        before, after = names_of(update.old_reaction), names_of(update.new_reaction)
        who, under = str(update.user.id), str(update.message_id)
        message = make_reaction(address, who, under, added=after - before, removed=before - after)
        await self._context.receive(message, bot=self._bot_id)


def names_of(given: tuple[ReactionType, ...]) -> set[str]:
    """Emoji by themselves, others by their ids."""
    return {
        one.emoji if isinstance(one, ReactionTypeEmoji) else one.custom_emoji_id
        for one in given
        if isinstance(one, ReactionTypeEmoji | ReactionTypeCustomEmoji)
    }
