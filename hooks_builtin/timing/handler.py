"""Measures the time between before and after of each model and tool call, and prints a line when the turn ends."""


def handle(event_type, context):
    begun, took = context.own.setdefault("begun", {}), context.own.setdefault("took", [])
    kind, _, phase = event_type.partition(":")
    if event_type == "agent:end":
        if took:
            print("; ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in took))
            took.clear()
        return
    key = f"{kind}/{context.get('agent')}/{context['hop']}/{context.get('call_id', '')}"
    if phase == "before":
        begun[key] = context["time"]
    elif key in begun:
        name = context["tool"] if kind == "tool" else "model"
        took.append((name, context["time"] - begun.pop(key)))
