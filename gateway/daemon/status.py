"""The reports of the gateway about itself: for `status`, for the supervisor, and in the box at the start."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
import msgspec

from gateway import __version__
from gateway.access.access_control import AccessControl
from gateway.config.node_settings import NodeRole
from gateway.config.platform_settings import list_accounts
from gateway.config.settings import Settings
from gateway.daemon.agents import list_missing_libraries
from gateway.daemon.cluster_table import list_differences
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, BindGroups, NodePresence, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.groups.work import Work
from gateway.daemon.hooks import list_hook_problems, list_sources
from gateway.daemon.installed_skills import list_unused_hooks
from gateway.daemon.nodes import BOT, SCHEDULE, TENDING, Nodes
from gateway.daemon.notices import list_all_notices
from gateway.daemon.own_process import describe_readers, read_memory_kb
from gateway.daemon.parts import NETWORK_WORDS, PART_WORDS
from gateway.daemon.platforms import PlatformPart, list_enabled, why_not_served
from gateway.daemon.webhooks import WebhookStatus, list_webhook_problems, list_webhook_statuses, list_webhooks
from gateway.dispatcher.context import OWN_PLATFORMS
from gateway.engine.interface import EngineHealth
from gateway.errors import AdapterError, EngineError
from gateway.hooks.stats import HookStatus
from gateway.jobs.journal import list_problems
from gateway.lanes.lanes import Lanes
from gateway.web.webhooks.receiver import Webhook
from gateway.worker.kernel import find_kernel_support
from gateway.worker.sandbox import SandboxSupport, find_support
from gateway.yaml_source.units import format_count

NAMED, PAIRED, ALONE = "the configuration", "paired as owner", "alone in the lists there"
LEASE_WORDS = {TENDING: "tends the journal", SCHEDULE: "calls hooks when they are due"}
NO_APPROVER = "no approver for other people's tool calls; name an owner in config.yaml"
BEGIN_ANEW = "or delete it, so that a new one begins: hermes-gateway sessions delete"
UNDONE: dict[NodeRole, str] = {
    "ingress": "no node serves the chat networks: the gateway reads nothing there, and pending replies wait",
    "lanes": "no node runs turns: messages wait",
    "hooks": "no node delivers pending events to durable hooks, or calls hooks with a `schedule:`",
    "web": "no node opens the port: the page is off, and programs get no answer",
}
LET_DO = "let a gateway on this journal do `{role}`, by `node.roles` in config.yaml or `run --roles`"
JOURNAL_PATIENCE, HEALTH_PATIENCE = 1.0, 3.0
UNHEARD = EngineHealth(False, f"the journal did not answer within {HEALTH_PATIENCE:g} s")
T = TypeVar("T")


class StatusFacts(NamedTuple):
    """The facts that all sections of a status share."""

    health: EngineHealth
    hooks: list[HookStatus]
    webhooks: list[WebhookStatus]
    jobs: list[str]


async def gather_facts(base: Base, run: Run, hooks: Hooks, turns: Turns) -> StatusFacts:
    """Gather the facts for a status. The check of the journal comes first, since it notices a bad disk."""
    health = await ask_journal(base.engine.health(), UNHEARD, HEALTH_PATIENCE)
    jobs = await ask_journal(list_problems(turns.dispatcher.jobs), list[str]())
    return StatusFacts(health, await list_hooks(hooks), list_gateway_webhooks(base, run, hooks, turns), jobs)


class StatusReport:
    """Everything that `status` shows. `bind` passes each section the groups it names."""

    def __init__(self, bind: BindGroups) -> None:
        self._disk, self._gather = bind(describe_disk), bind(gather_facts)
        self._process, self._work = bind(describe_process), bind(describe_work)
        self._attention = tuple(map(bind, ATTENTION))
        self._notices = bind(list_all_notices), bind(list_unused_skill_hooks)

    async def build(self) -> dict[str, Any]:
        unread = await self._disk()
        facts: StatusFacts = await self._gather()
        attention = [line for section in self._attention for line in section(facts)]
        remarks = [f"webhook {one.name}: {one.remark}" for one in facts.webhooks if one.remark]
        notices = [line for section in self._notices for line in section()]
        return {
            **self._process(),
            **describe_facts(facts),
            **await self._work(facts),
            "attention": attention,
            "notices": [*notices, *unread, *remarks],
        }


async def describe_disk(run: Run) -> list[str]:
    """List the files of the configuration that are not in effect."""
    said = await run.disk.describe() if run.disk else ""
    return [said] if said else []


def describe_process(base: Base, run: Run, presence: NodePresence, storage: Storage, people: People) -> dict[str, Any]:
    owners = list_owners(people.access)
    return {
        "state": run.state,
        "version": __version__,
        "pid": os.getpid(),
        "since": run.since,
        "home": str(base.home.root),
        "socket": str(base.home.socket),
        "configuration": str(base.home.config),
        "memory_kb": read_memory_kb(),
        "sandbox": describe_sandbox(find_support()),
        "search": {"progress": storage.search.progress.describe()},
        "backup": storage.backups.describe(),
        "calls": run.web.count_calls() if run.web else {},
        "web": run.web.describe() if run.web else {"url": "", "trouble": ""},
        "nodes": list_nodes(presence.nodes),
        "owners": owners,
        "names": people.names.describe(f"{one['platform']}:{one['user_id']}" for one in owners),
        "parts": [
            {**msgspec.to_builtins(part.facts), "does": PART_WORDS.get(part.name, NETWORK_WORDS)} for part in run.parts
        ],
    }


def describe_facts(look: StatusFacts) -> dict[str, Any]:
    return {
        "hooks": Counter(one.state for one in look.hooks),
        "behind": {one.name: one.behind for one in look.hooks if one.owed},
        "journal": msgspec.to_builtins(look.health),
        "webhooks": msgspec.to_builtins(look.webhooks),
    }


async def describe_work(base: Base, work: Work, turns: Turns, networks: Networks, look: StatusFacts) -> dict[str, Any]:
    agents, lanes = work.agents.now, turns.lanes
    return {
        "model": agents.model_description,
        "unattended": [tool.name for tool in agents.main.tools if tool.asks],
        "platforms": {one.name: describe_platform(one) for one in networks.platforms},
        "platforms_off": list_unserved_platforms(base.settings),
        "turns": {"running": lanes.running, "waiting": lanes.waiting},
        "intake": await describe_intake(lanes, look.health),
        "backlog": {
            "sessions": await ask_journal(lanes.depth(), 0),
            "replies": await ask_journal(turns.outbox.depths(), dict[str, int]()),
        },
    }


def describe_platform(network: PlatformPart) -> dict[str, Any]:
    """Describe the state of a network on this node; `served_by` is the other node that serves the network."""
    return {**msgspec.to_builtins(network.presence.facts), "served_by": network.served_by}


def list_nodes(nodes: Nodes) -> list[dict[str, Any]]:
    """List the gateways on the journal, this gateway first, with the start, roles, leases and shared work of each."""
    known = [nodes.describe(), *sorted(nodes.others.list_living(), key=lambda one: one.name)]
    return [
        {
            "name": one.name,
            "since": one.since,
            "roles": one.roles,
            "holds": one.holds,
            "works": one.works,
            "alone": sorted(LEASE_WORDS.get(key) or key.removeprefix(BOT) for key in one.holds),
        }
        for one in known
    ]


def list_undone_roles(nodes: Nodes, settings: Settings) -> list[str]:
    """List the wanted roles that no node has."""
    has_work: dict[str, bool] = {"ingress": bool(list_enabled(settings.platforms)), "web": settings.web.enabled}
    return [
        f"{what}; {LET_DO.format(role=role)}"
        for role, what in UNDONE.items()
        if has_work.get(role, True) and role not in nodes.roles and not nodes.others.has_role(role)
    ]


async def ask_journal(asked: Awaitable[T], otherwise: T, patience: float = JOURNAL_PATIENCE) -> T:
    """Return the answer of the journal, or `otherwise` if the disk or the servers do not answer in time."""
    with suppress(EngineError), anyio.move_on_after(patience):
        return await asked
    return otherwise


async def list_hooks(hooks: Hooks) -> list[HookStatus]:
    """List the hooks; leave out the journal's facts about them if the journal does not answer in time."""
    ask = partial(hooks.folder_hooks.status, with_offered=False)
    found = await ask_journal(ask(), None)
    return await ask(asks_journal=False) if found is None else found


