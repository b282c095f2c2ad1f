"""The current choices for an option of a command, as the command itself lists them.

Each function gets the values of the other options, and returns names with descriptions.
"""

from collections.abc import Mapping

from gateway.chats.rules import CHANGEABLE
from gateway.dispatcher.commands import CommandChoice
from gateway.dispatcher.context import DispatcherContext
from gateway.sessions.session import Session

DEFAULT = "default"

Given = Mapping[str, object]


async def list_models(context: DispatcherContext, _session: Session, _given: Given) -> list[CommandChoice]:
    return [CommandChoice(one) for one in dict.fromkeys((*context.reports.models(), DEFAULT))]


async def list_sessions(context: DispatcherContext, session: Session, _given: Given) -> list[CommandChoice]:
    """List the earlier sessions of this chat, newest first."""
    past = await context.sessions.read_all(session.key)
    others = (one for one in reversed(past.values()) if one.session_id != session.session_id)
    return [CommandChoice(one.session_id, one.title or one.first_words) for one in others]


async def list_dead_hooks(context: DispatcherContext, _session: Session, _given: Given) -> list[CommandChoice]:
    """List the hooks with dead letters."""
    return [CommandChoice(one) for one in await context.reports.dead_hooks()]


async def list_platforms(context: DispatcherContext, _session: Session, _given: Given) -> list[CommandChoice]:
    return [CommandChoice(one.name) for one in context.places.about().networks if one.served]


async def list_rule_values(context: DispatcherContext, _session: Session, given: Given) -> list[CommandChoice]:
    """List the values of the named setting."""
    name = next((one for one in CHANGEABLE if one == given.get("name")), None)
    return [CommandChoice(one) for one in (*(context.chats.list_choices(name) if name else ()), DEFAULT)]
