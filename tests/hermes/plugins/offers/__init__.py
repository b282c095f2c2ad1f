"""Uses all of ctx, and some that is not there."""

import json
from pathlib import Path

from .words import GREETING

CTX = None


def greet(raw_args):
    return f"{GREETING} {raw_args}"


async def count(raw_args):
    CTX.state.set("count", CTX.state.get("count", 0) + 1)
    return f"{CTX.state['count']} {'count' in CTX.state} {CTX.state.keys()}"


def config(raw_args):
    if raw_args:
        CTX.set_config("colour", raw_args)
    return json.dumps([CTX.get_config("colour", "none"), CTX.get_config("size"), CTX.get_config()], sort_keys=True)


def ask(raw_args):
    done = CTX.llm.complete([{"role": "system", "content": "be brief"}, {"role": "user", "content": raw_args}])
    data = CTX.llm.complete_structured(instructions="as json", input=[{"type": "text", "text": "x"}], json_mode=True)
    try:
        CTX.llm.complete([{"role": "user", "content": "x"}], model="another")
    except PermissionError as error:
        return f"{done.text} {done.model} {data.parsed} {error}"


async def asks_later(raw_args):
    return (await CTX.llm.acomplete([{"role": "user", "content": raw_args}])).text


def use(raw_args):
    return CTX.dispatch_tool("calculate", {"expression": raw_args}) + CTX.dispatch_tool("no_such_tool", {})


def inject(raw_args):
    return str(CTX.inject_message(raw_args))


async def double(args, session_id, **_):
    return {"double": args["n"] * 2, "session": bool(session_id)}


def register(ctx):
    global CTX
    CTX = ctx
    for function in (greet, count, config, ask, asks_later, use, inject):
        ctx.register_command(function.__name__.replace("_", "-"), function, description="for the tests", args_hint="<x>")
    ctx.register_command("help", greet)
    schema = {
        "name": "double",
        "description": "twice",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    }
    ctx.register_tool(name="double", toolset="numbers", schema=schema, handler=double, is_async=True)
    ctx.register_tool("calculate", "numbers", schema, double)
    ctx.register_tool("hidden", "numbers", schema, double, check_fn=lambda: False)
    ctx.register_skill("stars", Path(__file__).parent / "stars" / "SKILL.md", "how to read the stars")
    ctx.register_middleware("x", lambda **_: None)
    ctx.register_cli_command("x", "y", print)
    ctx.register_image_gen_provider(object())
    ctx.on_unload(lambda: Path(__file__).with_name("unloaded.txt").write_text("yes"))
