"""Only hooks that read the history, by name or with the event as a whole, get it; so it is with the tools on offer."""

import json

import pytest

from gateway.hooks import HookRegistry
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.workshop import Home
from tests.spine import until

pytestmark = pytest.mark.process

# Each says whether it was told; none has the word, but for the one that is to be told for that.
HANDLE = "def handle(event_type, context):\n    "
SAY = 'context["context"].append("{name} " + str({seen}))\n'
LOOK = '"mess" "ages" in context'
CASES = {
    "by-fields": (HANDLE + SAY.replace("{seen}", LOOK), False),
    "by-get": (HANDLE + SAY.replace("{seen}", 'bool(context.get("mess" "ages"))'), False),
    "marked": (
        'from gateway.hooks import on\n@on("agent:*")\nasync def look(context):\n    '
        + SAY.replace("{seen}", f"{LOOK} or not context.ask"),
        False,
    ),
    "has-the-word": (f"{HANDLE}# messages\n    " + SAY.replace("{seen}", LOOK), True),
    "puts-its-name-together": (HANDLE + SAY.replace("{seen}", 'bool(context.get("mess" + "ages"))'), True),
    "looks-at-all-fields": (HANDLE + SAY.replace("{seen}", '"mess" "ages" in [*context.keys()]'), True),
    "passes-it-on": (f"def look(at):\n    return bool(at)\n{HANDLE}{LOOK} and look(context)\n    {SAY}", True),
    "calls-it-otherwise": (f"{HANDLE}other = context\n    " + SAY.replace("{seen}", LOOK), True),
    "takes-what-there-is": (f"def handle(event_type, *given):\n    (context,) = given\n    {SAY}", True),
    "is-registered-by-a-call": (
        f"from gateway.hooks import on\ndef look(context):\n    {SAY}\nlook = on('agent:start')(look)\n",
        True,
    ),
    "is-no-function": (f"handle = lambda event_type, context: {SAY}", True),
}


async def test_only_hooks_that_may_read_the_history_get_it(home: Home) -> None:
    for name, (source, _) in CASES.items():
        code = source.replace("{name}", name).replace("{seen}", LOOK)
        home.plant(name, "intercepts: [agent:start]\n", code)
    registry, history = HookRegistry(), [{"role": "user", "content": "before"}]
    async with home.serving(registry):
        event = await registry.run("agent:start", message="hi", messages=history, context=[])
        told = {name: said == "True" for name, said in map(str.split, event["context"])}
    assert told == {name: is_told for name, (_, is_told) in CASES.items()}
    assert event["messages"] == history


async def test_the_journal_keeps_the_history_and_the_tools_only_for_a_durable_hook_that_reads_them(
    home: Home,
) -> None:
    durable = "events: ['llm:before', 'agent:end']\ndelivery: durable\n"
    registry, engine = HookRegistry(), MemoryEngine()
    fields = {"messages": ["before"], "tools": [{"name": "shell"}], "system": "be kind"}

    async def tell(turn: str) -> set[str]:
        """Which fields of the event the journal has."""
        await registry.run("llm:before", turn_id=turn, **fields)
        await registry.recorders.settled()
        found = await engine.read("gw.ev.llm.before")
        return set(json.loads(found[-1].data)["fields"]) & {*fields}

    home.plant("counts", durable, f"{HANDLE}context['id']\n")
    async with home.serving(registry, engine) as service:
        await until(lambda: registry.recorders.want("llm:before"))
        assert await tell("1") == {"system"}
        home.plant("sees", durable, f"{HANDLE}print(context.get('tools'))\n")
        await until(lambda: registry.scope({}).reads("llm:before", "tools"))
        assert await tell("2") == {"system", "tools"}
        (home.hooks / "sees" / "handler.py").write_text(f"{HANDLE}print(context)\n")
        await service.reload("sees")
        await until(lambda: registry.scope({}).reads("llm:before", "messages"))
        assert await tell("3") == {*fields}


async def test_nobody_builds_a_history_that_no_hook_reads(home: Home) -> None:
    registry = HookRegistry()
    home.plant("by-fields", "intercepts: [agent:start]\n", f"{HANDLE}context['message']\n")
    async with home.serving(registry) as service:
        view = registry.scope({})
        assert [view.reads("agent:start", field) for field in ("messages", "context")] == [False, True]
        home.plant("reads", "events: [agent:start]\n", f"{HANDLE}print(context['messages'])\n")
        await service.reload("reads")
        assert view.reads("agent:start", "messages")
