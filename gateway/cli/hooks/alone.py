"""A trial of a hook without the gateway: in the same kind of process, with the settings as they stand in the files.

So that a hook can be tried while it is written, in whatever folder it lies, and in the CI of a repository of hooks.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from gateway.cli.hooks.options import is_path
from gateway.config.home import Home, process_environment
from gateway.config.loading import Configuration, load
from gateway.daemon.hooks import plan, sources, surroundings
from gateway.daemon.parts import single
from gateway.errors import HookError
from gateway.hooks import HookRegistry
from gateway.hooks.folders.inspection import inspect_folder
from gateway.hooks.folders.readiness import check_readiness
from gateway.hooks.folders.services import HookServices
from gateway.hooks.folders.sources import FoundHook, Source, find_hook_folder
from gateway.hooks.folders.switches import HookSwitches
from gateway.hooks.folders.trial import HookTrial, run_trials
from gateway.hooks.wires.fork_client import ForkServerClient


def try_alone(name: str, home: Home, event: str, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """As the gateway answers `hooks.test`, for a hook by its name or its path.

    Raises:
        HookError: there is no such hook, or it does not start.
    """
    configuration = load(home, process_environment())
    folder = find(name, home, configuration)
    try:
        trials = anyio.run(partial(_tried, folder, home, configuration, event, fields))
    except BaseExceptionGroup as group:
        raise single(group) from None  # the task groups around it say nothing to whoever wrote the hook
    return [{"ok": not trial.error, **msgspec.to_builtins(trial)} for trial in trials]


def find(name: str, home: Home, configuration: Configuration) -> FoundHook:
    """Raises HookError when there is no such hook."""
    path = Path(name).resolve()
    if is_path(name):
        places: Sequence[Source] = (Source(path.parent, "path"),)
    else:
        places = sources(home, configuration)
    folder = next((found for place in reversed(places) if (found := find_hook_folder(place, path.name))), None)
    if folder is None:
        where = path if is_path(name) else home.hooks / name
        raise HookError(f"{where} is no hook: it needs HOOK.yaml, and handler.py, a command or a URL")
    return folder


async def _tried(
    folder: FoundHook, home: Home, configuration: Configuration, event: str, fields: Mapping[str, Any]
) -> Sequence[HookTrial]:
    settings, around = configuration.settings.hooks, surroundings(home, configuration, ())
    async with (
        HookRegistry() as registry,
        ForkServerClient(plan(configuration)) as nursery,
        anyio.create_task_group() as tasks,
    ):
        house = HookServices(settings, around, registry, nursery, None, None, _refuse, tasks)
        assessment = check_readiness(folder, inspect_folder(folder), house, HookSwitches(home.hook_state))
        if assessment.state not in ("registered", "disabled") or assessment.manifest is None:
            raise HookError(f"{folder.name} is {assessment.state}: {assessment.reason}")
        trials = await run_trials(assessment, house, event, fields)
        tasks.cancel_scope.cancel()
    return trials


async def _refuse(_hook: str, verb: str, _params: dict[str, Any], _during: str) -> Any:
    raise HookError(f"no gateway runs, so nobody does `{verb}`")
