"""Callbacks that declare little, run loops of their own, or are objects."""

import asyncio
import json
import os
import time
from pathlib import Path

SEEN = Path(os.environ["HERMES_HOME"]) / "seen-narrow.jsonl"


def note(*words):
    with SEEN.open("a") as file:
        file.write(json.dumps(words) + "\n")


def only_two(user_message, is_first_turn):
    note("two", user_message, is_first_turn)


def nothing():
    note("nothing")


async def later(session_id):
    await asyncio.sleep(0.01)
    note("later", bool(session_id))


def own_loop(platform):
    note("own loop", asyncio.run(asyncio.sleep(0, platform)))


def sleeps(response_text):
    time.sleep(0.2)
    note("slept")


def newer(turn_exit_reason, failed):
    note("newer", turn_exit_reason, failed)


class Object:
    def __call__(self, model, **more):
        note("object", model, more["telemetry_schema_version"])


def register(ctx):
    ctx.register_hook("on_session_end", newer)
    for callback in (only_two, nothing, later, own_loop, Object()):
        ctx.register_hook("pre_llm_call", callback)
    ctx.register_hook("transform_llm_output", sleeps)
