"""Writes what was said in a turn into the conversation's own file when the turn ends. Failing to stops nothing."""

import json
import logging
import os
import re
from pathlib import Path


def handle(event_type, context):
    said = context.own.setdefault("said", [])
    if event_type == "message:add":
        said.append({"ts": context["time"], **context["message"]})
        return
    folder = Path(os.path.expandvars(context.options["folder"])).expanduser()
    name = re.sub(r"[^\w-]", "_", context.get("session_id") or "unknown")[:100]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.jsonl").open("a") as file:
            file.writelines(json.dumps(message, ensure_ascii=False) + "\n" for message in said)
        said.clear()
    except OSError as error:
        logging.getLogger(__name__).warning("cannot write to %s: %s", folder, error)
