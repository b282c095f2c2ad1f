"""The jobs of Hermes, as its file `cron/jobs.json` has them, and what of each comes over.

Hermes may still run them, so they come paused. The file is read, and never written.
"""

import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.errors import AgentError
from gateway.jobs.job import parse_time

LARGEST = 8_000_000  # bytes
NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
OUTSIDE = "its script is outside of scripts/"
LONGEST_NAME = 60  # so that `-2` has room
SHELLS = (".sh", ".bash")
# The fields that have no place here, each with the reason or the remedy.
LEFT_OUT: Mapping[str, str] = {
    "skills": "skills: name them in the text",
    "context_from": "context_from: a job does not read the answer of another",
    "enabled_toolsets": "enabled_toolsets: give the job an agent with these tools (--agent)",
    "workdir": "workdir: write the path into the text",
    "base_url": "base_url: describe the model in `models`, and name it (--model)",
    "model": "model: describe it in `models`, and name it (--model)",
}


class CronJob(msgspec.Struct, frozen=True):
    """A job of Hermes: its parameters for `jobs.add`, or why it does not come over, and what is left out."""

    params: Mapping[str, Any]
    reason: str = ""
    left_out: tuple[str, ...] = ()


def read_cron_jobs(file: Path) -> list[CronJob]:
    """Read all jobs of the file; none without a file.

    Raises:
        AgentError: the file cannot be read.
    """
    try:
        if file.stat().st_size > LARGEST:
            raise AgentError(f"{file}: it has more than {LARGEST // 1_000_000} MB")
        found = msgspec.json.decode(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise AgentError(f"{file}: it cannot be read: {error}") from None
    listed = found.get("jobs") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise AgentError(f"{file}: it has no list of jobs")
    return [_read_job(one, file) for one in listed if isinstance(one, dict)]


def choose_name(wanted: str, taken: set[str]) -> str:
    """Return the name, or NAME-2 and so on if another job has it."""
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def _read_job(one: Mapping[str, Any], file: Path) -> CronJob:
    called = NOT_IN_NAME.sub("-", str(one.get("name") or one.get("id") or "")).strip("-_.")[:LONGEST_NAME] or "job"
    home = file.parent.parent
    when, work, to = _read_when(one.get("schedule")), _read_work(one, home), _read_place(one)
    zone = str(one.get("timezone") or "")
    params = {"name": called, "when": when, **work, **({"to": to} if to else {}), **({"zone": zone} if zone else {})}
    fault = _find_fault(when, zone, work) if is_script_inside(one, home) else OUTSIDE
    return CronJob(params, fault, tuple(_list_left_out(one, file, work, to)))


def is_script_inside(one: Mapping[str, Any], home: Path) -> bool:
    """Return True unless the script of a job leaves the folder of scripts, by its path or by a link."""
    scripts = (home / "scripts").resolve()
    try:
        return (scripts / str(one.get("script") or "")).resolve().is_relative_to(scripts)
    except (OSError, RuntimeError, ValueError):  # links in a circle, a zero byte
        return False


def _find_fault(when: str, zone: str, work: Mapping[str, str]) -> str:
    """Return why a job does not come over, or ""."""
    if not work:
        return "it has no prompt"
    try:
        parse_time(when, zone, time.time())
    except (AgentError, ValueError, OverflowError) as error:
        return str(error)
    return ""


def _read_when(schedule: object) -> str:
    match schedule:
        case {"kind": "once", "run_at": str(at)}:
            return at
        case {"kind": "interval", "minutes": int(minutes)}:
            return f"every {minutes}m"
        case {"kind": "cron", "expr": str(line)} | str(line):
            return line
    return ""


def _read_work(one: Mapping[str, Any], home: Path) -> dict[str, str]:
    script = str(one.get("script") or "")
    if script and one.get("no_agent"):
        path = home / "scripts" / script
        return {"command": shlex.join(["bash" if path.suffix in SHELLS else "python3", str(path)])}
    prompt = str(one.get("prompt") or "").strip()
    return {"text": prompt} if prompt else {}


def _read_place(one: Mapping[str, Any]) -> str:
    """Return the chat that gets the answer, as `send` takes it; "": none, or several."""
    deliver, origin = str(one.get("deliver") or "local"), one.get("origin")
    if deliver != "origin":
        return "" if deliver in ("local", "all") or "," in deliver else deliver
    if not isinstance(origin, dict) or not origin.get("platform") or not origin.get("chat_id"):
        return ""
    thread = f":{origin['thread_id']}" if origin.get("thread_id") else ""
    return f"{origin['platform']}:{origin['chat_id']}{thread}"


def _list_left_out(one: Mapping[str, Any], file: Path, work: Mapping[str, str], to: str) -> Iterator[str]:
    yield from (words for name, words in LEFT_OUT.items() if one.get(name))
    repeat = one.get("repeat")
    times = repeat.get("times") if isinstance(repeat, dict) else None
    if times and not (times == 1 and isinstance(one.get("schedule"), dict) and one["schedule"].get("kind") == "once"):
        yield f"repeat.times {times}: it repeats until you remove it"
    if "command" in work:
        yield f"script: commands do not read it; add {file.parent.parent / 'scripts'} to `tools.sandbox.read`"
    elif one.get("script"):
        yield "script: a job does not add its output to the text"
    if not to and str(one.get("deliver") or "local") != "local":
        yield f"deliver {one['deliver']}: the answer is in the history (--to)"
