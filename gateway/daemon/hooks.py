"""The folder hooks of this gateway: where they lie, what they find around them, and what is said and asked of them."""

import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import hooks_builtin
from gateway import records
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.control_socket.server import Notify, Verb, as_verb
from gateway.engine import Engine, Record
from gateway.errors import HookError
from gateway.hermes.sources import HermesFolderSource, add_hermes_variables, list_hermes_sources
from gateway.hooks.folders.folder_hooks import FolderHooks
from gateway.hooks.folders.services import HookEnvironment
from gateway.hooks.folders.sources import Source
from gateway.hooks.folders.stats import HookState
from gateway.hooks.patterns import EventSelector
from gateway.schedule import HookPresence, ScheduledHook
from gateway.worker.protocol import ForkServerSettings

BUILT_IN_FOLDER = Path(hooks_builtin.__file__).parent
OFF_STATES: frozenset[HookState] = frozenset({"disabled", "refused", "pending"})
UNAVAILABLE_STATES: frozenset[HookState] = frozenset({"broken", "missing"})
PAGE_SIZE = 200  # records that are read at once


def list_sources(home: Home, configuration: Configuration) -> tuple[Source, ...]:
    """In order: a folder of a later place stands in for one of the same name in an earlier one."""
    return (
        HermesFolderSource(BUILT_IN_FOLDER, "built-in", is_ours=True),
        *list_hermes_sources(home, configuration.environ),
        HermesFolderSource(home.hooks, "home"),
        *(HermesFolderSource(home.path(written), written) for written in configuration.settings.hooks.dirs),
    )


def build_hook_environment(home: Home, configuration: Configuration, platforms: tuple[str, ...]) -> HookEnvironment:
    return HookEnvironment(
        environ=add_hermes_variables(configuration),
        home=home.root,
        logs=home.hook_logs,
        state=home.hook_state,
        platforms=platforms,
        packages=[place for place in sys.path if place],
        redactor=configuration.make_redactor(),
    )


def build_fork_server_options(configuration: Configuration) -> ForkServerSettings:
    return ForkServerSettings(processes=configuration.settings.hooks.processes)


def list_scheduled(hooks: FolderHooks) -> Iterator[ScheduledHook]:
    """Those that the clock calls."""
    for manifest, state in hooks.scheduled:
        presence: HookPresence = "off" if state in OFF_STATES else "away" if state in UNAVAILABLE_STATES else "there"
        yield ScheduledHook(manifest.folder, manifest.schedule, presence, manifest.delivery == "durable")


async def count_by_state(hooks: FolderHooks) -> dict[str, int]:
    """How many there are in which state."""
    return dict(Counter(status.state for status in await hooks.status() if not is_idle_built_in(status)))


def is_idle_built_in(status: Any) -> bool:
    """Built-in hooks that nobody switched on are on offer; they are no news."""
    return bool(status.origin == "built-in" and status.state == "disabled")


async def describe_hooks(hooks: FolderHooks) -> str:
    """For people in a chat."""
    rows = [
        f"{status.name}: {status.state}, {status.calls} calls, {status.failures} failed"
        + (f" ({status.reason})" if status.reason else "")
        for status in await hooks.status()
        if not is_idle_built_in(status)
    ]
    return "\n".join(rows) or "There are no hooks."


async def list_hook_problems(hooks: FolderHooks) -> list[str]:
    """Which of them somebody should look at."""
    found = [f"hook {one.name} is {one.state}: {one.reason}" for one in await hooks.status() if one.needs_attention]
    return [*found, *([hooks.trouble] if hooks.trouble else [])]


HookVerb = Callable[[FolderHooks, dict[str, Any]], Awaitable[Any]]


def build_hook_verbs(hooks: FolderHooks, engine: Engine) -> Mapping[str, Verb]:
    """What the control socket answers about hooks."""

    async def replayed(params: dict[str, Any], notify: Notify) -> Any:
        return await replay_events(hooks, engine, params, notify)

    answers = {f"hooks.{name}": as_verb(partial(answer, hooks)) for name, answer in HOOK_VERBS.items()}
    return {"events.replay": replayed, **answers}


async def _list(hooks: FolderHooks, _params: dict[str, Any]) -> Any:
    return {"hooks": msgspec.to_builtins(await hooks.status())}


async def _info(hooks: FolderHooks, params: dict[str, Any]) -> Any:
    status = await hooks.info(params["name"])
    return {**msgspec.to_builtins(status), "kept": await hooks.kept(status.name)}


