"""Brings a tool that another plugin brings too, and takes its place; its owner has allowed that."""


def register(ctx):
    schema = {"name": "make_snapshot", "description": "x", "parameters": {"type": "object", "properties": {}}}
    ctx.register_tool("make_snapshot", "too", schema, lambda args, **_: "another view", override=True)
