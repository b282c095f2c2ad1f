"""A stage for turns: scripted model, the real hook registry, and a note of every event in its order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.agent import Agent, Model, Ports, Tool, run_turn, tool
from gateway.agent.models.script import ScriptModel, script
from gateway.agent.ports import TurnResult
from gateway.events import AskedCall, Event
from gateway.events.catalogue import get_event_spec
from gateway.hooks.registry import HookRegistry
from gateway.hooks.scope import HookScope
from gateway.messages.steps import Step
from gateway.messages.transcript import Entry


@dataclass
class Stage:
    """Plays turns. `fired` is every event as (name, fields after the hooks); `names` without the noisy ones.

    A hook that raises makes its operation fail, so that an assertion in one is not lost.
    """

    fired: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    calls: dict[str, tuple[AskedCall, ...]] = field(default_factory=dict)
    session: dict[str, Any] = field(default_factory=dict)
    hooks: HookRegistry = field(default_factory=HookRegistry)
    watching: bool = True
    turns: int = 0
    model: ScriptModel | None = None

    def __post_init__(self) -> None:
        self.scope = self.new_scope()

    @property
    def turn_id(self) -> str:
        return f"t{self.turns}"

    def new_scope(self) -> HookScope:
        """The registry as one run of a turn sees it, with bags of its own."""
        self.scope = self.hooks.scope({"turn_id": self.turn_id}, self.session, self.answers)
        return self.scope

    def on(self, *names: str, **options: Any) -> Callable[[Callable[[Event], Any]], Callable[[Event], Any]]:
        return self.hooks.on(names, **({"on_error": "raise"} | options))

    def wants(self, name: str) -> bool:
        return self.watching or self.scope.wants(name)

    def emit(self, name: str, /, **fields: Any) -> None:
        self.fired.append((name, fields))

    async def run(self, name: str, /, **fields: Any) -> Event:
        assert get_event_spec(name), f"{name} is not in the catalogue"
        seen: dict[str, Any] = dict(fields)
        try:
            event = await self.scope.run(name, **fields)
            seen = dict(event)
            return event
        finally:
            self.fired.append((name, seen))

    async def record(self, step: Step) -> None:
        self.steps.append(step)

    def ports(self, **more: Any) -> Ports:
        given: dict[str, Any] = {
            "turn_id": self.turn_id,
            "record": self.record,
            "delta": self.streamed.append,
            "answers": self.answers,
            "calls": self.calls,
            "changed_by": self.scope.changed_by,
        }
        given |= {"turn": self.scope.bags.turn, "session": self.session}
        return Ports(run=self.run, emit=self.emit, wants=self.wants, **(given | more))

    def agent(self, *turns: Any, tools: Sequence[Tool] = (), model: Model | None = None, **more: Any) -> Agent:
        if model is None:
            model = self.model = script(*turns)
        return Agent("main", model, tools=tuple(tools), **more)

    async def play(self, agent: Agent, text: str = "hi", history: Sequence[Entry] = (), **ports: Any) -> TurnResult:
        self.turns += 1
        self.calls.clear()
        return await self._run(agent, text, history, ports)

    async def again(self, agent: Agent, text: str = "hi", history: Sequence[Entry] = (), **ports: Any) -> TurnResult:
        """The same turn once more, with what was recorded of it; the note of events starts afresh."""
        self.fired.clear()
        return await self._run(agent, text, history, {"steps": tuple(self.steps), "resumed": True} | ports)

    async def answer(self, agent: Agent, message: Entry, **ports: Any) -> TurnResult:
        """A turn about a message that has more than its text."""
        self.new_scope()
        return await run_turn(agent, (), message, self.ports(**ports))

    async def _run(self, agent: Agent, text: str, history: Sequence[Entry], ports: dict[str, Any]) -> TurnResult:
        self.new_scope()
        return await run_turn(agent, history, Entry("user", text), self.ports(**ports))

    @property
    def names(self) -> list[str]:
        noisy = ("node:", "llm:chunk")
        return [name for name, _ in self.fired if not name.startswith(noisy)]

    def fields(self, name: str, place: int = 0) -> dict[str, Any]:
        """Return the fields of an event, the first time or the one at `place`."""
        return [fields for fired, fields in self.fired if fired == name][place]

    def sent(self, place: int = -1) -> Any:
        """The request that the model got."""
        assert self.model
        return self.model.requests[place]


@tool(repeatable=True)
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


WANTS_WEATHER = {"tool_calls": [{"name": "weather", "args": {"city": "Paris"}, "id": "w1"}]}
