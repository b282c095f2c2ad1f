"""Ends the turn when the message holds one of the words, whatever their case."""

from gateway.hooks import End


def handle(event_type, context):
    said = context["message_full"].casefold()
    for word in context.options["words"]:
        if word.casefold() in said:
            raise End(context.options["reply"], reason=f"the message holds {word!r}")
