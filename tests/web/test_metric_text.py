"""Names from outside do not make endless figures: so many values have their own, all others are one."""

from prometheus_client.parser import text_string_to_metric_families

from gateway.histogram import Histogram
from gateway.web.metric_text import MAX_VALUES, OTHER, HistogramMetric, Metric, render_metrics

MANY = 3 * MAX_VALUES


def test_the_largest_keep_their_names_and_nothing_is_lost() -> None:
    made = Metric("calls", "counter", "Calls.", {(f"hook {n}",): float(n) for n in range(MANY)}, ("hook",))
    ((family,),) = [list(text_string_to_metric_families(render_metrics([made])))]
    found = {one.labels["hook"]: one.value for one in family.samples}
    assert len(found) == MAX_VALUES + 1
    assert min(value for name, value in found.items() if name != OTHER) == MANY - MAX_VALUES
    assert sum(found.values()) == sum(range(MANY))


def test_of_durations_too_where_somebody_is_called_as_all_others_are() -> None:
    histograms = {OTHER if n == MANY - 1 else f"hook {n}": observe(n) for n in range(1, MANY)}
    made = HistogramMetric("took", "Durations.", "hook", histograms)
    ((family,),) = [list(text_string_to_metric_families(render_metrics([made])))]
    counts = {one.labels["hook"]: one.value for one in family.samples if one.name.endswith("_count")}
    assert len(counts) == MAX_VALUES
    assert counts[f"hook {MANY - 2}"] == MANY - 2
    assert sum(counts.values()) == sum(range(MANY))
    last = [one.value for one in family.samples if one.name.endswith("_bucket") and one.labels["le"] == "+Inf"]
    assert sorted(last) == sorted(counts.values())


def observe(times: int) -> Histogram:
    made = Histogram()
    for n in range(times):
        made.observe(10 ** (n % 6 - 3))
    return made
