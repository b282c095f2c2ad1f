"""Nothing of Hermes."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")

