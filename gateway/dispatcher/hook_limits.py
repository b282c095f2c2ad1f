"""The rights of a turn in which a restricted hook instructed the agent: those of a task that the hook submits."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from msgspec import structs

from gateway.agent import Ports
from gateway.agent.ports import load_no_approvals
from gateway.agent.toolbox.chat import GRANTED
from gateway.agent.toolbox.file_reach import READABLE
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.turn_chat import TurnChat
from gateway.jobs.journal import JobJournal
from gateway.lanes.turn import LaneTurn
from gateway.messages.authors import HOOK
from gateway.messages.message import Message
from gateway.messages.roles import pick_low_role, scope_of


def limit_ports(
    context: DispatcherContext,
    jobs: JobJournal,
    turn: LaneTurn,
    message: Message,
    ports: Ports,
    hooks: Collection[str],
) -> Ports:
    """Return the ports limited to a user's tools and files, and to the rights that all of these hooks have.

    The agent may read the files that the hooks may read by their manifests. A message to another chat and a job have
    the hook as their author. Lasting approvals do not count: people gave them for words of people.
    """
    limits = {name: context.agents.find_limits(name) for name in sorted(hooks)}
    author = f"{HOOK}{min(limits, key=lambda name: 'send' in limits[name].uses)}"
    role = pick_low_role(ports.facts["role"], "user")
    shared = set.intersection(*(set(one.reads or ()) for one in limits.values()))
    kept = {name: fact for name, fact in ports.facts.items() if name != GRANTED}
    facts = {**kept, "role": role, "scope": scope_of(role), "user_id": author, READABLE: tuple(sorted(shared))}
    said = replace(message, user_id=author, kind="internal", role=role, person=message.payer)
    chat, grant = TurnChat(turn, said, role, context, jobs), partial(context.access.fit_tool, role=role)
    return structs.replace(ports, facts=facts, grant=grant, chat=chat, approvals={}, load_approvals=load_no_approvals)
