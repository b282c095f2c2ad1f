"""Says something in a chat."""

import json

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


from tools.send_message_tool import send_message_tool


async def handle(event_type, context):
    if "please send" in context["message"]:
        for args in (
            {"action": "send", "target": "terminal:other", "message": "said by a hook MEDIA:/tmp/x.png"},
            {"target": "telegram", "message": "nobody serves it"},
            {"target": "terminal:other"},
            {"action": "list"},
            {"action": "react", "target": "telegram", "emoji": "x"},
        ):
            note("sends", json.loads(send_message_tool(args)))
