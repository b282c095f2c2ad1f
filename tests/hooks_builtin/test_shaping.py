"""The hooks that change what the model sees and says."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.agent import tool
from gateway.agent.toolbox.memory import FileMemory, digest_of_owner
from gateway.messages.transcript import Entry
from gateway.testing import GatewayProcess

FOR_SMALL = ("loop-detector", "echoed-payload", "schema-retry")


def calling(name, id_="c", **args):
    return {"tool_calls": [{"name": name, "args": args, "id": id_}]}


def giving(value, name="give"):
    async def give() -> Any:
        return value

    give.__doc__ = "Give something."
    return tool(name=name)(give)


@pytest.mark.row("EDG-44")
@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("x" * 50, "x" * 20 + "... [30 characters cut]"),
        ("short", "short"),
        ({"key": "y" * 30}, '{"key": "yyyyyyyyyyy... [21 characters cut]'),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, 6... [50 characters cut]"),
        (7, "7"),
    ],
)
async def test_long_results_are_cut_with_a_count_of_what_is_gone(stage, enable, value, seen):
    await enable("output-truncator", max_chars=20)
    result = await stage.play(stage.agent(calling("give"), "ok", tools=[giving(value)]))
    assert result.entries[2].content == seen


@pytest.mark.row("EDG-46")
async def test_memory_is_added_once_to_a_prompt_that_is_there(stage, enable, tmp_path, call_weather, weather_tool):
    await enable("memory-injection", most=2)
    memory = FileMemory(tmp_path / "hermes-gateway" / "memory")
    await stage.play(stage.agent("ok", instructions="You help."))
    assert stage.sent().system == "You help."
    for fact in ("old", "likes tea", "lives in Rome"):
        await memory.remember(":", fact)
    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool], instructions="You help."))
    for place in (0, 1):
        assert stage.sent(place).system == "You help.\n\n## Memory\n- likes tea\n- lives in Rome"
    await stage.play(stage.agent("ok"))
    assert stage.sent().system == ""
    await stage.play(stage.agent("ok", instructions="You help.\n## Memory\nmine"))
    assert stage.sent().system == "You help.\n## Memory\nmine"


def test_the_hook_looks_where_the_tool_remembers(tmp_path):
    name = hashlib.sha256(b"telegram:7").hexdigest()[:32]
    assert digest_of_owner("telegram:7") == name


@pytest.mark.row("EDG-47")
async def test_the_end_of_the_notes_is_added_once(stage, enable, tmp_path):
    notes = tmp_path / "notes.md"
    await enable("notes-injector", path=str(notes), max_chars=10)
    await stage.play(stage.agent("ok", instructions="You help."))
    assert stage.sent().system == "You help."
    notes.write_text("the first words and the last")
    await stage.play(stage.agent("ok", instructions="You help."))
    assert stage.sent().system == "You help.\n\n## Notes\nd the last"
    await stage.play(stage.agent("ok"))
    assert stage.sent().system == ""


@pytest.mark.row("EDG-48")
async def test_over_the_budget_the_middle_is_summed_up_between_turns(stage, enable, call_weather, weather_tool):
    await enable("compaction", max_context_tokens=50, keep_first=1, keep_last=2)
    history = [Entry("user" if n % 2 == 0 else "assistant", f"message {n} " + "x" * 30) for n in range(10)]
    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]), history=history)
    for place in (0, 1):  # the same within the turn
        sent = stage.sent(place)
        assert [entry.content[:9] for entry in sent.messages[:3]] == ["message 0", "message 8", "message 9"]
        assert sent.system.startswith("Earlier in this conversation: assistant: message 1")
        assert "message 7" in sent.system
    assert stage.session["compaction"]["upto"] == 8
    await stage.play(stage.agent("ok"), history=[*history, Entry("user", "new"), Entry("assistant", "newer")])
    assert "message 9" in stage.sent().system
    assert [entry.content[:9] for entry in stage.sent().messages] == ["message 0", "new", "newer", "hi"]
    stage.session.clear()
    await stage.play(stage.agent("ok"), history=history[:3])
    assert (stage.sent().system, len(stage.sent().messages), stage.session) == ("", 4, {})


@pytest.mark.row("EDG-48")
async def test_a_summary_can_come_from_a_model(stage, enable, endpoint):
    answer = {"choices": [{"message": {"role": "assistant", "content": "They counted."}}]}
    endpoint.answer(200, json.dumps(answer).encode())
    await enable("compaction", max_context_tokens=10, keep_first=0, keep_last=1, url=endpoint.url, model="small")
    await stage.play(stage.agent("ok"), history=[Entry("user", f"{n} " * 20) for n in range(4)])
    assert stage.sent().system == "Earlier in this conversation: They counted."
    assert endpoint.requests[0][1]["model"] == "small"


@pytest.mark.row("EDG-62")
@pytest.mark.parametrize(
    ("said", "is_echo"),
    [
        ('{"ok": false, "error": "x"}', True),
        ('```json\n{"result": 7}\n```', True),
        ('{"city": "Paris"}', False),
        ('The result is {"ok": true}', False),
        ("All is well.", False),
    ],
)
async def test_a_final_answer_that_repeats_a_payload_is_replaced(stage, enable, said, is_echo):
    await enable("echoed-payload", fallback="Ask me again.")
    assert (await stage.play(stage.agent(said))).reply == ("Ask me again." if is_echo else said)


@pytest.mark.row("EDG-62")
async def test_an_answer_with_tool_calls_is_left_alone(stage, enable, call_weather, weather_tool):
    await enable("echoed-payload")
    result = await stage.play(stage.agent({**call_weather, "text": '{"ok": true}'}, "done", tools=[weather_tool]))
    assert result.entries[1].content == '{"ok": true}'


@pytest.mark.row("EDG-63")
async def test_wrong_arguments_are_explained_once_for_each_tool(stage, enable, weather_tool):
    await enable("schema-retry")
    wrong = [calling("weather", f"w{n}", town="Rome") for n in range(2)]
    agent = stage.agent(*wrong, calling("weather", "w", city="Rome"), "ok", tools=[weather_tool])
    results = [entry for entry in (await stage.play(agent)).entries if entry.role == "tool"]
    assert (results[0].error, results[1].error, results[2].content) == (False, True, "18 degrees in Rome")
    assert "The real parameters of weather are: city (string)" in results[0].content


@pytest.mark.row("EDG-63")
async def test_other_errors_are_not_explained_away(stage, enable):
    await enable("schema-retry")
    result = await stage.play(stage.agent(calling("nothing"), "ok"))
    assert result.entries[2].error


@pytest.mark.row("EDG-64")
@pytest.mark.process
def test_one_line_of_the_configuration_switches_on_all_for_small_models(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(settings=f"hooks: {{enabled: {list(FOR_SMALL)}}}\n")
        gateway.start()
        gateway.until(lambda: list_states(gateway) == {"loaded"})


def list_states(gateway: GatewayProcess) -> set[str]:
    return {one["state"] for one in gateway.call("hooks.list")["hooks"] if one["name"] in FOR_SMALL}


async def test_the_three_for_small_models_work_side_by_side(stage, enable, weather_tool):
    for name in FOR_SMALL:
        await enable(name)
    turns = [calling("weather", f"w{n}", town="Rome") for n in range(2)]
    result = await stage.play(stage.agent(*turns, '{"ok": true}', tools=[weather_tool]))
    results = [entry.content for entry in result.entries if entry.role == "tool"]
    assert "real parameters" in results[0]
    assert "very call" in results[1]
    assert "put it into words" in result.reply


@pytest.mark.row("EDG-59")
@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("Write to ada.l+x@mail.example.org!", "Write to [email]!"),
        ("My number is 123-45-6789.", "My number is [ssn]."),
        ("Pay with 4111 1111 1111 1111 now", "Pay with [card] now"),
        ("Order 4111 1111 1111 1112 is late", "Order 4111 1111 1111 1112 is late"),
        ("Call +49 30 1234 5678 or (555) 123-4567", "Call [phone] or [phone]"),
        ("Version 1.2.3 of 2026-11-21, 3.14159", "Version 1.2.3 of 2026-11-21, 3.14159"),
    ],
)
async def test_personal_data_is_removed_from_answers(stage, enable, said, sent):
    await enable("output-redaction")
    assert (await stage.play(stage.agent(said))).reply == sent


@pytest.mark.row("EDG-59")
async def test_personal_data_is_removed_from_results_however_deep_and_from_what_is_sent(stage, enable):
    await enable("output-redaction", kinds=["email"])
    value = {"people": [{"mail": "ada@example.org", "ssn": "123-45-6789"}], "n": 1}
    result = await stage.play(stage.agent(calling("give"), "ok", tools=[giving(value)]))
    assert json.loads(result.entries[2].content) == {"people": [{"mail": "[email]", "ssn": "123-45-6789"}], "n": 1}
    event = await stage.run("message:sending", text="to ada@example.org")
    assert event["text"] == "to [email]"
