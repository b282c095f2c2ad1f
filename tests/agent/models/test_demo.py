"""The demo model does what it says, the same each time, and is honest about the rest."""

import re

import pytest

from gateway.agent.models.demo import DemoModel
from gateway.agent.models.demo_agent import make_demo_agent
from gateway.agent.toolbox.memory import FileMemory


@pytest.fixture
def demo(tmp_path):
    async def hooks():
        return "2 hooks: log, alert"

    return make_demo_agent(memory=FileMemory(tmp_path), hooks=hooks, model=DemoModel(0), tick=0.001)


async def used(stage):
    return [fields["tool"] for name, fields in stage.fired if name == "tool:before"]


@pytest.mark.parametrize(
    ("text", "tools", "reply"),
    [
        ("What time is it?", ["time"], r"It is \w+day, \d\d \w+ 20\d\d"),
        ("what is 12 * (3 + 4)?", ["calculate"], r"The result is 84\."),
        ("what is 2 ^ 10 and what time is it", ["time", "calculate"], r"It is .*\n.*1024"),
        ("which hooks are running", ["list_hooks"], "2 hooks: log, alert"),
        ("Read a skill", ["load_skill"], "Boil fresh water"),
        ("count to 3 slowly", ["count_slowly"], r"Counted to 3: 1, 2, 3\."),
        ("fail on purpose", ["fail_on_purpose"], "did not do it: this tool always fails, on purpose"),
        ("ask the helper to introduce itself", ["delegate"], "I am a sub-agent"),
        ("what is 1 / 0", ["calculate"], "did not do it: division by zero"),
        ("hello", [], "I am the demo model.*connects a real one"),
        ("help", [], "You can try:\n- what time is it"),
        ("write me a poem", [], "I am the demo model.*I do not know what to do with that"),
    ],
)
async def test_it_uses_the_tools_that_the_words_ask_for(stage, demo, text, tools, reply):
    result = await stage.play(demo, text)
    assert await used(stage) == tools
    assert re.search(reply, result.reply, re.DOTALL), result.reply
    assert "".join(stage.streamed) == result.reply


async def test_it_remembers_for_each_person_alone(stage, demo):
    ada, bob = {"platform": "terminal", "user_id": "ada"}, {"platform": "terminal", "user_id": "bob"}
    await stage.play(demo, "remember that my bicycle is green", facts=ada)
    assert "my bicycle is green" in (await stage.play(demo, "what do you remember?", facts=ada)).reply
    assert "Nothing is remembered" in (await stage.play(demo, "what do you remember?", facts=bob)).reply


async def test_it_is_deterministic_for_a_seed(stage, tmp_path):
    first = await stage.play(stage.agent(model=DemoModel(0, seed=1)), "hello")
    assert first.reply == (await stage.play(stage.agent(model=DemoModel(0, seed=1)), "hello")).reply


async def test_it_says_how_a_real_model_is_connected(stage):
    said = (await stage.play(stage.agent(model=DemoModel(0)), "hello")).reply
    assert "`hermes-gateway setup model`" in said
