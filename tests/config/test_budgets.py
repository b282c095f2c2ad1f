"""Budgets in the configuration: their people, their faults, and calls that money cannot stop."""

import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration
from gateway.daemon.unknown_names import find_unknown_prices
from gateway.errors import ConfigError
from gateway.testing import GatewayProcess


def load(tmp_path, text):
    files = GatewayProcess(tmp_path)
    files.home.config.parent.mkdir(parents=True, exist_ok=True)
    files.home.config.write_text(text)
    return load_configuration(load_settings_schema(), files.home, files.environ)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets:\n  people:\n    ann: {day: {tokens: 1}}\n", r":3:\d+: .*`budgets.people.ann` is not an id"),
        ("budgets:\n  people:\n    'matrix:1': {}\n", r":3:\d+: .*is not an id"),
        (
            "budgets:\n  groups:\n    staff: {day: {tokens: 1}}\n",
            r":3:\d+: .*`budgets.groups.staff` names what is not there",
        ),
        ("budgets:\n  all: {day: {tokens: -1}}\n", r":2:23: .*`budgets.all.day.tokens` is out of range"),
        ("budgets:\n  all: {month: {money: -0.5}}\n", r":2:24: .*`budgets.all.month.money` is out of range"),
        ("gateway: {timezone: Berlin}\n", r":1:21: .*`gateway.timezone` names no time zone"),
    ],
)
def test_what_is_wrong_is_named_where_it_stands(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, text)


def test_budgets_of_money_name_the_models_that_they_cannot_stop(tmp_path):
    models = "model: {provider: openai, name: gpt-5-mini}\nmodels: {local: {provider: ollama, name: qwen3}}\n"
    assert list(find_unknown_prices(load(tmp_path, models))) == []
    (found,) = find_unknown_prices(load(tmp_path, f"{models}budgets: {{all: {{day: {{money: 1}}}}}}\n"))
    assert (found.what, found.severity, found.place.line) == (
        "models.local has no known price: budgets count its tokens only", "warning", 2,
    )  # fmt: skip
