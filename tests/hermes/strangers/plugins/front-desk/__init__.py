"""As people write it: a class, tasks made on the gateway's loop, and whatever objects it is handed."""

import asyncio
import json
import os
from pathlib import Path

from gateway.session_context import get_session_env
from hermes_cli.commands import COMMAND_REGISTRY, COMMANDS, GATEWAY_KNOWN_COMMANDS, resolve_command

SEEN = Path(os.environ["HERMES_HOME"]) / "seen"


def note(*what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / "front-desk.jsonl").open("a") as file:
        file.write(json.dumps(what, default=str) + "\n")


class FrontDesk:
    def __init__(self):
        self.greeted = set()
        self.tasks = set()

    def on_message(self, event, gateway, session_store, **_):
        source = event.source
        adapter = gateway.adapters.get(source.platform)
        note("shape", event.text, event.message_type.value, source.platform.value, source.chat_id, source.chat_type)
        note("fields", sorted(vars(event)), sorted(vars(source)))
        note("env", get_session_env("HERMES_SESSION_CHAT_ID"), get_session_env("HERMES_SESSION_USER_ID"))
        note("adapters", sorted(one.value for one in gateway.adapters), adapter is not None, len(gateway.adapters))
        entry = session_store.get_or_create_session(source)
        note("session", entry.session_id, entry.session_key, session_store.peek_session_id("nowhere"))
        note("missing", hasattr(gateway, "_running_agents"), getattr(gateway, "pairing_store", "none"))
        if source.user_id not in self.greeted and adapter:
            self.greeted.add(source.user_id)
            task = asyncio.get_running_loop().create_task(self.greet(adapter, source))
            self.tasks.add(task)
        if event.text == "look away":
            return {"action": "skip", "reason": "told to"}

    async def greet(self, adapter, source):
        result = await adapter.send(source.chat_id, "Welcome at the front desk", metadata={"thread_id": source.thread_id})
        note("sent", result.success, bool(result.message_id))


def on_tool(tool_name, args, **kwargs):
    note("tool", get_session_env("HERMES_SESSION_CHAT_ID"), get_session_env("HERMES_SESSION_PLATFORM"))


def commands(raw_args):
    title = resolve_command("/title")
    named = title.name if title else None
    return f"{named} {'/new' in COMMANDS} {'help' in GATEWAY_KNOWN_COMMANDS} {any(c.name == 'new' for c in COMMAND_REGISTRY)}"


def register(ctx):
    desk = FrontDesk()
    ctx.register_hook("pre_gateway_dispatch", desk.on_message)
    ctx.register_hook("pre_tool_call", on_tool)
    ctx.register_command("table", commands, "what there is")
