"""The scripted model plays its script, and says clearly where a script is wrong or has no more to say."""

import pytest

from gateway.agent.models.script import read_script, script
from gateway.errors import ConfigError


async def said(stage, *texts):
    return [(await stage.play(stage.agent(model=stage.model), text)).reply for text in texts]


@pytest.mark.row("EDG-67")
async def test_turns_are_said_in_order_or_by_what_the_person_says(stage):
    stage.model = script("one", {"user": "WEATHER", "text": "It rains."}, "two")
    assert await said(stage, "a", "the weather?", "b", "Weather again?") == ["one", "It rains.", "two", "It rains."]


async def test_the_answers_of_a_turn_follow_its_tool_results(stage, tmp_path, weather_tool):
    path = tmp_path / "script.yaml"
    path.write_text(
        "turns:\n"
        "  - user: weather\n"
        "    answers:\n"
        "      - tool_calls: [{name: weather, args: {city: Paris}}]\n"
        "      - text: It is warm.\n"
    )
    stage.model = read_script(path)
    result = await stage.play(stage.agent(model=stage.model, tools=[weather_tool]), "weather in Paris")
    assert [entry.content for entry in result.entries] == ["weather in Paris", "", "18 degrees in Paris", "It is warm."]


async def test_chunks_stream_with_their_delay_and_errors_come_after_what_was_said(stage, tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text("turns:\n  - chunks: [a, b]\n    delay: 1ms\n    error: {kind: network, message: cut}\n")
    stage.model = read_script(path)
    result = await stage.play(stage.agent(model=stage.model))
    assert (stage.streamed, result.status, result.error) == (["a", "b"], "failed", "cut")


async def test_a_script_without_an_answer_says_so_with_its_file(stage, tmp_path):
    path = tmp_path / "script.yaml"
    path.write_text("turns:\n  - text: only one\n")
    stage.model = read_script(path)
    await stage.play(stage.agent(model=stage.model))
    result = await stage.play(stage.agent(model=stage.model), "and now?")
    assert result.error == f"{path} has nothing more to say; the question was 'and now?'"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("turns:\n  - txet: hello\n", ":2:5"),
        ("turns: hello\n", ":1:8"),
        ("turns:\n  - text: a\n    delay: soon\n", ":3:12"),
        ("turn: []\n", ":1:1"),
    ],
)
def test_a_faulty_script_is_refused_with_the_place(tmp_path, text, place):
    path = tmp_path / "script.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"script.yaml{place}"):
        read_script(path)
