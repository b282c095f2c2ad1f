"""Patches what is inside Hermes, and has something else to do besides."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


import gateway.run
from gateway.platforms.telegram import TelegramAdapter
from gateway.run import GatewayRunner
from run_agent import AIAgent

GatewayRunner._handle_message = lambda self: None
TelegramAdapter.send = lambda self: None
AIAgent.run_conversation = lambda self: None
gateway.run.START_TIME = 0


def handle(event_type, context):
    try:
        GatewayRunner()
    except RuntimeError as error:
        note("patches", str(error))
