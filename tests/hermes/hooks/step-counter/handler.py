"""State in an object, a tool at a time; the arguments are JSON text."""

import collections
import json
import os
import pathlib


class Counter:
    def __init__(self):
        self.counts = collections.Counter()
        self.log = pathlib.Path(os.environ["HERMES_HOME"]) / "seen" / "step-counter.jsonl"

    async def __call__(self, event_type, context):
        if event_type != "agent:step" or not context["tool_names"]:
            return
        self.counts.update(context["tool_names"])
        for tool in context["tools"]:
            self.write([sorted(tool), tool["name"], json.loads(tool["arguments"]), self.counts[tool["name"]]])

    def write(self, row):
        self.log.parent.mkdir(exist_ok=True)
        with self.log.open("a") as file:
            file.write(json.dumps(row) + "\n")


handle = Counter()
