"""Writes what models and tools did, one line of JSON each: {ts, point, agent, payload}. Failing to stops nothing."""

import json
import logging
import os
from pathlib import Path


def handle(event_type, context):
    path = Path(os.path.expandvars(context.options["path"])).expanduser()
    entry = {"ts": context["time"], "point": event_type, "agent": context.get("agent", ""), "payload": dict(context)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    except OSError as error:
        logging.getLogger(__name__).warning("cannot write %s: %s", path, error)
