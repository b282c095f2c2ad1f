"""Run in the environment of a newer hermes-agent: what its plugin manager makes of the plugins of its home."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from hermes_cli import plugins

HOME = Path(os.environ["HERMES_HOME"])


def main() -> None:
    (HOME / "config.yaml").write_text(json.dumps({"plugins": {"enabled": sys.argv[1:]}}))
    plugins.discover_plugins()
    asked = {"path": "wanted.txt", "content": "much"}
    said: dict[str, Any] = {"modified": plugins._dispatch_pre_tool_call_hooks("write_file", asked)[1]}
    said["drive"] = plugins.get_plugin_command_handler("drive")("1")
    facts = {"session_key": "k", "platform": "telegram", "message_id": "1", "source": {"chat_id": "hall"}}
    said["admission"] = [
        plugins.invoke_hook("post_gateway_admission", **facts, text=text) for text in ("usher, my seat", "hello")
    ]
    seen, limit = HOME / "seen" / "passenger.jsonl", time.monotonic() + 60
    while not (seen.exists() and seen.read_text().endswith("\n")) and time.monotonic() < limit:
        time.sleep(0.05)
    sys.stdout.write(f"\nsaid {json.dumps(said)}\n")
    sys.stdout.flush()
    os._exit(0)


main()
