"""Over the budget, only the last messages are sent, and of those the oldest are dropped until they fit."""

import json


def handle(event_type, context):
    budget, keep = context.options["max_context_tokens"], context.options["keep_last"]
    system, messages = tokens(context["system"]), context["messages"]
    if system + sum(map(tokens, messages)) <= budget:
        return
    kept = messages[-keep:] if keep else []
    while len(kept) > 1 and system + sum(map(tokens, kept)) > budget:
        kept = kept[1:]
    while len(kept) > 1 and kept[0]["role"] == "tool":  # without its call, a result is refused by models
        kept = kept[1:]
    if kept and kept[0]["role"] == "tool":
        kept = with_call(messages, kept)
    context["messages"] = kept


def with_call(messages, results):
    """The call that these results answer stands before them, over the budget or not."""
    place = len(messages) - len(results)
    while place > 0 and messages[place]["role"] == "tool":
        place -= 1
    return messages[place:]


def tokens(message):
    text = message if isinstance(message, str) else message["content"] + json.dumps(message.get("tool_calls", ""))
    return len(text) // 4
