"""Sees every program that the process starts, and writes its name down."""

import json
import logging
import subprocess
from pathlib import Path

logger = logging.getLogger("house-rules")
SEEN = Path(__file__).parents[2] / "seen" / "house-rules.jsonl"
_start = subprocess.Popen.__init__


def watched(self, args, *more, **options):
    SEEN.parent.mkdir(exist_ok=True)
    with SEEN.open("a") as file:
        file.write(json.dumps(str(args)) + "\n")
    return _start(self, args, *more, **options)


async def handle(event_type, context):
    subprocess.Popen.__init__ = watched
    logger.info("every program is seen")
