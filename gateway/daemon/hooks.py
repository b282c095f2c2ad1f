"""The folder hooks of this gateway: where they lie, what they find around them, and what is said and asked of them."""

import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import hooks_builtin
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.secrets import list_public_variables
from gateway.hermes.plugin_packages import make_package_source
from gateway.hermes.sources import HermesFolderSource, add_hermes_variables, list_hermes_sources
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.services import FileWriter, FileWriters, HookEnvironment, MatchPattern
from gateway.hooks.folders.sources import Source
from gateway.hooks.folders.stats import HookState, HookStatus
from gateway.schedule import HookPresence, ScheduledHook

BUILT_IN_FOLDER = Path(hooks_builtin.__file__).parent
OFF_STATES: frozenset[HookState] = frozenset({"disabled", "refused", "pending"})
UNAVAILABLE_STATES: frozenset[HookState] = frozenset({"broken", "missing"})


def list_sources(home: Home, configuration: Configuration) -> tuple[Source, ...]:
    """In order: a folder of a later place stands in for one of the same name in an earlier one."""
    return (
        HermesFolderSource(BUILT_IN_FOLDER, "built-in", is_ours=True),
        make_package_source(home, configuration.environ),
        *list_hermes_sources(home, configuration.environ),
        HermesFolderSource(home.hooks, "home"),
        *(HermesFolderSource(home.path(written), written) for written in configuration.settings.hooks.dirs),
    )


def build_hook_environment(
    home: Home,
    configuration: Configuration,
    platforms: tuple[str, ...],
    *file_writers: FileWriter,
    match: MatchPattern | None = None,
    find_places: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> HookEnvironment:
    return HookEnvironment(
        environ=add_hermes_variables(configuration),
        home=home.root,
        logs=home.hook_logs,
        state=home.hook_state,
        platforms=platforms,
        packages=[place for place in sys.path if place],
        redactor=configuration.redactor,
        public=list_public_variables(configuration.schema),
        file_writer=FileWriters(*file_writers),
        match=match,
        find_places=find_places,
    )


def list_scheduled(hooks: FolderHooks) -> Iterator[ScheduledHook]:
    """Those that the clock calls."""
    for manifest, state in hooks.scheduled:
        presence: HookPresence = "off" if state in OFF_STATES else "away" if state in UNAVAILABLE_STATES else "there"
        yield ScheduledHook(manifest.folder, manifest.schedule, presence, manifest.delivery == "durable")


async def list_shown(hooks: FolderHooks) -> list[HookStatus]:
    """Built-in hooks that nobody switched on are on offer; they are no news."""
    return [one for one in await hooks.status() if (one.origin, one.state) != ("built-in", "disabled")]


async def count_by_state(hooks: FolderHooks) -> dict[str, int]:
    """How many there are in which state."""
    return dict(Counter(status.state for status in await list_shown(hooks)))


async def describe_hooks(hooks: FolderHooks) -> str:
    """For people in a chat."""
    rows = [
        f"{status.name}: {status.state}, {status.calls} calls, {status.failures} failed"
        + (f" ({status.reason})" if status.reason else "")
        for status in await list_shown(hooks)
    ]
    return "\n".join(rows) or "There are no hooks."


async def list_hook_problems(hooks: FolderHooks) -> list[str]:
    """Which of them somebody should look at."""
    known = await hooks.status()
    found = [f"hook {one.name} is {one.state}: {one.reason}" for one in known if one.needs_attention]
    unheld = {what: None for one in known if one.state != "disabled" for what in one.unheld}
    held_less = [f"hooks are restricted, and not in all of it: {what}" for what in unheld]
    return [*found, *held_less, *([hooks.trouble] if hooks.trouble else [])]
