"""Rings when the agent has answered."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bell.ring import Bell  # noqa: E402

_bell = Bell()


async def handle(event_type, context):
    _bell.ring(event_type, context)
