"""Says once a turn, in the chat where it runs, that the work is taking long."""


async def handle(event_type, context):
    if context["iteration"] != context.options["threshold"]:
        return
    tools = ", ".join(dict.fromkeys(context["tool_names"]))
    await context.gateway.send(
        to=context["session_key"],
        text=f"Still at work: step {context['iteration']}, last with {tools}. /stop ends it.",
    )
