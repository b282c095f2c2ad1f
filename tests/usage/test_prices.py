"""The cost of calls: by the configuration, by the table, or at an unknown price; and tokens as providers bill them."""

import json

import msgspec
import pytest

from gateway.agent.models.anthropic import MessageAccumulator
from gateway.agent.models.openai import CompletionAccumulator
from gateway.agent.models.prices import (
    UNKNOWN_PRICE,
    TokenPrice,
    find_price,
    find_price_by_name,
    list_prices,
)
from gateway.config.settings import ModelSettings, Settings
from gateway.messages.transcript import Usage


@pytest.mark.parametrize(
    ("settings", "price"),
    [
        ({"provider": "openai", "name": "gpt-5-mini"}, TokenPrice(0.25, 2.0, 0.025)),
        ({"provider": "openai", "name": "gpt-5-mini-2025-08-07"}, TokenPrice(0.25, 2.0, 0.025)),
        ({"provider": "anthropic", "name": "claude-haiku-4-5-20251001"}, TokenPrice(1.0, 5.0, 0.1, 1.25)),
        ({"provider": "openai", "name": "gpt-5-mini", "output_price": 9.0}, TokenPrice(0.25, 9.0, 0.025)),
        ({"provider": "openai", "name": "gpt-5-mini", "input_price": 1.0}, TokenPrice(1.0, 2.0)),
        ({"provider": "ollama", "name": "qwen3", "input_price": 1.0, "cached_price": 0.1}, TokenPrice(1.0, 0.0, 0.1)),
        ({"provider": "ollama", "name": "qwen3"}, UNKNOWN_PRICE),
        ({"provider": "openai", "name": "gpt-5-mini", "base_url": "http://127.0.0.1:9/v1"}, UNKNOWN_PRICE),
        ({"provider": "openai", "name": "never-heard-of"}, UNKNOWN_PRICE),
        ({"provider": "demo"}, TokenPrice()),
    ],
)
def test_a_price_is_that_of_the_configuration_else_of_the_table_else_unknown(settings, price):
    assert find_price(ModelSettings(**settings)) == price


def test_another_model_of_the_same_endpoint_has_its_own_price():
    here = ModelSettings(provider="openai", name="big", base_url="http://127.0.0.1:9/v1", input_price=5.0)
    there = ModelSettings(provider="openai", name="big", input_price=7.0)
    settings = Settings(model=here, models={"there": there})
    assert list_prices(settings, here) == {"big": TokenPrice(5.0)}
    assert list_prices(settings, there)["big"] == TokenPrice(7.0)
    assert find_price_by_name(settings, "gpt-5") == TokenPrice(1.25, 10.0, 0.125)
    assert find_price_by_name(settings, "nowhere") == UNKNOWN_PRICE


def test_openai_bills_cached_tokens_within_the_prompt_and_thoughts_within_the_completion():
    answer = CompletionAccumulator(TokenPrice(2.0, 8.0, 0.5))
    used = {"prompt_tokens": 1000, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 400}}
    used["completion_tokens_details"] = {"reasoning_tokens": 300}
    answer.add(json.dumps({"choices": [], "usage": used}).encode())
    assert answer.usage == Usage(1000, 500, cost=0.0054, cached_tokens=400, reasoning_tokens=300)


def test_anthropic_bills_what_goes_into_its_cache_and_comes_out_of_it_beside_the_input():
    answer = MessageAccumulator(TokenPrice(3.0, 15.0, 0.3, 3.75))
    begun = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 1000,
        "output_tokens": 1,
    }
    answer.add(json.dumps({"type": "message_start", "message": {"usage": begun}}).encode())
    answer.add(json.dumps({"type": "message_delta", "usage": {"output_tokens": 50}}).encode())
    assert answer.usage == Usage(1210, 50, cost=0.00183, cached_tokens=1000, cache_written_tokens=200)


def test_a_price_that_is_not_known_is_said_and_counts_tokens():
    assert UNKNOWN_PRICE.usage_of(7, 3) == Usage(7, 3, unpriced=1)
    both = UNKNOWN_PRICE.usage_of(7, 3) + TokenPrice(1.0, 1.0).usage_of(1_000_000, 0)
    assert (both.tokens, both.cost, both.unpriced) == (1_000_010, 1.0, 1)


def test_sums_of_usage_lose_no_field():
    numbers = {name: n for n, name in enumerate(Usage.__struct_fields__, 1) if name != "model"}
    one = Usage(**numbers, model="m")
    assert one + one - one == one
    assert msgspec.to_builtins(one + one) == {name: 2 * n for name, n in numbers.items()} | {"model": "m"}