def list_owners(access: AccessControl) -> list[dict[str, str]]:
    """List the owners on each network, and why they are owners. The person at the terminal always is an owner."""
    named = {(network, user): NAMED for network, users in access.rules.owners.items() for user in sorted(users)}
    named |= {(one.served_as, one.user_id): PAIRED for one in access.pairings.people if one.role == "owner"}
    named |= dict.fromkeys(access.owners.items(), ALONE)
    return [
        {"platform": name, "user_id": user, "why": why}
        for (name, user), why in named.items()
        if name not in OWN_PLATFORMS
    ]


def describe_sandbox(support: SandboxSupport) -> dict[str, Any]:
    """Describe which restrictions of a process this kernel enforces, and which not."""
    said = {"landlock": support.landlock, "filter": support.has_filter, "missing": list(support.missing)}
    return {**said, "exposed": describe_readers(os.geteuid())}


async def describe_intake(lanes: Lanes, health: EngineHealth) -> str:
    """Return `open`, or the reason why the gateway takes no messages now and the networks keep them."""
    if not health.ok:
        return f"stopped: {health.detail}"
    is_full = await ask_journal(lanes.is_full(), otherwise=False)
    return "stopped: too many conversations wait" if is_full else "open"


def list_unserved_platforms(settings: Settings) -> dict[str, str]:
    """List the networks that are not served, and why."""
    known = list_accounts(settings.platforms)
    return {one.name: reason for one in known if (reason := why_not_served(one.settings))}


