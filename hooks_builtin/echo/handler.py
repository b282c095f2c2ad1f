"""Prints the main events of a turn, to see what happens when: `hermes-gateway hooks logs echo`."""

import json

COMMON = ("id", "time", "cause", "turn_id", "session_key", "scope")


def handle(event_type, context):
    fields = {name: value for name, value in context.items() if name not in COMMON}
    print(event_type, json.dumps(fields, ensure_ascii=False, default=str)[: context.options["max_chars"]], flush=True)
