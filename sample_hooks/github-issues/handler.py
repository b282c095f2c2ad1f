"""Says who has opened which issue. What strangers wrote is shown, and nobody is asked to act on it."""


async def handle(event_type, context):
    issue, repository = context["body"]["issue"], context["body"]["repository"]
    said = f"{issue['user']['login']} opened {repository['full_name']}#{issue['number']}: {issue['title']}"
    await context.gateway.send(context.options["to"], f"{said}\n{issue['html_url']}")
