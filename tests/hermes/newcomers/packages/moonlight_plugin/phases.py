"""What is said when."""

import json
import os
from pathlib import Path


class Phases:
    def before(self, **kwargs):
        self._write("pre_llm_call", kwargs["user_message"])

    def after(self, **kwargs):
        self._write("post_llm_call", kwargs["assistant_response"])

    def _write(self, *words):
        out = Path(os.environ["HERMES_HOME"]) / "seen" / "moonlight.jsonl"
        out.parent.mkdir(exist_ok=True)
        with out.open("a") as file:
            file.write(json.dumps(words) + "\n")
