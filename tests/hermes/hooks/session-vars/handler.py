"""The conversation, from the context variables."""

import asyncio

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


from gateway.session_context import get_session_env

NAMES = ["PLATFORM", "CHAT_ID", "USER_ID", "USER_NAME", "KEY", "ID", "MESSAGE_ID", "PROFILE"]


async def handle(event_type, context):
    read = lambda: {name: get_session_env(f"HERMES_SESSION_{name}", "nothing") for name in NAMES}
    note("session-vars", read(), await asyncio.to_thread(read), context.get("session_key"), context["session_id"])
