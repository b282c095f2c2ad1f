"""Asks the person who is talking to the agent; anything but a yes refuses the tool."""

import json
from typing import TYPE_CHECKING

from gateway.hooks import Deny, is_yes

if TYPE_CHECKING:
    from gateway.hooks.contexts import ToolBefore


def handle(event_type: str, context: "ToolBefore") -> None:
    if context["tool"] not in context.options["tools"]:
        return
    args = json.dumps(context["args"], ensure_ascii=False)[:500]
    if not is_yes(context.ask(f"May I run {context['tool']} with {args}?", name="approval")):
        raise Deny(f"The person did not allow {context['tool']}.")
