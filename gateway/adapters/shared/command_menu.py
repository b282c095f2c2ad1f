"""The menu of commands, kept as the table is: hooks and plugins bring commands, and take them away, while we run.

Networks count how often a menu is shown, so what changes at once is shown at once, and what has not changed never.
"""

from collections.abc import Awaitable, Callable

import anyio

from gateway.dispatcher.commands import CommandTable
from gateway.hooks import HookRegistry

PAUSE = 2.0  # seconds in which hooks that are loaded together come together
LOOK_PAUSE = 60.0  # a hook that goes is told by no event


async def keep_menu_current(
    registry: HookRegistry, table: CommandTable, show: Callable[[], Awaitable[None]], pause: float = PAUSE
) -> None:
    """Show the menu now, and whenever the table is another one, until cancelled."""
    news = anyio.Event()
    remove = registry.watch("hook:loaded", lambda *_: news.set())
    shown: list[tuple[object, ...]] = []
    try:
        while True:
            if (now := list_menu_rows(table)) != shown:
                shown = now
                await show()
            with anyio.move_on_after(LOOK_PAUSE):
                await news.wait()
                await anyio.sleep(pause)
            news = anyio.Event()
    finally:
        remove()


def list_menu_rows(table: CommandTable) -> list[tuple[object, ...]]:
    """What people see of the table."""
    return [(one.name, one.summary, one.usage, one.rights, one.hidden) for one in table.values()]
