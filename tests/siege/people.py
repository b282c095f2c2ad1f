"""The people of a siege: each says numbers, and records these and the answers.

On the chat networks people say up to three things at once, whether somebody listens or not; at the terminal each says a
thing again until it is answered. Nothing here asks the gateway.
"""

import itertools
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from gateway.testing.networks.wire import Shown
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import TelegramWire
from tests.chaos.people import Typist
from tests.siege.model import NUMBER

EACH = 3  # people on every network, and at the terminal
GLANCE = 0.02
PATIENCE = 30.0
LAST_PATIENCE = 120.0  # when all harm is done
YOUNG = 10.0  # seconds in which a message may still be edited
QUESTION = re.compile("May I run")  # what is said next is its answer
APOLOGY = re.compile("Sorry: I tried|Something went wrong")


async def until(is_so: Callable[[], object]) -> None:
    """Wait for another process by polling."""
    while not is_so():  # noqa: ASYNC110
        await anyio.sleep(GLANCE)


@dataclass
class Person:
    """A person with a chat of their own."""

    wire: Any
    name: str
    said: list[str] = field(default_factory=list)

    def shown(self) -> list[Shown]:
        return [one for one in self.wire.shown if one.chat == self.name]


@dataclass
class Crowd:
    """All people; `seen` is the first display of each message, by its network and its id.

    If several gateways serve them, they use the terminals of the `others` too.
    """

    socket: Path
    seed: int
    others: tuple[Path, ...] = ()
    each: int = EACH
    is_over: bool = False
    answered: set[str] = field(default_factory=set)
    apologies: set[tuple[str, str]] = field(default_factory=set)
    seen: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wires: list[Any] = [TelegramWire(), DiscordWire(), SlackWire()]
        self.people = [Person(wire, str(1001 + number)) for wire in self.wires for number in range(self.each)]
        self.typists = [Typist(number, self.socket, self.others) for number in range(self.each)]
        self.typed: list[str] = []
        self.begun = anyio.Event()  # what Discord has of chats of which a bot never knew is not asked for
        self._numbers = (f"n{number:06}" for number in itertools.count(1))

    @property
    def environ(self) -> dict[str, str]:
        return {name: value for wire in self.wires for name, value in wire.environ.items()}

    @property
    def owners(self) -> dict[str, list[str]]:
        return {wire.network: [wire.known_as(str(1001 + number)) for number in range(self.each)] for wire in self.wires}

    def all_said(self) -> Iterator[str]:
        return itertools.chain(self.typed, *(person.said for person in self.people))

    def unanswered(self) -> set[str]:
        """List the messages without an answer or an apology."""
        excused = {number for person in self.people if self.has_apology(person) for number in person.said}
        told = {name for typist in self.typists for name in typist.answers}
        return set(self.all_said()) - self.answered - excused - told

    def has_apology(self, person: Person) -> bool:
        return any((person.wire.network, one.id) in self.apologies for one in person.shown())

    async def is_heard(self) -> None:
        """Wait until the gateway listens on every network, and everybody has had an answer."""
        telegram, discord, slack = self.wires
        await until(lambda: telegram.asked("getUpdates") and discord.sessions and slack.connections)
        self.begun.set()
        await until(lambda: all(self.answered.intersection(person.said) for person in self.people))

    async def talk(self) -> None:
        """Until `is_over`, and what was begun is answered or given up."""
        async with anyio.create_task_group() as watching:
            watching.start_soon(self._watch)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._leave, tasks.cancel_scope)
                for person in self.people:
                    tasks.start_soon(self._write, person)
                for typist in self.typists:
                    tasks.start_soon(self._type, typist)
            watching.cancel_scope.cancel()

    async def _write(self, person: Person) -> None:
        chance = random.Random(f"{person.wire.network}{person.name}{self.seed}")
        await self.begun.wait()
        while not self.is_over:
            burst = list(itertools.islice(self._numbers, chance.choice((1, 1, 2, 3))))
            for number in burst:
                person.said.append(number)
                await person.wire.write(f"please {number}", by=person.name)
            apologies = len(self.apologies)
            with anyio.move_on_after(PATIENCE):
                await until(partial(self._is_settled, burst, apologies))
            await anyio.sleep(chance.uniform(0.2, 1.0))

    async def _type(self, typist: Typist) -> None:
        chance = random.Random(f"{typist.session}{self.seed}")
        await self.begun.wait()
        while not self.is_over:
            number = next(self._numbers)
            self.typed.append(number)
            await typist.say(number, f"please {number}")
            self.answered |= set(NUMBER.findall(typist.answers[number]["reply"]))
            await anyio.sleep(chance.uniform(0.2, 1.0))

    async def _leave(self, scope: anyio.CancelScope) -> None:
        """Set a deadline once the siege is over, so that no person waits for ever."""
        await until(lambda: self.is_over)
        scope.deadline = anyio.current_time() + LAST_PATIENCE

    def _is_settled(self, burst: list[str], apologies: int) -> bool:
        return self.answered.issuperset(burst) or len(self.apologies) > apologies

    def look(self) -> None:
        """At what is shown by now."""
        for wire in self.wires:
            self._look_at(wire)

    async def _watch(self) -> None:
        while True:
            self.look()
            await anyio.sleep(GLANCE)

    def _look_at(self, wire: Any) -> None:
        """At the newest messages of a network, some of which may be edited still."""
        now = time.monotonic()
        for one in reversed(wire.shown):
            if now - self.seen.setdefault((wire.network, one.id), now) > YOUNG:
                break
            if APOLOGY.match(one.text):
                self.apologies.add((wire.network, one.id))
            if not QUESTION.search(one.text):
                self.answered |= set(NUMBER.findall(one.text))
