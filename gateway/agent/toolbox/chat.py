"""Tools that send messages, and polls and places where the network has them.

A message goes to the person before the work is done, to another chat, or later as a reminder.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

from gateway.agent.toolbox.shell import LONGEST_COMMAND, ShellOptions
from gateway.agent.tools import ChatPort, ScheduleAction, ScheduledWork, Tool, ToolContext, tool_from
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

LONGEST_TEXT = 4000
SEND_MESSAGE = "send_message"
GRANTED = "granted"  # among the facts of a turn: tells if it may write to a chat without a question
DONE: Mapping[ScheduleAction, str] = {"remove": "taken back", "pause": "paused", "resume": "resumed"}
JobText: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TEXT)]
JobCommand: TypeAlias = Annotated[str, Meta(max_length=LONGEST_COMMAND)]
Option: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]


def make_chat_tools(shell: ShellOptions | None = None) -> tuple[Tool, ...]:
    """Make `send_message`, `send_poll`, `send_place`, and `schedule`; they ask before they write elsewhere."""

    async def schedule(
        when: str, context: ToolContext, text: JobText = "", command: JobCommand = "", to: str = ""
    ) -> str:
        """Be reminded later, or again and again, here or `to` elsewhere; or have a shell command run.

        `when`: `20m`, `2d`, a time as 2030-12-31T09:00, `every 2h`, or a cron line.
        """
        if bool(text) == bool(command):
            raise AgentError("give a text, or a command, and not both")
        is_allowed = needs_approval(shell, command, context.facts)  # and so a person did, or this would not run
        return await _chat(context).schedule(ScheduledWork(text, command, is_allowed, to), when, context.call_id)

    async def schedule_here(when: str, context: ToolContext, text: JobText = "", command: JobCommand = "") -> str:
        """Be reminded here later, or again and again; or have a shell command run.

        `when`: `20m`, `2d`, a time as 2030-12-31T09:00, `every 2h`, or a cron line.
        """
        return await schedule(when, context, text, command)

    def asks(args: dict[str, Any], facts: Mapping[str, Any]) -> bool:
        command = str(args.get("command") or "")
        is_repeated = is_timetable(str(args.get("when")))
        return is_repeated or is_to_other(args, facts) or needs_approval(shell, command, facts)

    def subject(args: dict[str, Any]) -> str | None:
        if is_timetable(str(args.get("when"))):
            return None  # what repeats is shown to a person whole, each time
        return f"{args.get('to') or ''} {args.get('command') or ''}".strip()

    send = tool_from(send_message, asks=is_to_other, subject=lambda args: str(args.get("to") or ""))
    found = (
        replace(send, narrow=tool_from(send_reply, name=send.name), bind=bind_chat),
        # They say here what the agent could have said in words, so everyone who may use trusted tools has
        # them.
        replace(tool_from(send_poll, repeatable=True), is_trusted=True, sends=Poll),
        replace(tool_from(send_place, repeatable=True), is_trusted=True, sends=Location),
        replace(
            tool_from(schedule, asks=asks, subject=subject),
            narrow=replace(tool_from(schedule_here, name="schedule", asks=asks, subject=subject), bind=bind_job),
            bind=bind_job,
        ),
        tool_from(scheduled, repeatable=True, read_only=True),
        tool_from(unschedule, repeatable=True),
    )
    return tuple(one if one.changes == "nothing" else replace(one, changes="messages") for one in found)


async def send_message(
    text: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)], context: ToolContext, to: str = ""
) -> str:
    """Send a message now: to the person you talk with, or, with `to`, elsewhere (`platform:chat`, or `home`)."""
    return await _chat(context).say(text, to, context.call_id)


def is_to_other(args: dict[str, Any], facts: Mapping[str, Any]) -> bool:
    """Return True for a message elsewhere, unless the owner has granted it to the turn."""
    return bool(args.get("to")) and not (GRANTED in facts and facts[GRANTED](args["to"]))


def bind_chat(args: dict[str, Any], chat: ChatPort) -> dict[str, Any]:
    """Put the id of the chat in the place of its name."""
    return args | {"to": chat.bind(args["to"])} if args.get("to") else args


def bind_job(args: dict[str, Any], chat: ChatPort) -> dict[str, Any]:
    """Put the id of the chat in the place of its name, and check a command before any person reads it."""
    if args.get("command"):
        chat.check_shell()
    return bind_chat(args, chat)


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


async def scheduled(context: ToolContext, reminder: str = "") -> str:
    """List the reminders of this conversation, or how the last times of one ended."""
    return await _chat(context).list_scheduled(reminder) or "No reminders."


async def unschedule(reminder: str, context: ToolContext, action: ScheduleAction = "remove") -> str:
    """Take a reminder back, or pause or resume it."""
    await _chat(context).change_scheduled(reminder, action)
    return f"Reminder {reminder} is {DONE[action]}."


def needs_approval(shell: ShellOptions | None, command: str, facts: Mapping[str, Any]) -> bool:
    """Return True if a person must allow the command of a job first, as of a call of `shell`."""
    return shell is not None and bool(command) and shell.needs_approval(command, facts)


def is_timetable(when: str) -> bool:
    """Return True for a time that repeats; a duration, a date, or a word that is not a time needs no question."""
    text = when.strip()
    if not text.startswith("@") and len(text.split()) < 2:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return True
    return False


async def _send_part(context: ToolContext, part: Poll | Location) -> str:
    try:
        checked = check_part(part)
    except ValueError as error:
        raise AgentError(str(error)) from None
    return await _chat(context).send_part(checked, context.call_id)


def _chat(context: ToolContext) -> ChatPort:
    if context.chat is None:
        raise AgentError("this turn has no chat to write to")
    return context.chat
