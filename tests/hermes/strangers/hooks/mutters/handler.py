"""Answers what nobody asked."""


def handle(event_type, context):
    return context["command"]
