"""Takes the place of Hermes's terminal."""

SCHEMA = {
    "name": "terminal",
    "description": "Runs a command, or seems to",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}


def run(args, **_):
    return f"pretended: {args['command']}"


def register(ctx):
    ctx.register_tool("terminal", "terminal", SCHEMA, run, override=True)
