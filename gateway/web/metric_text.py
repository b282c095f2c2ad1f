"""Figures in the text format of Prometheus, written by hand.

A label with values from outside (a hook, a model, a tool) has a limited number of them; all others become `other`, so
that invented names cannot make the series grow without end.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from gateway.histogram import SECONDS, Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "hermes_gateway_"
MAX_VALUES = 100
OTHER = "other"
_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels: TypeAlias = tuple[str, ...]
Figures: TypeAlias = Mapping[Labels, float]


class Metric(msgspec.Struct, frozen=True):
    """One figure: `labels` names the parts of the keys of `figures`; without labels the key is empty."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    figures: Figures
    labels: Labels = ()
    prefix: str = PREFIX

    def render(self) -> Iterator[str]:
        name = f"{self.prefix}{self.name}{'_total' if self.kind == 'counter' else ''}"
        yield from _render_head(name, self.help, self.kind)
        for values, figure in limit_labels(self.figures).items():
            yield f"{name}{_render_labels(self.labels, values)} {_render_number(figure)}"


class HistogramMetric(msgspec.Struct, frozen=True):
    """The durations by one label."""

    name: str
    help: str
    label: str
    histograms: Mapping[str, Histogram] = msgspec.field(default_factory=dict)

    def render(self) -> Iterator[str]:
        name = f"{PREFIX}{self.name}"
        yield from _render_head(name, self.help, "histogram")
        for value, histogram in limit_histograms(self.histograms).items():
            count = 0
            for bound, here in zip((*SECONDS, "+Inf"), histogram.counts, strict=True):
                count += here
                yield f"{name}_bucket{_render_labels((self.label, 'le'), (value, str(bound)))} {count}"
            labels = _render_labels((self.label,), (value,))
            yield f"{name}_sum{labels} {_render_number(histogram.total)}"
            yield f"{name}_count{labels} {count}"


def render_metrics(metrics: Iterable[Metric | HistogramMetric]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in metric.render())


def limit_labels(figures: Figures) -> Figures:
    """Keep a limited number of the first label's values, the largest figures first, and add up the others."""
    if len(figures) <= MAX_VALUES:
        return figures
    sums: dict[str, float] = {}
    for values, figure in figures.items():
        sums[values[0]] = sums.get(values[0], 0.0) + figure
    kept = set(sorted(sums, key=lambda value: (-sums[value], value))[:MAX_VALUES])
    limited: dict[Labels, float] = {}
    for values, figure in figures.items():
        key = values if values[0] in kept else (OTHER, *values[1:])
        limited[key] = limited.get(key, 0.0) + figure
    return limited


def limit_histograms(histograms: Mapping[str, Histogram]) -> Mapping[str, Histogram]:
    """Keep a limited number of the label's values, those with the highest counts first, and join the others."""
    if len(histograms) <= MAX_VALUES:
        return histograms
    ranked = sorted(histograms, key=lambda value: (-histograms[value].count, value))
    kept = {value: histograms[value] for value in ranked[:MAX_VALUES] if value != OTHER}
    return {**kept, OTHER: Histogram.join(histograms[value] for value in ranked if value not in kept)}


def _render_head(name: str, help_text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _render_labels(names: Labels, values: Labels) -> str:
    pairs = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _render_number(figure: float) -> str:
    return str(int(figure)) if figure == int(figure) else repr(figure)
