"""Notes what is being worked on, and takes its time."""

import asyncio
import json
import os
from pathlib import Path

NOTE = Path(os.environ["HERMES_HOME"]) / "curfew.json"


async def handle(event_type, context):
    await asyncio.sleep(0.5)
    NOTE.write_text(json.dumps({"message": context["message"]}))
