"""Commands as people type them: found in the table, shown to the hooks, run."""

import dataclasses

from gateway.access import AccessLevel
from gateway.commands import Command, ParsedCommand, parse_command
from gateway.dispatcher.chat_commands import LANE_COMMANDS, CommandCall, CommandResult, UrgentCommands
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.event_fields import build_place_fields
from gateway.errors import SessionError
from gateway.events import Deny
from gateway.hooks import HookScope
from gateway.lanes import Lanes


class CommandRunner:
    """Finds and runs commands."""

    def __init__(self, house: DispatcherContext, lanes: Lanes) -> None:
        self._house = house
        self._urgent = UrgentCommands(lanes)

    def find(self, text: str, scope: AccessLevel) -> tuple[ParsedCommand, Command] | None:
        """The command in a text, if there is one that this person may use."""
        word = parse_command(text)
        command = self._house.commands.get(word.word) if word else None
        if word is None or command is None:
            return None
        allowed = self._house.access.may_use(command.name, scope, for_admins=command.admin)
        return (word, command) if allowed else None

    def unknown(self, word: ParsedCommand) -> str:
        near = self._house.commands.closest(word.word)
        return f"There is no command /{word.word} for you here. " + (f"/{near}?" if near else "/help lists them.")

    async def run(self, call: CommandCall, command: Command, view: HookScope) -> CommandResult:
        """A command as its hooks let it be; one that they put in its place fires none again, but must be allowed."""
        event = await view.run(
            f"command:{command.name}",
            command=command.name,
            raw_command=call.typed.word,
            args=call.args,
            raw_args=call.args,
        )
        if isinstance(event.outcome, Deny):
            return CommandResult(event.outcome.text or f"/{command.name} was refused by a hook.")
        if event.get("result") is not None:
            return CommandResult(str(event["result"]))
        other = self.find(f"/{event['command']} {event['args']}", call.scope)
        if other is None:
            return CommandResult(f"/{command.name} became /{event['command']}, which cannot be run here.")
        return await self._run_verb(dataclasses.replace(call, typed=other[0]), other[1])

    async def _run_verb(self, call: CommandCall, command: Command) -> CommandResult:
        if command.run:
            return CommandResult(
                await command.run(call.args, build_place_fields(call.message, call.scope, call.session))
            )
        verb = self._urgent.table.get(command.name) or LANE_COMMANDS[command.name]
        try:
            return await verb(call)
        except SessionError as error:
            return CommandResult(str(error))
