"""One line for each thing that was seen."""

import json
import os
from pathlib import Path


def write(name, *words):
    out = Path(os.environ["HERMES_HOME"]) / "seen" / f"{name}.jsonl"
    out.parent.mkdir(exist_ok=True)
    with out.open("a") as file:
        file.write(json.dumps(words) + "\n")
