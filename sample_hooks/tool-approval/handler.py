"""Asks the person who is talking to the agent; anything but a yes refuses the tool."""

from typing import TYPE_CHECKING

from gateway.hooks import Deny, is_yes

if TYPE_CHECKING:
    from gateway.hooks.contexts import ToolBefore


def handle(event_type: str, context: "ToolBefore") -> None:
    if context["tool"] not in context.options["tools"]:
        return
    # The gateway shows the whole call below the question.
    if not is_yes(context.ask(f"May I run {context['tool']}?", name="approval")):
        raise Deny(f"The person did not allow {context['tool']}.")
