"""The services for an adapter that every one of them needs: taking messages, keeping the cursor, sending replies.

The author of an adapter sees no record of the journal. A cursor is a text of the network's, kept and not read. Only one
of all gateways with one journal reads for a bot at a time: the one that opened its cursor last.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Generic

import anyio
import anyio.abc

from gateway.adapters.shared.adapter import AdapterContext, Presence
from gateway.adapters.shared.inbox import FetchFile, add_files, add_network_message
from gateway.adapters.shared.incoming import FileT, IncomingMessage, RecentMessages, check_message
from gateway.adapters.shared.read_positions import ReadCursor
from gateway.adapters.shared.typing_indicator import ShowTyping, TypingIndicator
from gateway.dispatcher.commands import CommandTable
from gateway.engine.interface import NewRecord, append_until_written
from gateway.errors import AdapterError, Conflict
from gateway.hooks import HookRegistry
from gateway.messages.message import Address, Message, Receipt
from gateway.messages.pieces import MessageName
from gateway.outbox.interface import Transport

TYPING_PAUSE = 5.0
MENU_PAUSE = 2.0  # seconds to wait for hooks that are loaded together
MENU_LOOK_PAUSE = 60.0  # the removal of a hook causes no event
OTHER_READER = "another gateway with the same journal reads for this bot"


class AdapterHost(Generic[FileT]):
    """The services for one connected bot. `recent` knows the authors of the last messages."""

    def __init__(self, context: AdapterContext, presence: Presence, bot: str) -> None:
        self.recent = RecentMessages()
        self._context = context
        self._presence = presence
        self._bot = bot
        self._cursor = ReadCursor(context.parts.engine, presence.name.partition(":")[0], bot, "")

    @property
    def commands(self) -> CommandTable:
        """The commands that people may use, for a menu of them."""
        return self._context.parts.commands

    def is_command(self, text: str) -> bool:
        """Return True if a text is a command of ours, and does not only begin like one."""
        return self._context.is_command(text)

    def is_for_us(self, address: Address, *, is_called: bool, is_command: bool) -> bool:
        """Return True if a message is answered there, by the rules of its chat."""
        return self._context.is_for_us(address, is_called=is_called, is_command=is_command)

    def is_heard(self, address: Address) -> bool:
        """Return True if other messages are to be taken there as overheard, by the rules of the chat."""
        return self._context.is_heard(address)

    async def open_cursor(self) -> str:
        """Return the last kept cursor, "" at first; every other reader stops.

        Raises:
            AdapterError: another gateway did the same at this moment.
        """
        try:
            await self._cursor.take()
        except Conflict:
            raise AdapterError(OTHER_READER) from None
        return self._cursor.value

    async def keep(self, cursor: str) -> None:
        """Store the cursor: all messages up to it are taken, and need not be read again.

        Raises:
            AdapterError: another gateway has taken over.
        """
        self._presence.answered()
        if cursor == self._cursor.value:
            return
        try:
            await self._cursor.move(cursor)
        except Conflict:
            raise AdapterError(OTHER_READER) from None

    async def take(
        self, incoming: IncomingMessage[FileT], fetch: FetchFile[FileT] | None = None, asked: str = ""
    ) -> Receipt:
        """Take a message; after that it is in the journal or settled, and only then may the network forget it.

        The same message may be taken again, without effect. `fetch` gets the files of people with access; `asked` is
        the person for whom a pressed button was meant.

        Raises:
            EngineError: the journal takes no appends now; the network must keep the message.
        """
        message = check_message(incoming.message)
        self._presence.received()

        async def complete(message: Message) -> tuple[Message, tuple[NewRecord, ...]]:
            self.recent.note(message)
            message = add_network_message(message, incoming, self._context)
            if fetch is not None and (incoming.files or incoming.quoted or incoming.find_quoted):
                message = await add_files(message, incoming, fetch, self._context)
            return message, ()

        if message.is_overheard:
            return await self._context.receive(message, bot=self._bot)
        return await self._context.receive(message, bot=self._bot, asked=asked, complete=complete)

    async def delete(self, address: Address, message_id: str, user_id: str = "") -> None:
        """Delete a message that its author took back; `user_id` is the author's, if the network names it."""
        name = MessageName(address.platform, address.chat_id, message_id)
        by = f"{address.platform}:{user_id}" if user_id else ""
        await append_until_written(partial(self._context.delete, name, by), "what was taken back")

    @asynccontextmanager
    async def sending(
        self,
        transport: Transport,
        show_typing: ShowTyping | None = None,
        typing_pause: float = TYPING_PAUSE,
        show_menu: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncIterator[None]:
        """Send the bot's pending replies inside the block.

        A sign of `show_typing` lasts for `typing_pause` seconds; `show_menu` is called now, and whenever `commands`
        have changed.
        """
        async with anyio.create_task_group() as tasks:
            await begin_transport(tasks, self._context, transport, show_typing, typing_pause, show_menu=show_menu)
            yield
            tasks.cancel_scope.cancel()


async def begin_transport(
    tasks: anyio.abc.TaskGroup,
    context: AdapterContext,
    transport: Transport,
    show_typing: ShowTyping | None,
    typing_pause: float,
    hide_typing: ShowTyping | None = None,
    show_menu: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Send the pending replies of this bot, and keep its signs and its menu, until the tasks are cancelled."""
    parts = context.parts
    await tasks.start(parts.outbox.serve_platform, transport)
    if show_typing is not None:
        name, rules, outbox = context.served_as, parts.chats, parts.outbox
        sign = TypingIndicator(name, show_typing, typing_pause, rules.find_display, outbox.shows_words, hide_typing)
        await tasks.start(sign.run, parts.engine)
    if show_menu is not None:
        tasks.start_soon(keep_menu_current, parts.registry, parts.commands, show_menu)


async def keep_menu_current(
    registry: HookRegistry, table: CommandTable, show: Callable[[], Awaitable[None]], pause: float = MENU_PAUSE
) -> None:
    """Show the menu of commands now, and again whenever the table has changed, until cancelled.

    Hooks and plugins add and remove commands while the gateway runs. A network limits how often a menu is shown, so
    several changes at once are shown together, and an unchanged menu is not shown again.
    """
    news = anyio.Event()
    remove = registry.watch("hook:loaded", lambda *_: news.set())
    shown: Sequence[tuple[object, ...]] = []
    try:
        while True:
            if (now := [(one.name, one.summary, one.usage, one.rights, one.hidden) for one in table.values()]) != shown:
                shown = now
                await show()
            with anyio.move_on_after(MENU_LOOK_PAUSE):
                await news.wait()
                await anyio.sleep(pause)
            news = anyio.Event()
    finally:
        remove()
