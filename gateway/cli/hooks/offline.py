"""A trial of a hook without the gateway: in the same kind of process, with the settings as they stand in the files.

So that a hook can be tried while it is written, in whatever folder it lies, and in the CI of a repository of hooks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import msgspec

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.hooks.check import find_folder
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.daemon.hooks import build_hook_environment, list_sources
from gateway.errors import HookError, unwrap_error
from gateway.hooks import HookRegistry
from gateway.hooks.folders.readiness import check_readiness
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.sources import HookVersion
from gateway.hooks.folders.switches import HookSwitches
from gateway.hooks.folders.trial import HookTrial, run_trials
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.tool_names import TOOL_SERVERS


def run_offline(name: str, home: Home, event: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """As the gateway answers `hooks.test`, for a hook by its name or its path.

    Raises:
        HookError: there is no such hook, or it does not start.
    """
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    folder = find_folder(name, home, list_sources(home, configuration))
    TOOL_SERVERS.set(lambda: configuration.settings.mcp_servers)
    try:
        trials = anyio.run(partial(_run_trials, folder, home, configuration, event, fields))
    except BaseExceptionGroup as group:
        raise unwrap_error(group) from None  # the task groups around it say nothing to whoever wrote the hook
    return [{"ok": not trial.error, **msgspec.to_builtins(trial)} for trial in trials]


async def _run_trials(
    folder: HookVersion, home: Home, configuration: Configuration, event: str, fields: Mapping[str, Any]
) -> Sequence[HookTrial]:
    settings, around = configuration.settings.hooks, build_hook_environment(home, configuration, ())
    async with (
        HookRegistry() as registry,
        ForkServerClient(ForkServerSettings(processes=settings.processes), around.redactor.clean) as fork_server,
        anyio.create_task_group() as tasks,
    ):
        services = HookServices(settings, around, registry, fork_server, _refuse_grant, tasks)
        folder = replace(folder, written_for=services.settings_of(folder.name, folder.short).written_for)
        version = check_readiness(folder.source.inspect(folder), services, HookSwitches(home.hook_state))
        if version.state not in ("registered", "disabled") or version.manifest is None:
            raise HookError(f"{folder.name} is {version.state}: {version.reason}")
        trials = await run_trials(version, services, event, fields)
        tasks.cancel_scope.cancel()
    return trials


async def _refuse_grant(_hook: str, verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise HookError(f"no gateway runs, so nobody does `{verb}`")
