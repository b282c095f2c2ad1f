"""The folder hooks of this gateway: their places, their environment, and reports about them."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

import anyio

from gateway.adapters.page.places import PLATFORM as PAGE
from gateway.adapters.terminal import PLATFORM as TERMINAL
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.platform_settings import list_accounts
from gateway.config.secrets import list_public_variables
from gateway.config.settings import GUEST_TOOLS, MAIN, USER_TOOLS
from gateway.daemon.dialects import TOOLS, add_variables, list_places
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.places.sources import Source
from gateway.hooks.services import HookEnvironment, HookPorts
from gateway.hooks.stats import NEEDS_ATTENTION, HookState, HookStatus
from gateway.jobs.schedule import HookPresence, ScheduledHook
from gateway.messages.message import ChatType
from gateway.messages.roles import ROLES, Role, is_admin
from gateway.threads import run_in_thread
from gateway.upgrade.plan import UpgradeError, UpgradePlan, read_plan
from gateway.upgrade.start import find_new_records
from gateway.worker.kernel import KernelSupport
from gateway.worker.process_marks import mark_of
from gateway.yaml_source.units import format_count, format_duration

START_PATIENCE = 60.0  # seconds
UNAVAILABLE_STATES: frozenset[HookState] = frozenset({"broken", "missing", "pending", "refused"})


def list_sources(home: Home, configuration: Configuration, others: Iterable[Source] = ()) -> tuple[Source, ...]:
    """List the places of hooks. `others` are the hooks of other gateways on a shared journal."""
    return list_places(home, configuration.environ, configuration.settings.hooks.dirs, others)


def list_own_values(configuration: Configuration) -> dict[str, tuple[str, ...]]:
    """List the gateway's own values for the event fields that hooks filter by."""
    return {
        "platform": (*configuration.schema.platforms, TERMINAL, PAGE),
        "account": tuple(one.account for one in list_accounts(configuration.settings.platforms)),
        "chat_type": get_args(ChatType),
        "role": ROLES,
        "scope": ("all", *ROLES),
        "agent": (MAIN, *configuration.settings.agents),
        "tool": tuple(dict.fromkeys((*USER_TOOLS, *GUEST_TOOLS, *TOOLS))),
    }


def build_hook_environment(
    home: Home, configuration: Configuration, platforms: tuple[str, ...], ports: HookPorts | None = None
) -> HookEnvironment:
    return HookEnvironment(
        environ=add_variables(configuration),
        home=home.root,
        logs=home.hook_logs,
        state=home.hook_state,
        platforms=platforms,
        packages=[place for place in sys.path if place],
        redactor=configuration.redactor,
        public=list_public_variables(configuration.schema, configuration.settings),
        mark=mark_of(home.lock),
        known_values=list_own_values(configuration),
        ports=ports or HookPorts(),
    )


def list_scheduled(hooks: FolderHooks) -> Iterator[ScheduledHook]:
    """List the hooks that have a schedule."""
    for manifest, state, is_off in hooks.scheduled:
        presence: HookPresence = "off" if is_off else "away" if state in UNAVAILABLE_STATES else "there"
        yield ScheduledHook(manifest.folder, manifest.schedule, presence, manifest.delivery == "durable")


async def describe_hooks(hooks: FolderHooks, role: Role) -> str:
    """Describe the hooks in a chat. Only admins see the reasons, which may quote other people."""
    rows = [
        f"{status.name}: {status.state}, {format_count(status.calls, 'call')}, {status.failures} failed"
        + (f" ({status.reason})" if status.reason and is_admin(role) else "")
        for status in await hooks.status(with_offered=False)
    ]
    return "\n".join(rows) or "There are no hooks."


async def describe_letters(hooks: FolderHooks) -> str:
    """Describe in a chat how many dead letters each hook has."""
    rows = [
        f"{status.name}: {format_count(status.dead, 'dead letter')}" for status in await hooks.status() if status.dead
    ]
    return "\n".join(rows) or "There are no dead letters."


async def list_dead_hooks(hooks: FolderHooks) -> list[str]:
    """List the hooks that have dead letters."""
    return [status.name for status in await hooks.status() if status.dead]


def describe_late_hook(status: HookStatus) -> str:
    behind, waiting = format_duration(round(status.behind)), format_count(status.owed, "event")
    return (
        f"hook {status.name} is {behind} behind: the journal holds {waiting} for it; "
        f"to see how long its calls take, and which fail: hermes-gateway hooks info {status.name}"
    )


def list_hook_problems(known: Sequence[HookStatus], kernel: KernelSupport, trouble: str) -> list[str]:
    """List the problems of hooks; `trouble` is a problem that concerns all hooks."""
    found = [f"hook {one.name} is {one.state}: {one.reason}" for one in known if one.needs_attention]
    restricted = [one for one in known if one.restricted and one.state != "disabled"]
    unheld = dict.fromkeys(what for one in restricted for what in (*one.unheld, *kernel.unheld))
    held_less = [f"hooks are restricted, and not in all of it: {what}" for what in unheld]
    late = [describe_late_hook(one) for one in known if one.is_behind]
    return [*found, *late, *held_less, *([trouble] if trouble else [])]


async def check_hooks(home: Home, hooks: FolderHooks) -> None:
    """Check at the first start after an upgrade that each earlier hook still runs: a downgrade loses no data yet.

    Raises:
        UpgradeError: a hook that ran before the upgrade does not run now.
    """
    plan = read_plan(home)
    if plan is None or Path(plan.prefix) != Path(sys.prefix) or not plan.has_new():
        return
    if await run_in_thread(find_new_records, home, plan):
        return  # the new version has worked already, and stays
    with anyio.move_on_after(START_PATIENCE):
        await hooks.settled()
    if lost := list_missing_hooks(plan, await hooks.status()):
        raise UpgradeError(f"with version {plan.after} these hooks do not run any more: {'; '.join(lost)}")


def list_missing_hooks(plan: UpgradePlan, found: Iterable[HookStatus]) -> list[str]:
    """List the hooks of the plan that do not run any more, each with its reason."""
    known = {one.name: one for one in found}
    return [
        f"{name} ({known[name].reason or known[name].state})"
        for name in plan.hooks
        if name in known and known[name].state in NEEDS_ATTENTION
    ]
