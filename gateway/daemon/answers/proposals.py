"""Answers about proposals. A person on the page proposes; the gateway does what an owner allows elsewhere."""

import hashlib
from functools import partial
from typing import Any

import msgspec

from gateway.adapters.page.places import PLATFORM
from gateway.adapters.shared.folder import load_settings_schema
from gateway.daemon.answers.people import people_forget, people_show
from gateway.daemon.dialects import DIALECTS
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.reload import ReloadConfiguration
from gateway.errors import ConfigError, RoleRefused
from gateway.late_imports import load_modules
from gateway.messages.message import LiteralText
from gateway.people.person import parse_person
from gateway.people.verbs import PersonParams
from gateway.proposals.proposals import Plan, Proposer
from gateway.proposals.settings_plan import SettingsPlan, collect_settings
from gateway.proposals.verbs import ProposalIdParams, ProposalParams
from gateway.questions.proposals import DESK, Proposal
from gateway.records.activity import CALLER, OWNER_LOGIN, PAGE_PLACE
from gateway.threads import run_in_thread

MOST_LISTED = 20
HOOK_PLAN = "gateway.proposals.hook_plan"  # loaded at its first use, since this module loads the installer


def find_proposer() -> Proposer:
    """Return the person on the page who makes this call, under one name for all their logins.

    Raises:
        RoleRefused: the caller is not on the page.
    """
    caller = CALLER.get(None)
    if caller is None or not caller.place.startswith(PAGE_PLACE):
        raise RoleRefused("proposals are made on the page; at the terminal you change a setting by config set")
    name = "owner" if caller.name.startswith(OWNER_LOGIN) else caller.name
    while name.startswith(f"{PLATFORM}:"):  # a link from the page's own chat is for the same person
        name = name.removeprefix(f"{PLATFORM}:")
    return Proposer(name, caller.place, caller.role)


async def proposals_make(
    base: Base,
    storage: Storage,
    people: People,
    hooks: Hooks,
    turns: Turns,
    reload_configuration: ReloadConfiguration | None,
    params: ProposalParams,
) -> Any:
    by = find_proposer()
    await turns.proposals.check(by.name)  # a plan costs more than this look
    if params.values and params.kind in ("hook", "person"):
        raise ConfigError(f"a proposal of the kind {params.kind} takes no values")
    if params.kind == "hook":
        [loaded] = await run_in_thread(load_modules, HOOK_PLAN)
        plan: Plan = loaded.HookPlan(base.home, params.name, DIALECTS, hooks.folder_hooks.reload)
    elif params.kind == "person":
        plan = PersonPlan(base, storage, people, params.name)
    else:
        schema, values = load_settings_schema(), collect_settings(params.kind, params.name, params.values)
        make = partial(SettingsPlan, schema, base.home, base.current.configuration, params.kind, values)
        plan = await run_in_thread(partial(make, reload_configuration))
    return show(await turns.proposals.make(plan, by))


async def proposals_list(people: People, turns: Turns) -> Any:
    kept = [one.proposal for one in await turns.proposals.journal.list()]
    found = [one for one in kept if one.kind != DESK][:MOST_LISTED]  # the owner's own calls are not for a page
    ids = [name for one in found for name in (one.by, one.answered_by, one.name if one.kind == "person" else "")]
    return {"proposals": [show(one) for one in found], "names": people.names.describe(filter(None, ids))}


async def proposals_withdraw(turns: Turns, params: ProposalIdParams) -> Any:
    return show(await turns.proposals.withdraw(params.id, find_proposer().name))


class PersonPlan:
    """The plan of a proposal to remove everything that the gateway keeps of a person."""

    kind = "person"

    def __init__(self, base: Base, storage: Storage, people: People, name: str) -> None:
        self._parts = base, storage, people
        self._person = PersonParams(str(parse_person(name)))
        self.name = self._person.person

    def make_digest(self) -> bytes:
        return hashlib.sha256(self.name.encode()).digest()

    async def look(self) -> tuple[LiteralText, ...]:
        found = await people_show(*self._parts, self._person)
        role = f"{found['role']}; " if found["role"] else ""
        kept = f"{len(found['conversations'])} conversations, {found['files']} files, {found['notes']} notes"
        shown = self._parts[2].names.people.describe(self.name)
        return LiteralText("Forget a person, for good:", shown), LiteralText("Kept of them:", f"{role}{kept}")

    async def apply(self) -> str:
        await people_forget(*self._parts, self._person)
        return "what was kept of them is removed"


def show(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal for the page, without the token by which an owner answers the proposal."""
    found: dict[str, Any] = msgspec.to_builtins(proposal)
    return {name: value for name, value in found.items() if name not in ("mark", "run", "begun")}
