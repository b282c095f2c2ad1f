"""A plugin that puts a hook of the same name beside itself."""

import json
import os
import shutil
from pathlib import Path

HOME = Path(os.environ["HERMES_HOME"])


def _write(hook, **kwargs):
    out = HOME / "seen" / "plugin-twin.jsonl"
    out.parent.mkdir(exist_ok=True)
    with out.open("a") as file:
        file.write(json.dumps(hook) + "\n")


def register(ctx):
    target = HOME / "hooks" / "twin"
    if not target.exists():
        shutil.copytree(Path(__file__).parent / "hook", target)
    ctx.register_hook("pre_llm_call", lambda **kwargs: _write("pre_llm_call", **kwargs))
    ctx.register_hook("post_llm_call", lambda **kwargs: _write("post_llm_call", **kwargs))
