"""`hooks new`: a folder that works at once, with a sample event and a test."""

import argparse
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.cli.output import print_note, show_json
from gateway.config.home import Home
from gateway.errors import HookError
from gateway.events.catalogue import get_event_spec, list_matching_events, make_sample, suggest_event
from gateway.events.fields import COMMON_FIELDS, EventSpec

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}\Z")
PREFERRED_FIELDS = (
    "message",
    "text",
    "tool",
    "command",
    "content",
    "chunk",
    "response",
    "reason",
    "hook",
    "session_id",
)

PYTHON_TEMPLATE = '''"""What this hook does, in one sentence."""
{imports}

def handle(event_type, context):
    # {comment}
    print(event_type, context.get("{field}"))
'''
SCHEDULE_LINE = 'schedule: "0 9 * * *"  # minute, hour, day, month, weekday; or @hourly, or: every 15m'
WEBHOOK_LINE = "webhook: {secret_env: WEBHOOK_SECRET, verify: token}  # who signs: docs/webhooks.md"
NODE_TEMPLATE = """// Each line on stdin is a request: {{"id", "method": event name, "params": its fields}}.
// Each line on stdout is an answer.
// {comment}
const readline = require("node:readline");

readline.createInterface({{ input: process.stdin }}).on("line", (line) => {{
  const {{ id, method, params }} = JSON.parse(line);
  if (id === undefined) return;
  console.error(method, params.{field});
  process.stdout.write(JSON.stringify({{ jsonrpc: "2.0", id, result: null }}) + "\\n");
}});
"""
SHELL_TEMPLATE = """#!/bin/sh
# The event is one JSON object on stdin, its name in the field hook_event_name.
# {comment}
event=$(cat)
echo "$event" >&2
"""
TEST_TEMPLATE = '''"""Run it with `pytest test_hook.py`, where hermes-gateway and pytest are installed."""

import json
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

HERE = Path(__file__).parent


@pytest.fixture
def gateway(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("{name}", HERE)
        gateway.start()
        yield gateway


def test_it_takes_an_event_of_every_kind(gateway):
    trials = gateway.call("hooks.test", {{"name": "{name}"}})["trials"]
    assert [trial["error"] for trial in trials if not trial["ok"]] == []


def test_it_takes_its_sample(gateway):
    sample = json.loads((HERE / "sample.json").read_text())
    trial = gateway.call("hooks.fire", {{"name": "{name}", "event": "{event}", "payload": sample}})
    assert trial["ok"], trial["error"]
'''


def run(args: argparse.Namespace, home: Home) -> None:
    if not NAME_PATTERN.match(args.name):
        raise HookError(f"{args.name!r} is no name for a hook\nuse small letters, digits, - and _, 61 at most")
    events = args.event or ([] if args.intercept else ["agent:end"])
    check_names(events, args.intercept)
    folder = home.hooks / args.name
    if folder.exists():
        raise HookError(f"{folder} is there already\nchoose another name, or remove it")
    beside = home.hooks / f".{args.name}.new"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    written = render_files(args.name, events, args.intercept, args.lang)
    for file, text in written.items():
        (beside / file).write_text(text)
        (beside / file).chmod(0o700 if file.endswith(".sh") else 0o600)
    os.rename(beside, folder)  # noqa: PTH104 - whole at once, so that the running gateway never sees half of it
    if args.json:
        show_json({"name": args.name, "path": str(folder), "files": sorted(written)})
    else:
        print(folder)
        print_note(f"write what it does into {next(iter(written))}; try it: hermes-gateway hooks test {args.name}")


def check_names(events: Sequence[str], intercepts: Sequence[str]) -> None:
    """Raises HookError with what was probably meant."""
    for name in (*events, *intercepts):
        if suggested := suggest_event(name):
            raise HookError(f"no event is called {name!r}; did you mean {suggested!r}?\nhermes-gateway events list")
    for name in intercepts:
        known = find_points(name)
        if known and not any(one.outcomes or one.writable for one in known):
            raise HookError(f"nothing of {name} can be changed or stopped\nobserve it: --event {name}")


def find_points(name: str) -> list[EventSpec]:
    """What the catalogue says of the events that this subscription hears; of one that is not ours, nothing."""
    return [known for member in list_matching_events([name]) if (known := get_event_spec(member))]


def render_files(name: str, events: Sequence[str], intercepts: Sequence[str], lang: str) -> Mapping[str, str]:
    """The texts of a new hook by their files, that of the program first."""
    event = list_matching_events([*intercepts, *events])[0]
    fields = {
        key: value for key, value in make_sample(event).items() if key not in {field.name for field in COMMON_FIELDS}
    }
    outcomes = sorted(
        {outcome.capitalize() for each in intercepts for one in find_points(each) for outcome in one.outcomes}
    )
    if intercepts and not any(map(find_points, intercepts)):
        outcomes = ["Deny", "End", "Retry"]  # an event of one's own honours all
    given: dict[str, Any] = {
        "name": name,
        "event": event,
        "field": next((field for field in PREFERRED_FIELDS if field in fields), "id"),
        "comment": describe_answer(bool(intercepts), outcomes, lang),
        "imports": f"\nfrom gateway.hooks import {', '.join(outcomes)}  # noqa: F401\n" if outcomes else "",
    }
    program, template, reached = {
        "python": ("handler.py", PYTHON_TEMPLATE, []),
        "node": ("hook.js", NODE_TEMPLATE, ["command: [node, hook.js]", "requires: {bins: [node]}"]),
        "sh": ("hook.sh", SHELL_TEMPLATE, ['command: ["./hook.sh"]', "protocol: oneshot"]),
    }[lang]
    manifest = [f"name: {name}", "description: What this hook does, in one sentence", "version: 0.1.0"]
    called = {f"schedule:{name}": SCHEDULE_LINE, f"webhook:{name}": WEBHOOK_LINE}
    observed = [each for each in events if each not in called]
    manifest += [f"events: [{format_names(observed)}]"] if observed else []
    manifest += [line for each, line in called.items() if each in events]
    manifest += [f"intercepts: [{format_names(intercepts)}]"] if intercepts else []
    return {
        program: template.format(**given),
        "HOOK.yaml": "\n".join([*manifest, *reached]) + "\n",
        "sample.json": json.dumps(fields, indent=2, ensure_ascii=False) + "\n",
        "test_hook.py": TEST_TEMPLATE.format(**given),
    }


def describe_answer(decides: bool, outcomes: Sequence[str], lang: str) -> str:
    """What the answer of such a hook means."""
    if not decides:
        return "It observes: what it answers counts for nothing."
    if lang == "sh":
        return "Exit 0 lets it pass; 2 refuses it, with what stands on stderr."
    if lang == "node":
        words = ", ".join(f'{{decision: "{outcome.lower()}", ...}}' for outcome in outcomes)
        return f"A result of null lets it pass, an object changes fields{' or decides: ' + words if words else ''}."
    decide = f"; to decide, raise {' or '.join(outcomes)}" if outcomes else ""
    return f"None lets it pass; to change a field, set it in `context`{decide}."


def format_names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' if "*" in name else name for name in names)
