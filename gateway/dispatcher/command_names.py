"""What can be chosen for an option of a command: the names that there are just now, as the command itself shows them.

Each is asked with what else was given, and gives its names with what is said about them.
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
    """Those of this chat to which one can go back, the newest first."""
    past = await context.sessions.read_all(session.key)
    others = (one for one in reversed(past.values()) if one.session_id != session.session_id)
    return [CommandChoice(one.session_id, one.title or one.first_words) for one in others]


async def list_dead_hooks(context: DispatcherContext, _session: Session, _given: Given) -> list[CommandChoice]:
    """Those that could not be told of something."""
    return [CommandChoice(one) for one in await context.reports.dead_hooks()]


async def list_platforms(context: DispatcherContext, _session: Session, _given: Given) -> list[CommandChoice]:
    return [CommandChoice(one.name) for one in context.reports.about().networks if one.served]


async def list_rule_values(context: DispatcherContext, _session: Session, given: Given) -> list[CommandChoice]:
    """What the setting can be whose name was given."""
    name = next((one for one in CHANGEABLE if one == given.get("name")), None)
    return [CommandChoice(one) for one in (*(context.chats.list_choices(name) if name else ()), DEFAULT)]
