"""A stage for turns: scripted model, hooks that fill the ports' protocol, and a note of every event in its order."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.agent import Agent, Model, Ports, Tool, TurnResult, run_turn, tool
from gateway.agent.models.script import ScriptModel, script
from gateway.catalogue import point
from gateway.events import OUTCOMES, Bags, Deny, End, Event, Pause, Question, Retry, outcome_from
from gateway.records import Step
from gateway.transcript import Entry


@dataclass
class Stage:
    """Plays turns. `told` is every event as (name, fields after the hooks); `names` without the noisy ones."""

    bags: Bags = field(default_factory=lambda: Bags(answers={}))
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    hooks: dict[str, list[Callable[[Event], Any]]] = field(default_factory=dict)
    watching: bool = True
    model: ScriptModel | None = None

    def on(self, *names: str) -> Callable[[Callable[[Event], Any]], Callable[[Event], Any]]:
        def add(function: Callable[[Event], Any]) -> Callable[[Event], Any]:
            for name in names:
                self.hooks.setdefault(name, []).append(function)
            return function

        return add

    def wants(self, name: str) -> bool:
        return self.watching or name in self.hooks

    def emit(self, name: str, /, **fields: Any) -> None:
        self.told.append((name, fields))

    async def run(self, name: str, /, **fields: Any) -> Event:
        known = point(name)
        assert known, f"{name} is not in the catalogue"
        event = Event(name, fields, writable=known.writable, bags=self.bags)
        questions: list[Question] = []
        try:
            for hook in self.hooks.get(name, ()):
                event.hook = hook.__name__
                try:
                    answer = await answer_of(hook, event)
                except Pause as pause:
                    questions += pause.questions
                    continue
                if take(event, answer):
                    break
        finally:
            self.told.append((name, dict(event)))
        if questions:
            raise Pause(tuple(questions))
        if event.outcome is not None and event.outcome.decision not in known.outcomes:
            event.outcome = None
        return event

    async def record(self, step: Step) -> None:
        self.steps.append(step)

    def ports(self, **more: Any) -> Ports:
        given = {"turn_id": "t", "record": self.record, "delta": self.streamed.append, "answers": self.bags.answers}
        given |= {"turn": self.bags.turn, "session": self.bags.session}
        return Ports(run=self.run, emit=self.emit, wants=self.wants, **(given | more))

    def agent(self, *turns: Any, tools: Sequence[Tool] = (), model: Model | None = None, **more: Any) -> Agent:
        if model is None:
            model = self.model = script(*turns)
        return Agent("main", model, tools=tuple(tools), **more)

    async def play(self, agent: Agent, text: str = "hi", history: Sequence[Entry] = (), **ports: Any) -> TurnResult:
        return await run_turn(agent, history, Entry("user", text), self.ports(**ports))

    async def again(self, agent: Agent, text: str = "hi", history: Sequence[Entry] = (), **ports: Any) -> TurnResult:
        """The same turn once more, with what was recorded of it; the note of events starts afresh."""
        self.told.clear()
        return await self.play(agent, text, history, steps=tuple(self.steps), **({"resumed": True} | ports))

    @property
    def names(self) -> list[str]:
        noisy = ("node:", "llm:chunk")
        return [name for name, _ in self.told if not name.startswith(noisy)]

    def fields(self, name: str, place: int = 0) -> dict[str, Any]:
        """What an event was, the first time or the one at `place`."""
        return [fields for told, fields in self.told if told == name][place]

    def sent(self, place: int = -1) -> Any:
        """The request that the model got."""
        assert self.model
        return self.model.requests[place]


async def answer_of(hook: Callable[[Event], Any], event: Event) -> Any:
    try:
        answer = hook(event)
        return outcome_from(await answer if inspect.isawaitable(answer) else answer)
    except OUTCOMES as raised:
        return raised


def take(event: Event, answer: Any) -> bool:
    """Apply a hook's answer; is it the last word?"""
    if isinstance(answer, Mapping):
        event.update(answer)
    elif isinstance(answer, Deny) and answer.soft:
        before = event.outcome.text if isinstance(event.outcome, Deny) else ""
        event.outcome = Deny("\n".join(filter(None, (before, answer.text))), soft=True)
    elif isinstance(answer, End | Deny | Retry):
        event.outcome = answer
        return not isinstance(answer, Retry)
    return False


@pytest.fixture
def stage() -> Stage:
    return Stage()


@tool(repeatable=True)
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"18 degrees in {city}"


@pytest.fixture
def call_weather() -> dict[str, Any]:
    return {"tool_calls": [{"name": "weather", "args": {"city": "Paris"}, "id": "w1"}]}


@pytest.fixture
def weather_tool() -> Tool:
    return weather
