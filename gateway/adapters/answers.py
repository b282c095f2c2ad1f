"""The answers of the terminal to people who type there."""

from gateway.adapters.terminal import SayResult, Terminal
from gateway.adapters.verbs import SayRequest, ShowRequest
from gateway.verbs import Notify


async def chat_say(terminal: Terminal, params: SayRequest, notify: Notify) -> SayResult:
    return await terminal.say(params, notify)


async def chat_show(terminal: Terminal, params: ShowRequest, notify: Notify) -> SayResult:
    return await terminal.show(params, notify)
