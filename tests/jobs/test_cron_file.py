"""The jobs of Hermes: what of each comes over, and what is left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import AgentError
from gateway.jobs.cron_file import choose_name, read_cron_jobs

DAILY = {"kind": "cron", "expr": "0 9 * * *", "display": "0 9 * * *"}


def write(folder: Path, *jobs: Any) -> Path:
    file = folder / "cron" / "jobs.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"jobs": jobs, "updated_at": "2026-01-01"}))
    return file


@pytest.mark.parametrize(
    ("schedule", "when"),
    [
        (DAILY, "0 9 * * *"),
        ({"kind": "interval", "minutes": 120, "display": "every 120m"}, "every 120m"),
        ({"kind": "once", "run_at": "2020-02-03T14:00:00+00:00"}, "2020-02-03T14:00:00+00:00"),
    ],
)
def test_each_kind_of_schedule_comes_over(tmp_path: Path, schedule: Any, when: str) -> None:
    job = {"id": "a", "name": "My tea!", "prompt": " make tea ", "schedule": schedule, "repeat": {"times": None}}
    (one,) = read_cron_jobs(write(tmp_path, job))
    assert one.params == {"name": "My-tea", "when": when, "text": "make tea"}
    assert one.reason.endswith("is past") == (schedule["kind"] == "once")
    assert one.left_out == ()


def test_a_script_without_the_agent_becomes_a_command(tmp_path: Path) -> None:
    job = {"name": "disk", "schedule": DAILY, "no_agent": True, "prompt": ""}
    shell, python = read_cron_jobs(write(tmp_path, {**job, "script": "my disk.sh"}, {**job, "script": "disk.py"}))
    assert shell.params["command"] == f"bash '{tmp_path}/scripts/my disk.sh'"
    assert python.params["command"] == f"python3 {tmp_path}/scripts/disk.py"
    assert "tools.sandbox.read" in shell.left_out[0]


def test_what_has_no_place_is_listed_by_job(tmp_path: Path) -> None:
    fields = {
        "skills": ["a"],
        "context_from": ["b"],
        "enabled_toolsets": ["w"],
        "workdir": "/opt",
        "base_url": "http://x",
    }
    job = {"name": "all", "prompt": "x", "schedule": DAILY, "script": "a.sh", "repeat": {"times": 3}, **fields}
    (one,) = read_cron_jobs(write(tmp_path, {**job, "deliver": "telegram,discord"}))
    said = [words.partition(":")[0].split()[0] for words in one.left_out]
    assert said == [*fields, "repeat.times", "script", "deliver"]
    assert one.reason == ""


@pytest.mark.parametrize(
    ("deliver", "to"),
    [
        ("origin", "telegram:5:17"),
        ("local", None),
        ("discord:99", "discord:99"),
        ("telegram", "telegram"),
        ("all", None),
    ],
)
def test_the_answer_goes_where_it_went(tmp_path: Path, deliver: str, to: str | None) -> None:
    origin = {"platform": "telegram", "chat_id": "5", "thread_id": "17"}
    job = {"name": "a", "prompt": "x", "schedule": DAILY, "deliver": deliver, "origin": origin}
    (one,) = read_cron_jobs(write(tmp_path, job))
    assert one.params.get("to") == to


def test_a_job_that_cannot_come_says_why_and_a_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    bad = ({"name": "a", "schedule": DAILY}, {"name": "b", "prompt": "x", "schedule": None})
    script = {"name": "c", "schedule": DAILY, "no_agent": True, "script": "../../bin/x.sh"}
    far = {"name": "d", "prompt": "x", "schedule": {"kind": "once", "run_at": "0001-01-01T00:00:00+14:00"}}
    reasons = [one.reason.partition(";")[0] for one in read_cron_jobs(write(tmp_path, *bad, script, far))]
    assert reasons[:3] == ["it has no prompt", "'' is not a time", "its script is outside of scripts/"]
    assert reasons[3]
    (tmp_path / "cron/jobs.json").write_text("{")
    with pytest.raises(AgentError, match="it cannot be read"):
        read_cron_jobs(tmp_path / "cron/jobs.json")
    assert read_cron_jobs(tmp_path / "none.json") == []


def test_a_name_that_is_taken_has_a_number() -> None:
    assert [choose_name("tea", taken) for taken in (set(), {"tea"}, {"tea", "tea-2"})] == ["tea", "tea-2", "tea-3"]
