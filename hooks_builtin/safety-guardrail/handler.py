"""Lets no message through that holds a forbidden text, or none of the allowed ones."""

from gateway.hooks import End


def handle(event_type, context):
    text = context["message_full"].strip().lower()
    if not text:
        return None
    options = context.options
    allowed = [word.lower() for word in options["allowlist"]]
    if allowed and not any(word in text for word in allowed):
        return End(options["reply"], "not in allowlist")
    for word in options["blocklist"]:
        if word.lower() in text:
            return End(options["reply"], f"blocklist match: {word}")
    return None
