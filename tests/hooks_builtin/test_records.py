"""The hooks that write down, measure and show: they only observe, and what they cannot write stops nothing."""

import json

import pytest

from gateway.hooks.manifests.manifest import read_manifest
from tests.hooks_builtin.conftest import ROOT


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.row("EDG-49")
async def test_each_tool_call_is_noted_as_ok_or_failed(stage, enable, tmp_path, call_weather, weather_tool):
    await enable("episode-log", path=str(tmp_path / "deep" / "episodes.jsonl"))
    wrong = {"tool_calls": [{"name": "weather", "args": {}, "id": "w2"}]}
    await stage.play(stage.agent(call_weather, wrong, "ok", tools=[weather_tool]))
    await stage.hooks.settled()
    episodes = lines(tmp_path / "deep" / "episodes.jsonl")
    assert [(one["tool"], one["outcome"]) for one in episodes] == [("weather", "ok"), ("weather", "failed")]
    assert "city" in episodes[1]["detail"]


@pytest.mark.row("EDG-50")
async def test_the_audit_has_a_line_for_each_answer_tool_and_turn(stage, enable, tmp_path, call_weather, weather_tool):
    await enable("audit-log", path="$HERMES_HOME/deep/audit.jsonl")
    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    await stage.hooks.settled()
    entries = lines(tmp_path / "deep" / "audit.jsonl")
    assert [entry["point"] for entry in entries] == ["llm:after", "tool:after", "llm:after", "agent:end"]
    assert all(set(entry) == {"ts", "point", "agent", "payload"} and entry["agent"] == "main" for entry in entries)
    assert entries[-1]["payload"]["response_full"] == "ok"


@pytest.mark.row("EDG-50")
@pytest.mark.row("EDG-51")
@pytest.mark.parametrize(("name", "option"), [("audit-log", "path"), ("export-session", "folder")])
async def test_what_cannot_be_written_is_logged_and_stops_nothing(stage, enable, name, option):
    log = await enable(name, **{option: "/proc/nowhere/file"})
    assert (await stage.play(stage.agent("ok"))).reply == "ok"
    await stage.hooks.settled()
    assert "cannot write" in log.read_text()
    assert not any(hook.failures for hook in stage.hooks.hooks)


@pytest.mark.row("EDG-51")
async def test_a_conversation_is_exported_turn_by_turn(stage, enable, tmp_path):
    await enable("export-session", folder=str(tmp_path / "out"))
    for text in ("first", "second"):
        await stage.play(stage.agent(f"to {text}"), text)
        await stage.hooks.settled()
    (path,) = (tmp_path / "out").iterdir()
    assert [(one["role"], one["content"]) for one in lines(path)] == [
        ("user", "first"),
        ("assistant", "to first"),
        ("user", "second"),
        ("assistant", "to second"),
    ]


@pytest.mark.row("EDG-52")
async def test_models_and_tools_are_timed(stage, enable, call_weather, weather_tool):
    log = await enable("timing")
    slow = {**call_weather, "text": "a b", "delay": 0.02}
    await stage.play(stage.agent(slow, "ok", tools=[weather_tool]))
    await stage.hooks.settled()
    (line,) = log.read_text().splitlines()
    parts = line[20:].split("; ")
    assert [part.split(" ")[0] for part in parts] == ["model", "weather", "model"]
    assert int(parts[0].split(" ")[1]) >= 40


@pytest.mark.row("EDG-53")
async def test_the_six_points_are_printed(stage, enable, call_weather, weather_tool):
    log = await enable("echo", max_chars=200)
    await stage.play(stage.agent(call_weather, "ok", tools=[weather_tool]))
    await stage.hooks.settled()
    printed = [line[20:] for line in log.read_text().splitlines()]
    assert [line.split(" ")[0] for line in printed] == [
        "agent:start",
        "llm:before",
        "llm:after",
        "tool:before",
        "tool:after",
        "llm:before",
        "llm:after",
        "agent:end",
    ]
    assert max(len(line) for line in printed) < 220


# Lines of a handler: these two read a file of the owner's, and say why they did nothing.
LONGEST = {"boot-md": 140, "heartbeat": 75}


@pytest.mark.parametrize("folder", sorted(path.name for path in ROOT.iterdir() if (path / "HOOK.yaml").exists()))
def test_every_manifest_is_without_fault_and_off_unless_enabled(folder):
    reading = read_manifest(ROOT / folder)
    assert reading.findings == ()
    assert reading.manifest
    assert reading.manifest.enabled is (folder == "boot-md")
    assert reading.manifest.description
    assert len((ROOT / folder / "handler.py").read_text().splitlines()) <= LONGEST.get(folder, 60)


@pytest.mark.row("EDG-66")
def test_the_hooks_stand_on_their_rungs():
    """Rails first, then what shapes the input, then what detects, then what changes; low numbers go first here."""
    rungs = {
        -100: ("safety-guardrail", "plan-mode"),
        -80: ("token-budget", "memory-injection", "notes-injector", "compaction"),
        -60: ("loop-detector", "echoed-payload"),
        -40: ("schema-retry", "output-truncator"),
    }
    for order, names in rungs.items():
        for name in names:
            manifest = read_manifest(ROOT / name).manifest
            assert manifest
            assert manifest.order == order
