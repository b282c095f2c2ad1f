"""Commands as people type them: found in the table, shown to the hooks, run."""

import dataclasses

from gateway.access import Scope
from gateway.commands import Command, Typed, typed
from gateway.dispatcher.house import House
from gateway.dispatcher.speech import place_fields
from gateway.dispatcher.verbs import IN_LANE, Call, Ran, Urgent
from gateway.errors import SessionError
from gateway.events.event import Deny
from gateway.hooks import Scope as HookScope
from gateway.lanes import Lanes


class Orders:
    """Finds and runs commands."""

    def __init__(self, house: House, lanes: Lanes) -> None:
        self._house = house
        self._urgent = Urgent(lanes)

    def find(self, text: str, scope: Scope) -> tuple[Typed, Command] | None:
        """The command in a text, if there is one that this person may use."""
        word = typed(text)
        command = self._house.commands.get(word.word) if word else None
        if word is None or command is None:
            return None
        allowed = self._house.access.may_use(command.name, scope, for_admins=command.admin)
        return (word, command) if allowed else None

    def unknown(self, word: Typed) -> str:
        near = self._house.commands.closest(word.word)
        return f"There is no command /{word.word} for you here. " + (f"/{near}?" if near else "/help lists them.")

    async def run(self, call: Call, command: Command, view: HookScope) -> Ran:
        """A command as its hooks let it be; one that they put in its place fires none again, but must be allowed."""
        event = await view.run(
            f"command:{command.name}",
            command=command.name,
            raw_command=call.typed.word,
            args=call.args,
            raw_args=call.args,
        )
        if isinstance(event.outcome, Deny):
            return Ran(event.outcome.text or f"/{command.name} was refused by a hook.")
        if event.get("result") is not None:
            return Ran(str(event["result"]))
        other = self.find(f"/{event['command']} {event['args']}", call.scope)
        if other is None:
            return Ran(f"/{command.name} became /{event['command']}, which cannot be run here.")
        return await self._run_verb(dataclasses.replace(call, typed=other[0]), other[1])

    async def _run_verb(self, call: Call, command: Command) -> Ran:
        if command.run:
            return Ran(await command.run(call.args, place_fields(call.message, call.scope, call.session)))
        verb = self._urgent.table.get(command.name) or IN_LANE[command.name]
        try:
            return await verb(call)
        except SessionError as error:
            return Ran(str(error))
