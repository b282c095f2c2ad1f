"""The gateway in figures, as `/metrics` has them: collected when somebody asks, from what the parts know anyway."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from gateway import __version__
from gateway.daemon.hooks import list_shown
from gateway.daemon.own_process import read_memory_kb
from gateway.daemon.platforms import PlatformPart
from gateway.engine import Engine, EngineHealth
from gateway.hooks.folders.folder_hooks import FolderHooks, add_memory
from gateway.hooks.folders.stats import HookStatus
from gateway.lanes import Lanes
from gateway.outbox import Outbox
from gateway.transcript import Usage
from gateway.usage import UsageJournal
from gateway.web.metric_text import Figures, HistogramMetric, Metric
from gateway.web.turn_times import TurnTimes

DESCRIPTORS = Path("/proc/self/fd")
MOST_LATENCIES = 100  # hooks, those that are called most


class MetricSources(Protocol):
    """The parts that are asked."""

    @property
    def since(self) -> float: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def folder_hooks(self) -> FolderHooks: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def platforms(self) -> Sequence[PlatformPart]: ...
    @property
    def usage(self) -> UsageJournal: ...


async def collect_metrics(gateway: MetricSources, times: TurnTimes) -> list[Metric | HistogramMetric]:
    """All of them."""
    queues: Figures = {("messages",): float(await gateway.lanes.depth()), ("turns",): float(gateway.lanes.waiting)}
    owed: Figures = {(network,): float(count) for network, count in (await gateway.outbox.depths()).items()}
    up: Figures = {(one.name,): float(one.state == "up") for one in gateway.platforms}
    return [
        _gauge("info", "Which version this is.", {(__version__,): 1.0}, "version"),
        _gauge("turns_running", "Turns that run now.", gateway.lanes.running),
        _gauge("waiting", "What waits: sessions with messages before them, turns for a free place.", queues, "what"),
        _gauge("replies_owed", "Replies that wait to be sent.", owed, "network"),
        _gauge("network_up", "Whether a network can be reached.", up, "network"),
        *times.metrics(),
        *_list_usage_metrics(gateway.usage.totals.models),
        *_list_journal_metrics(await gateway.engine.health()),
        *_list_hook_metrics(await add_memory(list_shown(await gateway.folder_hooks.status()))),
        *_list_process_metrics(gateway.since),
    ]


def _list_usage_metrics(models: Mapping[str, Usage]) -> Iterator[Metric]:
    tokens: Figures = {
        (model, kind): float(count)
        for model, usage in models.items()
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens))
    }
    costs: Figures = {(model,): usage.cost for model, usage in models.items()}
    yield Metric("tokens", "counter", "Tokens of models' calls.", tokens, ("model", "kind"))
    yield Metric("cost", "counter", "What the calls cost, in the unit of the prices.", costs, ("model",))


def _list_journal_metrics(health: EngineHealth) -> Iterator[Metric]:
    yield _gauge("journal_up", "Whether the journal takes what is written.", health.ok)
    yield _gauge("journal_bytes", "What its records take on the disk.", health.size)
    yield _gauge("journal_records", "How many there are.", health.records)
    yield Metric("journal_commits", "counter", "Commits of the journal.", {(): health.commits})
    yield Metric("journal_commit_seconds", "counter", "How long they took in all.", {(): health.commit_seconds})


def _list_hook_metrics(hooks: Sequence[HookStatus]) -> Iterator[Metric]:
    """By the names that people know them by; two folders of one name are one."""

    def by_hook(field: str) -> Figures:
        return _sum_up(((one.label,), float(getattr(one, field) or 0)) for one in hooks)

    latencies: Figures = {
        (one.label, quantile): value
        for one in sorted(hooks, key=lambda hook: -hook.calls)[:MOST_LATENCIES]
        for quantile, value in (("0.5", one.p50), ("0.95", one.p95))
        if value is not None
    }
    states = _sum_up(((one.label, one.state), 1.0) for one in hooks)
    open_breakers = _sum_up(((one.label,), float(one.breaker != "closed")) for one in hooks)
    yield Metric("hook_calls", "counter", "Calls of hooks.", by_hook("calls"), ("hook",))
    yield Metric("hook_failures", "counter", "Calls that failed.", by_hook("failures"), ("hook",))
    yield Metric("hook_dropped", "counter", "Events that were lost.", by_hook("dropped"), ("hook",))
    yield _gauge("hook_queued", "Events that wait for a hook.", by_hook("queued"), "hook")
    yield _gauge("hook_dead_letters", "Events that it could not be told of.", by_hook("dead"), "hook")
    yield _gauge("hook_latency_seconds", "Of its last calls.", latencies, "hook", "quantile")
    yield _gauge("hook_state", "1 for the state that it is in.", states, "hook", "state")
    yield _gauge("hook_breaker_open", "Whether it is left alone for a while.", open_breakers, "hook")
    yield _gauge("hook_memory_bytes", "What its process holds in memory.", by_hook("memory"), "hook")


def _list_process_metrics(since: float) -> Iterator[Metric]:
    """Under the names that Prometheus's own clients give them."""
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
