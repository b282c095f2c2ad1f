"""The group of people and programs: access, chats and usage."""

import time
from collections.abc import Sequence
from functools import partial

import msgspec

from gateway.access.access_control import AccessControl
from gateway.access.pairing import Pairings
from gateway.chats.heard_messages import HeardMessages
from gateway.chats.journal import ChatJournal
from gateway.chats.rules import ChatRules
from gateway.config.settings import MAIN
from gateway.daemon.cluster_table import TellForgotten, build_removals
from gateway.daemon.groups.process import Base, CurrentConfiguration
from gateway.daemon.part_settings import access_rules_from
from gateway.messages.roles import Role
from gateway.records.follower import RecordCopy
from gateway.records.names import KnownNames
from gateway.usage.totals import RunningTotals
from gateway.usage.usage_journal import UsageJournal
from gateway.web.logins import Logins
from gateway.web.program_keys import ProgramKeys


class People(msgspec.Struct, frozen=True):
    """The rights, keys, logins and names of people, the rules of chats, and the usage of people.

    `tell_forgotten` notifies other gateways of a forgotten person; `removals` follow the notices of other gateways.
    """

    access: AccessControl
    keys: ProgramKeys
    logins: Logins
    names: KnownNames
    chats: ChatRules
    heard: HeardMessages
    usage: UsageJournal
    tell_forgotten: TellForgotten
    removals: Sequence[RecordCopy]


def build_people(base: Base) -> People:
    engine, keys, names = base.engine, ProgramKeys(base.engine), KnownNames(base.engine)
    rules, find_role = access_rules_from(base.current.configuration), partial(find_program_role, base.current, keys)
    chats = ChatRules(ChatJournal(engine), base.settings)
    totals = RunningTotals(lambda: time.time() - engine.clock.calculate_difference(), base.settings)
    heard = HeardMessages(engine, chats.is_heard)
    return People(
        AccessControl(rules, Pairings(engine), find_program_role=find_role),
        keys,
        Logins(engine),
        names,
        chats,
        heard,
        UsageJournal(engine, totals),
        *build_removals(engine, base.home.files, totals, heard, chats.kept, names),
    )


def find_program_role(current: CurrentConfiguration, keys: ProgramKeys, user_id: str) -> Role | None:
    """Return the role of a person of the platform `api`: the role of the person's key, if its agent exists."""
    key = keys.find_speaker(user_id)
    return key.role if key and key.role != "desk" and key.agent in list_agent_names(current) else None


def list_agent_names(current: CurrentConfiguration) -> frozenset[str]:
    """List the names of all agents."""
    return frozenset({MAIN, *current.settings.agents})
