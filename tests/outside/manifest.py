"""Every key of HOOK.yaml, each choice of its value, in a folder of its own: `hooks check` finds nothing to say of it.

A key that is not known any more is told there, and so is a value.
"""

import json
from pathlib import Path

from gateway.testing import GatewayProcess
from tests.outside.shapes import Facts

HANDLER = "def handle(event_type, context):\n    print(event_type)  # it could deny\n"
PROGRAM = {"run.sh": "#!/bin/sh\n"}
OBSERVES, DECIDES = "events: [agent:end]", "intercepts: [tool:before]"
REMOTE = 'url: "http://127.0.0.1:1/hook"'
# What is tried, and what has to stand beside it.
TRIED = {
    "name: A name": OBSERVES,
    "description: What it does": OBSERVES,
    "version: 0.1.0": OBSERVES,
    "events: agent:end": "",
    "events: [agent:end, 'session:*']": "",
    "intercepts: tool:before": "",
    "intercepts: [tool:before, 'llm:*']": "",
    "when: {platform: telegram}": OBSERVES,
    "when: {platform: [telegram, slack]}": OBSERVES,
    "order: -1.5": DECIDES,
    "mode: queued": OBSERVES,
    "mode: parallel": OBSERVES,
    "max: 2": f"{OBSERVES}\nmode: parallel",
    "timeout: 5s": OBSERVES,
    "on_error: skip": DECIDES,
    "on_error: raise": DECIDES,
    "on_error: deny": DECIDES,
    "delivery: memory": OBSERVES,
    "delivery: durable": OBSERVES,
    "isolation: process": OBSERVES,
    "isolation: none": OBSERVES,
    "requires: {bins: [sh]}": OBSERVES,
    "requires: {env: [HOME]}": OBSERVES,
    "requires: {python: [pyyaml]}": OBSERVES,
    "requires: {platforms: [telegram]}": OBSERVES,
    "env: [HOME]": OBSERVES,
    "uses: emit": OBSERVES,
    "uses: [send, store, submit]": OBSERVES,
    "reads: [~/notes, /srv]": OBSERVES,
    "writes: [~/notes]": OBSERVES,
    "net: false": OBSERVES,
    "net: true": OBSERVES,
    "net: [53, 443]": OBSERVES,
    'schedule: "0 9 * * *"': "",
    'schedule: "@hourly"': "",
    "schedule: every 15m": "",
    "options: {colour: blue}": OBSERVES,
    "command: [./run.sh]": OBSERVES,
    "command: ./run.sh": OBSERVES,
    "protocol: lines": f"{OBSERVES}\ncommand: [./run.sh]",
    "protocol: oneshot": f"{OBSERVES}\ncommand: [./run.sh]",
    REMOTE: OBSERVES,
    "dialect: gateway": f"{OBSERVES}\n{REMOTE}",
    "dialect: sherma": f"{OBSERVES}\n{REMOTE}",
    "secret_env: HOME": f"{OBSERVES}\n{REMOTE}",
    "enabled: false": OBSERVES,
}


def manifest(place: Path) -> Facts:
    with GatewayProcess(place / "manifests") as gateway:
        gateway.configure("")
        for number, (line, beside) in enumerate(TRIED.items()):
            text = f"{beside}\n{line}\n"
            program = {} if REMOTE in text else PROGRAM if "run.sh" in text else {"handler.py": HANDLER}
            written = {"HOOK.yaml": text, **program}
            for path in (folder := gateway.add_hook(f"hook-{number:02}", written)).iterdir():
                path.chmod(0o700)
            folder.chmod(0o700)
        found = json.loads(gateway.cli("hooks", "check", "--json").stdout)["hooks"]
    told = (found[f"hook-{number:02}"] for number in range(len(TRIED)))
    return {line: "; ".join(said) or "taken" for line, said in zip(TRIED, told, strict=True)}
