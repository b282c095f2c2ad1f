"""Hooks without the gateway: the state that each would have, and a trial of one in the same kind of process.

So you can try a hook while you write it, in any folder, and in the CI of a repository of hooks.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import msgspec
from msgspec.structs import replace

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.hooks.check import find_folder, list_all
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.daemon.hooks import build_hook_environment, list_sources
from gateway.daemon.installed_skills import list_skills, list_unused_hooks
from gateway.errors import HookError, unwrap_error
from gateway.hooks import HookRegistry
from gateway.hooks.folders.readiness import check_readiness
from gateway.hooks.folders.trial import HookTrial, run_trials
from gateway.hooks.manifests.manifest_keys import WrittenFor
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.switches import HookSwitches
from gateway.hooks.services import HookServices
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.tool_names import TOOL_SERVERS


def run_offline(name: str, home: Home, event: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Try a hook by its name or path, with the answer of the gateway's verb `hooks.test`.

    Raises:
        HookError: the hook was not found, or does not start.
    """
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    folder = find_folder(name, home, list_sources(home, configuration))
    TOOL_SERVERS.set(lambda: configuration.settings.mcp_servers)
    try:
        trials = anyio.run(partial(_run_trials, folder, home, configuration, event, fields))
    except BaseExceptionGroup as group:
        raise unwrap_error(group) from None  # the task groups around it mean nothing to the hook's author
    return [{"ok": not trial.error, **msgspec.to_builtins(trial)} for trial in trials]


def read_offline(home: Home) -> tuple[list[HookVersion], list[str]]:
    """Read the hooks that the gateway would have, without starting them, and why some hooks of skills would not run.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    unused = list_unused_hooks(list_skills(home), list_sources(home, configuration))
    return anyio.run(partial(_read_all, home, configuration)), [*map(str, unused)]


async def _read_all(home: Home, configuration: Configuration) -> list[HookVersion]:
    switches = HookSwitches(home.hook_state)
    async with _open_services(home, configuration) as services:
        return [
            check_readiness(version.source.inspect(wanted), services, switches)
            for version in list_all(list_sources(home, configuration))
            if (wanted := replace(version, written_for=_written_for(services, version)))
        ]


async def _run_trials(
    folder: HookVersion, home: Home, configuration: Configuration, event: str, fields: Mapping[str, Any]
) -> Sequence[HookTrial]:
    async with _open_services(home, configuration) as services:
        folder = replace(folder, written_for=_written_for(services, folder))
        version = check_readiness(folder.source.inspect(folder), services, HookSwitches(home.hook_state))
        if version.state not in ("registered", "disabled") or version.manifest is None:
            raise HookError(f"{folder.name} is {version.state}: {version.reason}")
        return await run_trials(version, services, event, fields)


@asynccontextmanager
async def _open_services(home: Home, configuration: Configuration) -> AsyncIterator[HookServices]:
    """Open the services to inspect and try a hook; the first trial starts a process."""
    settings, around = configuration.settings.hooks, build_hook_environment(home, configuration, ())
    async with (
        HookRegistry() as registry,
        ForkServerClient(ForkServerSettings(processes=settings.processes), around.redactor.clean) as fork_server,
        anyio.create_task_group() as tasks,
    ):
        yield HookServices(settings, around, registry, fork_server, _refuse_grant, tasks)
        tasks.cancel_scope.cancel()


def _written_for(services: HookServices, version: HookVersion) -> WrittenFor | None:
    """Return the configuration's `written_for` of a hook."""
    return services.settings_of(version.name, version.short).written_for


async def _refuse_grant(_hook: str, verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise HookError(f"no gateway runs, so `{verb}` has no effect")
