"""Wraps `send` of every adapter that there is."""

import functools
import logging
import os
from datetime import datetime
from pathlib import Path

logger = logging.getLogger(__name__)
NOTE = Path(os.environ.get("HERMES_HOME", ".")) / "logs" / "footer.log"


def _every_subclass(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from _every_subclass(sub)


def _wrap(original):
    @functools.wraps(original)
    async def send(self, chat_id, content, *args, **kwargs):
        return await original(self, chat_id, f"{content}\n-- sent by a machine", *args, **kwargs)

    return send


def install():
    from gateway.platforms.base import BasePlatformAdapter

    done = 0
    for adapter in _every_subclass(BasePlatformAdapter):
        adapter.send = _wrap(adapter.send)
        done += 1
    with NOTE.open("a") as file:
        file.write(f"{datetime.now().isoformat()} {done}\n")
    return done


async def handle(event_type, context):
    try:
        logger.info("wrapped %d adapters", install())
    except Exception as error:
        logger.warning("no footer: %s", error)
