"""What the dispatcher works with. It is built once, by the daemon, and has no state of its own."""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.access import Access
from gateway.agent import Agent
from gateway.commands import CommandTable
from gateway.engine import Engine
from gateway.hooks import HookRegistry
from gateway.messages import Message
from gateway.outbox import Outbox
from gateway.sessions import DEFAULT_RULES, KeyRules, Session, Sessions

Choose: TypeAlias = Callable[[Message, Session], Agent]
Report: TypeAlias = Callable[[], str]


@dataclass(frozen=True, slots=True)
class Reports:
    """What the rest of the gateway says of itself when a person asks in a chat."""

    status: Report
    hooks: Callable[[], Awaitable[str]]
    platforms: Report
    models: Callable[[], Sequence[str]]
    restart: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class House:
    """The parts below the dispatcher, and what it must ask above."""

    engine: Engine
    registry: HookRegistry
    sessions: Sessions
    outbox: Outbox
    access: Access
    commands: CommandTable
    choose: Choose
    reports: Reports
    keys: KeyRules = DEFAULT_RULES
    too_old: float = math.inf  # seconds after which a message that waited is not answered any more
