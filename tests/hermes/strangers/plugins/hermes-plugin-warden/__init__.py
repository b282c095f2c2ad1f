"""A plugin whose folder is a repository's name, as `git clone` makes it."""

import json
import os
from pathlib import Path

from hermes_plugins.warden import rules

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-warden.jsonl"
FACTS = ("name", "key", "version", "author", "kind", "source", "requires_env", "provides_hooks", "provides_tools")


def guard(tool_name, args, **_):
    if args.get("path") in rules.CLOSED:
        return {"action": "block", "message": f"the warden keeps {args['path']}"}


def register(ctx):
    told = {name: getattr(ctx.manifest, name) for name in FACTS}
    SEEN.write_text(json.dumps([__name__, ctx.profile_name, told]))
    ctx.register_hook("pre_tool_call", guard)
    ctx.register_skill("knots", Path(__file__).parent / "skills" / "knots" / "SKILL.md", "How to tie one")
