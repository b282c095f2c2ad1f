"""The figures of `/metrics`. Each request collects the figures from the parts of the gateway.

No label names a person: for the budgets of people, the figure is the highest usage of one person.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from gateway import __version__
from gateway.daemon.groups.hooks import Hooks
from gateway.daemon.groups.networks import Networks
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, Run
from gateway.daemon.groups.turns import Turns
from gateway.daemon.own_process import read_memory_kb
from gateway.daemon.platforms import PlatformPart
from gateway.engine.interface import EngineHealth
from gateway.histogram import Histogram
from gateway.hooks.folders.folder_hooks import add_memory
from gateway.hooks.stats import HookStats, HookStatus
from gateway.messages.transcript import Usage
from gateway.threads import run_in_thread
from gateway.usage.budgets import BudgetState
from gateway.usage.usage_journal import UsageJournal
from gateway.web.metric_text import Figures, HistogramMetric, Metric
from gateway.web.turn_times import TurnTimes
from gateway.web.webhooks.receiver import WebhookCounts
from gateway.worker.kernel import PROC
from gateway.worker.process_tree import read_process

DESCRIPTORS = PROC / "self" / "fd"
OF_PEOPLE = frozenset({"each_person", "people"})  # budgets of single people


class PortMetrics(NamedTuple):
    """The counts that only the port has: turns with their times, and calls of webhooks."""

    times: TurnTimes
    webhooks: Mapping[str, WebhookCounts]


async def collect_metrics(
    base: Base, run: Run, people: People, hooks: Hooks, turns: Turns, networks: Networks, counted: PortMetrics
) -> list[Metric | HistogramMetric]:
    """Collect all figures."""
    known = await add_memory(await hooks.folder_hooks.status(with_offered=False))
    return [
        _gauge("info", "Which version this is.", {(__version__,): 1.0}, "version"),
        *await _list_turn_metrics(turns, networks.platforms),
        *counted.times.metrics(),
        *_list_usage_metrics(people.usage.totals.models),
        _gauge("budget_used_ratio", "How much of a budget is used.", *_list_budget_figures(people.usage)),
        Metric(
            "webhook_calls", "counter", "Calls from outside.", _count_webhooks(counted.webhooks), ("webhook", "outcome")
        ),
        *_list_journal_metrics(await base.engine.health()),
        *_list_hook_metrics(known),
        _list_durations(known, hooks.folder_hooks.stats),
        Metric("hook_cpu_seconds", "counter", "Processor time.", await _read_processor_times(known), ("hook",)),
        *_list_process_metrics(run.since),
    ]


async def _list_turn_metrics(turns: Turns, platforms: Sequence[PlatformPart]) -> list[Metric]:
    lanes = turns.lanes
    queues: Figures = {("messages",): float(await lanes.depth()), ("turns",): float(lanes.waiting)}
    owed: Figures = {(network,): float(count) for network, count in (await turns.outbox.depths()).items()}
    up: Figures = {(one.name,): float(one.state == "up") for one in platforms}
    return [
        _gauge("turns_running", "Turns that run now.", lanes.running),
        _gauge("waiting", "Sessions with waiting messages, and turns that wait for a free place.", queues, "what"),
        _gauge("replies_owed", "Replies that wait to be sent.", owed, "network"),
        _gauge("network_up", "1 if a network can be reached.", up, "network"),
    ]


def _list_usage_metrics(models: Mapping[str, Usage]) -> Iterator[Metric]:
    tokens: Figures = {
        (model, kind): float(count)
        for model, usage in models.items()
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens))
    }
    costs: Figures = {(model,): usage.cost for model, usage in models.items()}
    yield Metric("tokens", "counter", "Tokens of models' calls.", tokens, ("model", "kind"))
    yield Metric("cost", "counter", "Cost of the calls, in the unit of the prices.", costs, ("model",))


def _list_journal_metrics(health: EngineHealth) -> Iterator[Metric]:
    yield _gauge("journal_up", "1 if the journal can be written.", health.ok)
    yield _gauge("journal_bytes", "Bytes of its records on the disk.", health.size)
    yield _gauge("journal_file_bytes", "Bytes of files on the NATS servers that keep the journal.", health.file_size)
    yield _gauge("journal_records", "How many there are.", health.records)
    yield Metric("journal_commits", "counter", "Commits of the journal.", {(): health.commits})
    yield Metric("journal_commit_seconds", "counter", "How long they took in all.", {(): health.commit_seconds})


def _list_hook_metrics(hooks: Sequence[HookStatus]) -> Iterator[Metric]:
    """Yield figures by the shown names of hooks; two folders with one name count together."""

    def by_hook(field: str) -> Figures:
        return _sum_up(((one.label,), float(getattr(one, field) or 0)) for one in hooks)

    states = _sum_up(((one.label, one.state), 1.0) for one in hooks)
    open_breakers = _sum_up(((one.label,), float(one.breaker != "closed")) for one in hooks)
    yield Metric("hook_calls", "counter", "Calls of hooks.", by_hook("calls"), ("hook",))
    yield Metric("hook_failures", "counter", "Calls that failed.", by_hook("failures"), ("hook",))
    yield Metric("hook_dropped", "counter", "Events that were lost.", by_hook("dropped"), ("hook",))
    yield _gauge("hook_queued", "Events that wait for a hook.", by_hook("queued"), "hook")
    yield _gauge("hook_owed", "Events that the journal holds for a durable hook.", by_hook("owed"), "hook")
    yield _gauge("hook_behind_seconds", "How long ago the oldest of them happened.", by_hook("behind"), "hook")
    yield _gauge("hook_dead_letters", "Events that could not be delivered to it.", by_hook("dead"), "hook")
    yield Metric("hook_restarts", "counter", "Starts of its process after the first.", by_hook("restarts"), ("hook",))
    yield _gauge("hook_state", "1 for the state that it is in.", states, "hook", "state")
    yield _gauge("hook_breaker_open", "1 while it is not called because of failures.", open_breakers, "hook")
    yield _gauge("hook_memory_bytes", "Memory of its process.", by_hook("memory"), "hook")


def _list_durations(hooks: Sequence[HookStatus], stats: Mapping[str, HookStats]) -> HistogramMetric:
    parts: defaultdict[str, list[Histogram]] = defaultdict(list)
    for one in hooks:
        if one.name in stats:
            parts[one.label].append(stats[one.name].histogram)
    joined = {label: Histogram.join(found) for label, found in parts.items()}
    return HistogramMetric("hook_latency_seconds", "How long calls of hooks took.", "hook", joined)


async def _read_processor_times(hooks: Sequence[HookStatus]) -> Figures:
    """Read the processor times of the running processes; a restart begins at zero, as Prometheus expects."""
    found = await run_in_thread(lambda: [(one.label, read_process(one.pid)) for one in hooks if one.pid])
    return _sum_up(((label,), process.ran) for label, process in found if process)


def _count_webhooks(webhooks: Mapping[str, WebhookCounts]) -> Figures:
    """Count the known webhooks only, so that calls cannot add labels."""
    return {
        (name, outcome): float(count)
        for name, one in webhooks.items()
        for outcome, count in (("taken", one.taken), ("known", one.known), ("refused", one.refused))
    }


def _list_budget_figures(usage: UsageJournal) -> "tuple[Figures, str, str, str]":
    most: dict[tuple[str, ...], float] = {}
    for state in usage.totals.list_budgets(most=1):
        key = (_name_budget(state), state.period, state.unit)
        most[key] = max(most.get(key, 0.0), state.used / state.limit if state.limit else 1.0)
    return most, "budget", "period", "unit"


def _name_budget(state: BudgetState) -> str:
    kind, _, name = state.budget.partition(" ")
    return kind if kind in OF_PEOPLE else name or kind


def _list_process_metrics(since: float) -> Iterator[Metric]:
    """Yield figures of the process, with the names that the clients of Prometheus use."""
    used = os.times()
    yield Metric("cpu_seconds", "counter", "Processor time.", {(): used.user + used.system}, prefix="process_")
    yield Metric("start_time_seconds", "gauge", "When it started.", {(): since}, prefix="process_")
    yield Metric("resident_memory_bytes", "gauge", "Memory.", {(): 1024 * read_memory_kb()}, prefix="process_")
    yield Metric("uptime_seconds", "gauge", "For how long it runs.", {(): max(0.0, time.time() - since)})
    with suppress(OSError):  # a system without /proc
        files = len(os.listdir(DESCRIPTORS))  # noqa: PTH208 - their number is wanted, not their paths
        yield Metric("open_fds", "gauge", "Open files.", {(): files}, prefix="process_")


def _gauge(name: str, says: str, figures: Figures | float, *labels: str) -> Metric:
    return Metric(name, "gauge", says, {(): float(figures)} if isinstance(figures, float | int) else figures, labels)


def _sum_up(pairs: "Iterator[tuple[tuple[str, ...], float]]") -> Figures:
    sums: dict[tuple[str, ...], float] = {}
    for key, value in pairs:
        sums[key] = sums.get(key, 0.0) + value
    return sums
