"""`hooks new`: a folder that works at once, with a sample event and a test."""

import argparse
import json
import os
import re
import shutil
from typing import Any

from gateway.catalogue import point, sample, suggest
from gateway.cli.output import note
from gateway.config.home import Home
from gateway.errors import Exit, HookError

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}\Z")

PYTHON = '''"""What this hook does, in one sentence."""

{imports}
def handle(event_type, context):
    {comment}
    print(event_type, {shown})
'''
NODE = """// Each line on stdin is a request: {{"id", "method": event name, "params": its fields}}.
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
SHELL = """#!/bin/sh
# The event is one JSON object on stdin. {comment}
event=$(cat)
echo "$event" >&2
"""
TEST = '''"""Run it with: pytest {name}/test_hook.py"""

import json

from gateway.testing import GatewayProcess

HERE = Path(__file__).parent


def test_the_hook_takes_its_sample(tmp_path):
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("{name}", HERE)
        gateway.start()
        gateway.until(lambda: gateway.call("hooks.info", {{"name": "{name}"}})["state"] == "loaded")
        payload = json.loads((HERE / "sample.json").read_text())
        trial = gateway.call("hooks.fire", {{"name": "{name}", "event": "{event}", "payload": payload}})
        assert trial["ok"], trial["error"]
'''


def add(verbs: Any) -> None:
    new = verbs.add_parser("new", help="make a hook that works at once, with a sample event and a test")
    new.add_argument("name", help="the name of its folder")
    new.add_argument(
        "--event", action="append", default=[], metavar="NAME", help="an event to observe; may be repeated"
    )
    new.add_argument("--intercept", action="append", default=[], metavar="NAME", help="an event to decide on; likewise")
    new.add_argument(
        "--lang", choices=("python", "sh", "node"), default="python", help="what it is written in (python)"
    )
    new.set_defaults(does=run)


def run(args: argparse.Namespace, home: Home) -> int:
    if not NAME.match(args.name):
        raise HookError(f"{args.name!r} is no name for a hook\nuse small letters, digits, - and _, 61 at most")
    for name in (*args.event, *args.intercept):
        if point(name) is None and "*" not in name and (meant := suggest(name)):
            raise HookError(f"no event is called {name!r}; did you mean {meant!r}?\nhermes-gateway events list")
    folder = home.hooks / args.name
    if folder.exists():
        raise HookError(f"{folder} is there already\nchoose another name, or remove it")
    beside = home.hooks / f".{args.name}.new"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for file, text in files(
        args.name, args.event or ([] if args.intercept else ["agent:end"]), args.intercept, args.lang
    ):
        (beside / file).write_text(text)
        (beside / file).chmod(0o700 if file.endswith(".sh") else 0o600)
    os.rename(beside, folder)  # noqa: PTH104 - whole at once, so that the running gateway never sees half of it
    print(folder)
    note(f"try it: hermes-gateway hooks test {args.name}")
    return int(Exit.OK)


def files(name: str, events: list[str], intercepts: list[str], lang: str) -> list[tuple[str, str]]:
    event = concrete((intercepts or events)[0])
    fields = sample(event)
    field = next(iter(fields), "id")
    hint = (
        "To decide, return or raise End, Deny or Retry, or change fields."
        if intercepts
        else "It observes: what it returns counts for nothing."
    )
    manifest = [f"name: {name}", "description: What this hook does, in one sentence", "version: 0.1.0"]
    manifest += [f"events: [{listed(events)}]"] if events else []
    manifest += [f"intercepts: [{listed(intercepts)}]"] if intercepts else []
    found: list[tuple[str, str]] = []
    if lang == "node":
        manifest += ["command: [node, hook.js]", "requires: {bins: [node]}"]
        found.append(("hook.js", NODE.format(comment=hint, field=field)))
    elif lang == "sh":
        manifest += ['command: ["./hook.sh"]', "protocol: oneshot"]
        decide = "Exit 0 lets it pass, 2 refuses it with what stands on stderr." if intercepts else hint
        found.append(("hook.sh", SHELL.format(comment=decide)))
    else:
        imports = "from gateway.hooks import Deny, End, Retry  # noqa: F401\n\n" if intercepts else ""
        found.append(
            ("handler.py", PYTHON.format(imports=imports, comment=f"# {hint}", shown=f'context.get("{field}")'))
        )
    found.append(("HOOK.yaml", "\n".join(manifest) + "\n"))
    found.append(("sample.json", json.dumps(fields, indent=2, ensure_ascii=False) + "\n"))
    found.append(("test_hook.py", TEST.format(name=name, event=event)))
    return found


def listed(names: list[str]) -> str:
    return ", ".join(f'"{name}"' if "*" in name else name for name in names)


def concrete(name: str) -> str:
    """An event that falls under a pattern, to show what one looks like."""
    return {"*": "agent:end", "command:*": "command:help"}.get(
        name, name.replace("*", "before") if "*" in name else name
    )
