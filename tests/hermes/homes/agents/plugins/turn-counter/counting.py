"""Counts, and writes down what it has counted."""

import json
import os
from functools import partial
from pathlib import Path


class Counter:
    def __init__(self):
        self.path = Path(os.environ["HERMES_HOME"]) / "turns.jsonl"

    def callback_for(self, name):
        return partial(self.count, name)

    def count(self, name, **kwargs):
        said = kwargs.get("user_message") or getattr(kwargs.get("event"), "text", "")
        with self.path.open("a") as file:
            file.write(json.dumps([name, said]) + "\n")
