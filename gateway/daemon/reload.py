"""The reload of the configuration in a running gateway: some settings take effect at once, others after a restart."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import anyio
import msgspec

from gateway.config.loading import Configuration
from gateway.config.platform_settings import list_accounts
from gateway.config.reference import list_differences
from gateway.config.schema import PREFIX
from gateway.config.settings import Settings
from gateway.daemon.agents import list_missing_libraries
from gateway.daemon.disk_configuration import list_changed_variables, stamp_files
from gateway.daemon.groups.hooks import Hooks, list_all_sources
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, NodePresence, Run
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.work import Work
from gateway.daemon.part_settings import access_rules_from, add_agent_hooks, mcp_specs_from
from gateway.daemon.unknown_names import find_unknown_hooks, find_unknown_prices, find_unknown_tools
from gateway.errors import GatewayError
from gateway.notify import Notifier
from gateway.records.activity import CALLER, Caller
from gateway.records.records import ActivityRecord

LoadConfiguration: TypeAlias = Callable[[], Configuration]
ApplyConfiguration: TypeAlias = Callable[[Configuration], Awaitable[None]]
Changes: TypeAlias = tuple[list[str], list[str]]
"""The changed settings, and the settings among these that take effect only after a restart."""
ReloadConfiguration: TypeAlias = Callable[[], Awaitable[Changes]]

log = logging.getLogger(__name__)


class ConfigurationReloader(msgspec.Struct, eq=False):
    """Reads the configuration again, and reports the result in the log and in `status`."""

    _built: Settings
    _load: LoadConfiguration
    _notifier: Notifier
    _lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

    async def reload(
        self, base: Base, run: Run, storage: Storage, apply: ApplyConfiguration, describe: Callable[[], str]
    ) -> Changes:
        """Reload the configuration, and return the changed settings. `describe` returns the line for the supervisor.

        Raises:
            GatewayError: the files cannot be used; the earlier configuration stays in effect.
        """
        async with self._lock:
            self._notifier.reloading()
            try:
                stamps, configuration = stamp_files(base.home), self._load()
                changed = self._compare(base.current.configuration, configuration)
                await apply(configuration)
                if run.disk:
                    run.disk.keep(configuration, stamps)
                await _report(run, storage, changed)
                return changed
            except GatewayError as error:
                log.error("the configuration was not reloaded, the one before goes on: %s", error)
                run.trouble = f"the configuration was not reloaded: {error}"
                raise
            finally:
                self._notifier.ready(describe())

    def _compare(self, before: Configuration, after: Configuration) -> Changes:
        changed = list(list_differences(before.settings, after.settings))
        variables = list_changed_variables(before.environ, after.environ)
        changed += [name for name in variables if not name.startswith(PREFIX)]  # the others are named as settings
        return changed, list(list_differences(self._built, after.settings, at_restart=True))


async def _report(run: Run, storage: Storage, changes: Changes) -> None:
    changed, later = changes
    run.trouble = f"changed, and in force after hermes-gateway restart: {', '.join(later)}" if later else ""
    log.info("the configuration was reloaded%s", f"; {run.trouble}" * bool(run.trouble))
    if changed:
        await storage.activity.write(ActivityRecord(what="reload", on=", ".join(changed)))


async def answer_signal(reload: ReloadConfiguration) -> None:
    """Reload at SIGHUP. The sender of the signal gets no answer; the log and `status` have the result."""
    CALLER.set(Caller("owner", "SIGHUP", "owner"))
    with suppress(GatewayError):
        await reload()


async def apply_configuration(
    base: Base,
    presence: NodePresence,
    people: People,
    hooks: Hooks,
    work: Work,
    networks: Networks,
    configuration: Configuration,
) -> None:
    """Apply the settings of another configuration that need no restart.

    Raises:
        ConfigError: the configuration cannot be used, and the gateway is unchanged.
    """
    settings = configuration.settings
    work.agents.build(configuration)  # a trial with the current tool servers, before anything changes
    await work.tool_journal.keep_only(settings.mcp_servers)
    work.tool_servers.update(mcp_specs_from(settings, base.home, hooks.parser, work.tool_journal.inherited))
    work.agents.now = work.agents.build(configuration)
    await people.access.apply_rules(access_rules_from(configuration))
    homes = {one.name: one.settings.home_channel for one in list_accounts(settings.platforms)}
    for platform in networks.platforms:
        platform.home_channel = homes.get(platform.name, "")
    base.current.configuration = configuration
    people.chats.apply_settings(settings)
    people.usage.totals.apply_settings(settings)
    report_unknown_names(base, hooks, work)
    if "lanes" in presence.nodes.roles:
        base.tasks.start_soon(work.agents.now.warm_models)
    await hooks.skill_hooks.replace_folders()
    await hooks.folder_hooks.follow(list_all_sources(base, hooks), add_agent_hooks(settings))


def report_unknown_names(base: Base, hooks: Hooks, work: Work) -> None:
    """Warn of unknown names, and of missing libraries that the settings need."""
    configuration = base.current.configuration
    for finding in (
        *find_unknown_tools(configuration, work.agents.now.tool_names),
        *find_unknown_hooks(configuration, list_all_sources(base, hooks)),
        *find_unknown_prices(configuration),
    ):
        log.warning("%s: %s; %s", finding.place, finding.what, finding.remedy)
    for line in list_missing_libraries(base.settings):
        log.warning("%s", line)