def _make_steering_verb(act: Callable[[FolderHooks, str], Awaitable[Any]]) -> HookVerb:
    async def steered(hooks: FolderHooks, params: dict[str, Any]) -> Any:
        await act(hooks, params["name"])
        return await _info(hooks, params)

    return steered


async def _reload(hooks: FolderHooks, params: dict[str, Any]) -> Any:
    """One, which is started anew; or all folders are looked at again."""
    name = params.get("name", "")
    await hooks.reload(name)
    return await _info(hooks, params) if name else await _list(hooks, params)


async def _test(hooks: FolderHooks, params: dict[str, Any]) -> Any:
    trials = await hooks.test(params["name"], params.get("event", ""), params.get("payload") or None)
    return {"trials": [_trial_to_json(one) for one in trials]}


async def _fire(hooks: FolderHooks, params: dict[str, Any]) -> Any:
    return _trial_to_json(await hooks.fire(params["name"], params["event"], params.get("payload") or None))


def _trial_to_json(trial: Any) -> dict[str, Any]:
    return {"ok": not trial.error, **msgspec.to_builtins(trial)}


async def _list_letters(hooks: FolderHooks, params: dict[str, Any]) -> Any:
    return {"letters": msgspec.to_builtins(await hooks.dead_letters.list(params.get("name", "")))}


def _make_letters_verb(act: Callable[[FolderHooks, int], Awaitable[Any]]) -> HookVerb:
    async def settled(hooks: FolderHooks, params: dict[str, Any]) -> Any:
        numbers = await _find_numbers(hooks, params)
        for number in numbers:
            await act(hooks, number)
        return {"count": len(numbers)}

    return settled


async def _find_numbers(hooks: FolderHooks, params: dict[str, Any]) -> list[int]:
    """The one that is meant, or all of this hook."""
    name, wanted = params["name"], params.get("id")
    await hooks.info(name)
    numbers = [letter.number for letter in await hooks.dead_letters.list(name)]
    if wanted is None:
        return numbers
    if wanted not in numbers:
        raise HookError(f"{name} has no dead letter {wanted}\nhermes-gateway hooks dead-letters list {name}")
    return [wanted]


async def replay_events(hooks: FolderHooks, engine: Engine, params: dict[str, Any], notify: Notify) -> dict[str, Any]:
    """Tell a hook again of events that the journal keeps, under the ids that they had; each is notified with its trial.

    Kept is what a durable hook was owed, as long as the journal keeps such records.
    """
    hook = await hooks.info(params["name"])
    wanted = EventSelector(params.get("names") or [*hook.intercepts, *hook.events])
    counts = {"count": 0, "failed": 0}
    async for record, event in read_kept_events(engine, params.get("since") or 0.0, time.time()):
        if event.name in wanted:
            trial = _trial_to_json(await hooks.fire(hook.name, event.name, event.fields))
            counts["count"] += 1
            counts["failed"] += not trial["ok"]
            await notify("trial", {"at": record.ts, "id": event.fields.get("id"), **trial})
    return counts


async def read_kept_events(
    engine: Engine, since: float, until: float
) -> AsyncIterator[tuple[Record, records.EmittedEvent]]:
    """Those that the journal has, in order, and that happened in this time."""
    after = 0
    while page := await engine.read(records.EVENT_SUBJECTS, after, PAGE_SIZE):
        for record in page:
            after = record.seq
            event = records.decode(record.data)
            if since <= record.ts <= until and isinstance(event, records.EmittedEvent):
                yield record, event


HOOK_VERBS: Mapping[str, HookVerb] = {
    "list": _list,
    "info": _info,
    "enable": _make_steering_verb(lambda hooks, name: hooks.switch(name, True)),
    "disable": _make_steering_verb(lambda hooks, name: hooks.switch(name, False)),
    "reload": _reload,
    "reset": _make_steering_verb(lambda hooks, name: hooks.reset(name)),
    "trust": _make_steering_verb(lambda hooks, name: hooks.trust(name)),
    "test": _test,
    "fire": _fire,
    "dead_letters": _list_letters,
    "dead_retry": _make_letters_verb(lambda hooks, number: hooks.dead_letters.retry(number)),
    "dead_prune": _make_letters_verb(lambda hooks, number: hooks.dead_letters.prune(number)),
}
