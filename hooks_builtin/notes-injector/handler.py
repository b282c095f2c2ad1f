"""Adds a block `Notes` to the system prompt: the end of a file, which the agent or the person may write at any time."""

import os
from pathlib import Path

MARK = "## Notes"


def handle(event_type, context):
    if not context["system"] or MARK in context["system"]:
        return
    path = Path(os.path.expandvars(context.options["path"])).expanduser()
    notes = path.read_text(errors="replace").strip() if path.exists() else ""
    if notes:
        context["system"] += f"\n\n{MARK}\n{notes[-context.options['max_chars'] :]}"
