"""Tools that send messages, and polls and places where the network has them.

A message goes to the person before the work is done, to another chat, or later as a reminder.
"""

from dataclasses import replace
from datetime import datetime
from time import time
from typing import Annotated, TypeAlias

from msgspec import Meta

from gateway.agent.tools import ChatPort, Tool, ToolContext, tool_from
from gateway.errors import AgentError
from gateway.messages.parts import (
    FEWEST_OPTIONS,
    LONGEST_LINE,
    LONGEST_NAME,
    MOST_SENT,
    Location,
    Poll,
    check_part,
)
from gateway.yaml_source.units import parse_duration

LONGEST_TEXT = 4000
MAX_AHEAD = 366 * 86_400.0
Option: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]


def make_chat_tools() -> tuple[Tool, ...]:
    """Make `send_message`, which asks before it writes elsewhere, `send_poll`, `send_place`, and `schedule`."""
    send = tool_from(
        send_message, asks=lambda args, _facts: bool(args.get("to")), subject=lambda args: str(args.get("to") or "")
    )
    found = (
        replace(send, narrow=tool_from(send_reply, name=send.name)),
        # They say here what the agent could have said in words, so everyone who may use trusted tools has
        # them.
        replace(tool_from(send_poll, repeatable=True), is_trusted=True, sends=Poll),
        replace(tool_from(send_place, repeatable=True), is_trusted=True, sends=Location),
        tool_from(schedule),
        tool_from(scheduled, repeatable=True, read_only=True),
        tool_from(unschedule, repeatable=True),
    )
    return tuple(replace(one, changes_files=False) for one in found)


async def send_message(
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)], context: ToolContext, to: str = ""
) -> str:
    """Send a message now: to the person you talk with, or, with `to`, elsewhere (`platform:chat`, or `home`)."""
    return await _chat(context).say(text, to, context.call_id)


async def send_reply(text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)], context: ToolContext) -> str:
    """Send a message now to the person you talk with."""
    return await _chat(context).say(text, "", context.call_id)


async def send_poll(
    question: Annotated[str, Meta(min_length=1, max_length=LONGEST_LINE)],
    options: Annotated[tuple[Option, ...], Meta(min_length=FEWEST_OPTIONS, max_length=MOST_SENT)],
    context: ToolContext,
) -> str:
    """Send a poll to this conversation, on which people there vote. You are not told how they do."""
    return await _send_part(context, Poll(question=question, options=options))


async def send_place(
    latitude: Annotated[float, Meta(ge=-90, le=90)],
    longitude: Annotated[float, Meta(ge=-180, le=180)],
    context: ToolContext,
    title: Annotated[str, Meta(max_length=LONGEST_NAME)] = "",
    address: Annotated[str, Meta(max_length=LONGEST_LINE)] = "",
) -> str:
    """Send a place on earth to this conversation, which people there see on a map; in degrees."""
    return await _send_part(context, Location(latitude=latitude, longitude=longitude, title=title, address=address))


async def schedule(
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)], when: str, context: ToolContext
) -> str:
    """Be reminded of something in this conversation later. `when`: `20m`, `3h`, `2d`, or a time as 2030-12-31T09:00."""
    at = parse_time(when, time())
    number = await _chat(context).remind(text, at, context.call_id)
    return f"Reminder {number} is set for {datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}."


async def scheduled(context: ToolContext) -> str:
    """List the reminders of this conversation."""
    found = await _chat(context).list_reminders()
    rows = [f"{one}: {datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M %Z}: {text}" for one, at, text in found]
    return "\n".join(rows) or "There is none."


async def unschedule(reminder: str, context: ToolContext) -> str:
    """Take a reminder back."""
    if not await _chat(context).forget(reminder):
        raise AgentError(f"there is no reminder {reminder!r}; `scheduled` lists them")
    return f"Reminder {reminder} is taken back."


def parse_time(when: str, now: float) -> float:
    """Read a time. Raises AgentError when it is none, past, or more than a year ahead."""
    ahead = parse_duration(when.strip())
    if ahead is None:
        try:
            ahead = datetime.fromisoformat(when.strip()).timestamp() - now
        except ValueError:
            raise AgentError(f"{when!r} is no time; write 20m, 3h, 2d or 2030-12-31T09:00") from None
    if not 0 < ahead <= MAX_AHEAD:
        raise AgentError(f"{when!r} is past, or more than a year ahead")
    return now + ahead


async def _send_part(context: ToolContext, part: Poll | Location) -> str:
    try:
        checked = check_part(part)
    except ValueError as error:
        raise AgentError(str(error)) from None
    return await _chat(context).send_part(checked, context.call_id)


def _chat(context: ToolContext) -> ChatPort:
    if context.chat is None:
        raise AgentError("there is no chat here to speak in")
    return context.chat
