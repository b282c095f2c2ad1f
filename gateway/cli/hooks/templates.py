"""The files of a new hook, to be filled by `hooks new`."""

PYTHON = '''"""What this hook does, in one sentence."""

from typing import TYPE_CHECKING
{imports}
if TYPE_CHECKING:
    from gateway.hooks.contexts import {contexts}


def handle(event_type: str, context: "{context}") -> None:
    # {comment}
    print(event_type, context.get("{field}"))
'''
SCHEDULE_LINE = 'schedule: "0 9 * * *"  # minute, hour, day, month, weekday; or @hourly, or: every 15m'
WEBHOOK_LINE = "webhook: {secret_env: WEBHOOK_SECRET, verify: token}  # who signs: docs/webhooks.md in the sources"
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
TYPESCRIPT = """// Each line on stdin is a request, each line on stdout an answer.
// {comment}
// Node runs this file as it is from 22.18 on: types are left out, and whatever is more than a type does not work.
import {{ createInterface }} from "node:readline";

interface Fields {{
{fields}
}}

interface Request {{
  id?: number;
  method: string;
  params: Fields;
}}

function handle(event: string, fields: Fields): Partial<Fields> | Record<string, unknown> | null {{
  console.error(event, fields.{field});
  return null;
}}

createInterface({{ input: process.stdin }}).on("line", (line: string) => {{
  const {{ id, method, params }} = JSON.parse(line) as Request;
  if (id === undefined) return;
  process.stdout.write(JSON.stringify({{ jsonrpc: "2.0", id, result: handle(method, params) }}) + "\\n");
}});
"""
SHELL = """#!/bin/sh
# The event is one JSON object on stdin, its name in the field hook_event_name.
# {comment}
event=$(cat)
echo "$event" >&2
"""
SCHEMA_LINE = "# yaml-language-server: $schema={schema}"
TEST = '''"""Run it with `pytest`, where hermes-gateway and pytest are installed."""

import json

from gateway.testing import call


def test_the_hook_alone_takes_its_sample(hook_folder):
    # In this process, in 5 ms: no gateway, and none of the limits that a hook has there.
    sample = json.loads((hook_folder / "sample.json").read_text())
    assert call(hook_folder, "{event}", sample).remarks == ()


def test_it_takes_an_event_of_every_kind_in_a_real_gateway(hermes_gateway, hook_folder):
    hermes_gateway.add_hook("{name}", hook_folder)
    hermes_gateway.start()
    trials = hermes_gateway.call("hooks.test", {{"name": "{name}"}})["trials"]
    assert [trial["error"] for trial in trials if not trial["ok"]] == []
'''
README = """# {name}

What this hook does, in one sentence.

## Try it

```sh
hermes-gateway hooks dev .  # in a gateway of its own: what you write goes through the hook
pytest
```

## Install it

```sh
hermes-gateway hooks install 'git+https://HOST/REPOSITORY@TAG{place}'
```

What it asks for is in HOOK.yaml, and is shown before anything of it runs.

## Licence

None yet, so nobody else may use it: put the text of one into a file LICENSE, and its name here.
"""
WORKFLOW = """name: {name}
on: [push, pull_request]
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    defaults:
      run:
        working-directory: {place}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "3.11"
{more}      - name: install
        # hermes-gateway is on no package index: put the address of its wheel or its repository in the place of WHERE
        run: pip install 'hermes-gateway @ WHERE' pytest
      - name: check
        run: hermes-gateway hooks check .
      - name: test
        run: pytest
"""
WITH_NODE = """      - uses: actions/setup-node@v5
        with:
          node-version: 24
"""