def list_part_problems(run: Run, people: People, networks: Networks, _look: StatusFacts) -> list[str]:
    return [
        *(f"{part.facts.name}: {part.facts.detail}" for part in run.parts if part.facts.state == "restarting"),
        *(f"{one.name}: {what}" for one in networks.platforms for what in one.presence.facts.complaints),
        *([f"{NO_APPROVER}: {line}"] if (line := people.access.suggest_owner()) else []),
    ]


def list_turn_problems(base: Base, run: Run, storage: Storage, turns: Turns, look: StatusFacts) -> list[str]:
    lanes = turns.lanes
    return [
        *look.jobs,
        *(trouble.replace("\n", "; ") for trouble in (run.trouble, storage.retention.trouble) if trouble),
        *(f"conversations: {why}" for why in [lanes.too_new.describe()] if why),
        *(f"replies: {why}" for why in [turns.outbox.describe_too_new()] if why),
        *(f"{key} cannot go on: {why}; {BEGIN_ANEW} {key}" for key, why in lanes.list_live().items() if why),
        *list_missing_libraries(base.settings),
    ]


def list_work_problems(base: Base, presence: NodePresence, hooks: Hooks, work: Work, look: StatusFacts) -> list[str]:
    folder_hooks, tools = hooks.folder_hooks, work.tool_servers.servers.values()
    return [
        *list_hook_problems(look.hooks, find_kernel_support(), folder_hooks.trouble),
        *check_agent_hooks(base.settings, folder_hooks.has),
        *(f"tool server {one.spec.name}: {one.reason}" for one in tools if one.state == "down"),
        *(list_webhook_problems(look.webhooks) if "web" in presence.nodes.roles else []),
    ]


def list_node_problems(
    base: Base, presence: NodePresence, storage: Storage, hooks: Hooks, look: StatusFacts
) -> list[str]:
    nodes = presence.nodes
    return [
        *([f"no backup was made: {why}"] if (why := storage.backups.trouble) else []),
        *list_undone_roles(nodes, base.settings),
        *list_differences(nodes, hooks.folder_hooks),
        *([] if look.health.ok else [f"journal: {look.health.detail}"]),
        *(f"journal: {warning}" for warning in look.health.warnings),
    ]


ATTENTION: tuple[Callable[..., list[str]], ...] = (
    list_part_problems,
    list_turn_problems,
    list_work_problems,
    list_node_problems,
)
"""The functions that list the problems of `attention`, in this order."""


def check_agent_hooks(settings: Settings, is_known: Callable[[str], bool]) -> list[str]:
    """List the agents whose settings name unknown hooks."""
    return [
        f"agents.{agent}.hooks names {name!r}, which is not a hook: see `hermes-gateway hooks list`"
        for agent, own in settings.agents.items()
        for name in own.hooks
        if not is_known(name)
    ]


def list_gateway_webhooks(base: Base, run: Run, hooks: Hooks, turns: Turns) -> list[WebhookStatus]:
    """List the webhooks that can be called from outside, with their counts."""
    known = list_webhooks(base.current.configuration, hooks.folder_hooks)
    webhooks = {name: check_answer_place(base, turns, one) for name, one in known.items()}
    if run.web is None:
        return list(list_webhook_statuses(webhooks, "", {}))
    return list(run.web.list_webhooks(webhooks, base.settings.web.url))


def check_answer_place(base: Base, turns: Turns, webhook: Webhook) -> Webhook:
    """Return the webhook, with a remark if it names a chat that cannot get the answers of the agent."""
    to = webhook.settings.session
    if not to or to.startswith("agent:"):
        return webhook
    try:
        turns.context.places.resolve_destination(to, list_unserved_platforms(base.settings))
    except AdapterError as error:
        why = str(error).replace("\n", "; ")
        return webhook._replace(
            remark="; ".join(filter(None, [webhook.remark, f"the agent's answers stay here: {why}"]))
        )
    return webhook


def list_unused_skill_hooks(base: Base, work: Work) -> list[str]:
    """List the hooks of skills that do not run, even if no conversation has loaded the skill."""
    sources = list_sources(base.home, base.current.configuration)
    return [str(finding) for finding in list_unused_hooks(work.agents.now.skills, sources)]


def format_status_line(run: Run, turns: Turns) -> str:
    """Return the status line for the supervisor."""
    up = [part.facts.name for part in run.parts if part.facts.state == "up"]
    return f"{run.state}: {', '.join(up)}; {format_count(turns.lanes.running, 'turn')}"
