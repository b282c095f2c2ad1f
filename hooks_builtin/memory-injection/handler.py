"""Adds a block `Memory` to the system prompt: what the tool `remember` keeps for this person, newest last."""

import hashlib
import json
import os
from pathlib import Path

MARK = "## Memory"


def handle(event_type, context):
    if not context["system"] or MARK in context["system"]:
        return
    facts = remembered(context)[-context.options["most"] :]
    if facts:
        lines = "\n".join(f"- {fact}" for fact in facts)
        context["system"] += f"\n\n{MARK}\n{lines}"


def remembered(context):
    owner = f"{context.get('platform', '')}:{context.get('user_id', '')}"
    name = hashlib.sha256(owner.encode()).hexdigest()[:32]
    path = Path(os.path.expandvars(context.options["folder"])).expanduser() / f"{name}.jsonl"
    facts: dict[str, bool] = {}
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            try:
                fact = json.loads(line)["text"]
            except (ValueError, KeyError, TypeError):
                continue  # torn by a power cut; the others are whole
            facts.pop(fact, None)
            facts[fact] = True
    return list(facts)
