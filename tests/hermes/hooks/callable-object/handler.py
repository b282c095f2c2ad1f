"""An object that can be called."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")



class Handler:
    async def __call__(self, a, b, *rest):
        note("callable-object", a, sorted(b)[:3])


handle = Handler()
