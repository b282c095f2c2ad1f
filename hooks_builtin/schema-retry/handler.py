"""Puts an error about wrong arguments into words that a small model can act on, once a turn for each tool."""


def handle(event_type, context):
    error = context["error"]
    if not error or error.get("kind") != "arguments":
        return
    explained = context.own.setdefault("explained", {})
    tool = context["tool"]
    if explained.get(tool, 0) >= context.options["max_retries"]:
        return
    explained[tool] = explained.get(tool, 0) + 1
    parameters = ", ".join(f"{name} ({kind(schema)})" for name, schema in error["parameters"].items())
    context["error"] = None
    context["result"] = (
        f"The call of {tool} did not fit: {error['message']} "
        f"The real parameters of {tool} are: {parameters or 'none'}. Call it again with these."
    )


def kind(schema):
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))
