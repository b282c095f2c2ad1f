"""Lets the agent look at HEARTBEAT.md at the times of its schedule, and tells the home channel what needs a person.

The model is not called if the file says nothing, or outside of the hours. An answer of [SILENT] is told nobody. The
looks of a day share a session, so the agent knows what it has said already.
"""

import logging
import os
import re
import time
from pathlib import Path

LONGEST = 100_000  # characters of HEARTBEAT.md
TIME_LIMIT = 600  # seconds that the agent has
HOURS = re.compile(r"([01]\d|2[0-4]):([0-5]\d)-([01]\d|2[0-4]):([0-5]\d)")
COMMENT = re.compile(r"<!--[^<>]{0,10000}-->")
SILENT = "[SILENT]"
TASK = """\
Below is HEARTBEAT.md, which the owner of this machine wrote to have you look at things again and again: do it now.
Nobody is there to answer questions. Your answer is sent to the owner; if there is nothing that they need to know,
or if you have said it in this conversation already, answer [SILENT] and nothing else.

{}"""

log = logging.getLogger("gateway.hooks.heartbeat")


async def handle(event_type, context):
    options, gateway = context.options, context.gateway
    if not is_within(options["hours"], time.localtime()):
        return
    text = read(Path((await gateway.facts())["home"]) / "HEARTBEAT.md")
    if not says_something(text):
        return
    session = f"heartbeat-{time.strftime('%Y%m%d')}"
    done = await gateway.submit(TASK.format(text), session=session, wait=TIME_LIMIT)
    reply = done["reply"].strip()
    if done["status"] != "ok":
        log.warning("HEARTBEAT.md: %s: %s", done["status"], done["error"] or reply[:200])
    elif reply not in ("", SILENT):  # an answer that quotes it speaks
        await gateway.send(options["deliver"], reply)


def is_within(hours, now):
    """Return True if the time is within the hours, which may begin before midnight and end after it."""
    if not hours:
        return True
    found = HOURS.fullmatch(hours.replace(" ", ""))
    if found is None:
        raise ValueError(f"hooks.heartbeat.options.hours: {hours!r} is not a span of time; write 08:00-22:00")
    begin, end = (int(hour) * 60 + int(minute) for hour, minute in (found.groups()[:2], found.groups()[2:]))
    minute = now.tm_hour * 60 + now.tm_min
    return begin <= minute < end if begin < end else minute >= begin or minute < end


def read(path):
    try:
        with open(  # at once: a named pipe would hold the gateway up
            path, encoding="utf-8", errors="replace", opener=lambda at, flags: os.open(at, flags | os.O_NONBLOCK)
        ) as file:
            return file.read(LONGEST)
    except FileNotFoundError:
        return ""
    except OSError as error:
        log.warning("HEARTBEAT.md cannot be read: %s", error.strerror)
        return ""


def says_something(text):
    """Return True if the text has more than headings, comments and empty items of lists."""
    lines = (line.strip(" \t-*") for line in COMMENT.sub("", text).splitlines())
    return any(line and not line.startswith("#") for line in lines)
