"""The menu of commands follows the table."""

from typing import Any

import anyio

from gateway.adapters.shared.adapter_host import keep_menu_current
from gateway.dispatcher.commands import Command, CommandResult, CommandTable
from gateway.hooks import HookRegistry
from tests.spine import until


async def answer(_call: Any) -> CommandResult:
    return CommandResult("as it was")


async def test_a_command_that_a_hook_brings_is_in_the_menu_at_once_and_nothing_is_shown_in_vain() -> None:
    brought: list[Command] = []
    table = CommandTable((Command("help", "what there is", answer),), lambda: brought)
    menus: list[list[str]] = []

    async def show() -> None:
        menus.append(list(table))

    async with HookRegistry() as registry, anyio.create_task_group() as tasks:
        tasks.start_soon(keep_menu_current, registry, table, show, 0.01)
        await until(lambda: menus == [["help"]], "the first menu")
        registry.emit("hook:loaded", hook="other", reason="loaded")
        await registry.settled()
        brought += [Command("weather", "how it will be", answer), Command("news", "what has been", answer)]
        for name in ("weather", "news"):
            registry.emit("hook:loaded", hook=name, reason="loaded")
        await until(lambda: len(menus) > 1, "the second menu")
        assert menus == [["help"], ["help", "weather", "news"]]
        brought.pop()
        registry.emit("hook:loaded", hook="weather", reason="reloaded")
        await until(lambda: menus[-1] == ["help", "weather"], "the third menu")
        assert len(menus) == 3
        tasks.cancel_scope.cancel()
