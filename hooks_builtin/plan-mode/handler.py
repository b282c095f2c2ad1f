"""Asks the person before certain tools run. A call that they decline has an error as its result; the model goes on."""

import json

YES = (True, "y", "yes", "true", "once", "session", "always", "ok")


def handle(event_type, context):
    if context["tool"] not in context.options["confirm"]:
        return
    answer = context.ask(f"May {context['tool']} run with {shown(context['args'])}", name="plan")
    if (answer.strip().lower() if isinstance(answer, str) else answer) not in YES:
        context["result"] = {"ok": False, "error": context.options["declined"]}


def shown(args):
    """The arguments as the person reads them; a model may have written them as text."""
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            args = {"__raw__": args}
    text = json.dumps(args, ensure_ascii=False)
    return text if len(text) <= 500 else text[:500] + "..."
