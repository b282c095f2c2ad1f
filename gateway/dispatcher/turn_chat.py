"""The conversation of a turn, for the tools that speak in it: each word once, however often the turn runs."""

from collections.abc import Sequence

from gateway import records
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.reminders import Reminder, Reminders
from gateway.errors import AgentError
from gateway.lanes import LaneTurn
from gateway.messages import Address, Message, Reply

HOME = "home"


class TurnChat:
    """What is said belongs to the turn's step: it is in the journal, and follows the order of the chat."""

    def __init__(self, turn: LaneTurn, message: Message, house: DispatcherContext, reminders: Reminders) -> None:
        self._turn = turn
        self._message = message
        self._house = house
        self._reminders = reminders

    async def say(self, text: str, to: str, key: str) -> str:
        """Say it here, or there. AgentError: there is no such place."""
        address = self._place(to) if to else self._message.address
        await self._turn.say(Reply(f"{self._turn.turn_id}:say:{key}", address, text))
        return "It is being sent."

    async def remind(self, text: str, at: float, key: str) -> str:
        number = records.token_of(f"{self._turn.turn_id}/{key}")[:6]
        key_, address = self._turn.session.key, self._message.address
        await self._reminders.add(Reminder(number, at, text, key_, address, self._message.user_id))
        return number

    async def list_reminders(self) -> Sequence[tuple[str, float, str]]:
        return [(one.id, one.at, one.text) for one in await self._reminders.of(self._turn.session.key)]

    async def forget(self, number: str) -> bool:
        return await self._reminders.remove(self._turn.session.key, number)

    def _place(self, to: str) -> Address:
        about = self._house.reports.about()
        platform, _, rest = to.partition(":")
        chat, _, thread = rest.partition(":")
        if not chat:
            found = about.home_of("" if platform == HOME else platform)
            if found is None:
                raise AgentError(f"{to!r} has no home channel; write platform:chat")
            return Address(found.name, found.home_channel)
        served = {one.name for one in about.networks if one.served} | {self._message.address.platform}
        if platform not in served:
            raise AgentError(f"{platform[:60]!r} is not served here; served: {', '.join(sorted(served))}")
        return Address(platform, chat, thread_id=thread)
