"""The prices of models: those of the configuration, else those that the table of providers lists.

The listed prices hold at the providers' own endpoints. A price in the configuration takes precedence.
"""

import re

import msgspec
from msgspec.structs import replace

from gateway.agent.model import CHARACTERS
from gateway.config.providers import PROVIDERS
from gateway.config.settings import ModelSettings, Settings
from gateway.messages.transcript import Usage

MILLION = 1_000_000
SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|latest)$")  # behind the name of a model: one state of it


class TokenPrice(msgspec.Struct, frozen=True):
    """The price of a million tokens, in the currency of the person's account.

    Tokens read from the provider's cache or written into it have the usual price unless their own price is set.
    """

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    cache_write: float | None = None
    is_known: bool = True

    def usage_of(
        self, read: int, written: int, *, cached: int = 0, cache_written: int = 0, reasoning: int = 0
    ) -> Usage:
        """Return the usage and cost of so many tokens; those of the cache and of thoughts are part of them."""
        plain = max(read - cached - cache_written, 0)
        cost = plain * self.input + written * self.output
        cost += cached * (self.input if self.cached is None else self.cached)
        cost += cache_written * (self.input if self.cache_write is None else self.cache_write)
        return Usage(
            read,
            written,
            cost=cost / MILLION,
            cached_tokens=cached,
            cache_written_tokens=cache_written,
            reasoning_tokens=reasoning,
            unpriced=0 if self.is_known else 1,
        )

    def estimate(self, read: int, length: int) -> Usage:
        """Estimate the usage of a call whose endpoint reports none, or that was cut off after so many characters."""
        return replace(self.usage_of(read, length // CHARACTERS), calls=1, estimated=1)


UNKNOWN_PRICE = TokenPrice(is_known=False)


def find_price(model: ModelSettings) -> TokenPrice:
    """Return the price of a configured model; its settings take precedence over the table."""
    listed = _find_listed(model)
    if not (listed.is_known or model.input_price or model.output_price):
        return UNKNOWN_PRICE
    cached, cache_write = model.cached_price, model.cache_write_price
    if not model.input_price:  # the table's prices of the cache belong to the table's own
        cached = listed.cached if cached is None else cached
        cache_write = listed.cache_write if cache_write is None else cache_write
    return TokenPrice(model.input_price or listed.input, model.output_price or listed.output, cached, cache_write)


def _find_listed(model: ModelSettings) -> TokenPrice:
    listed = _list_known(model)
    return listed.get(model.name) or listed.get(SNAPSHOT.sub("", model.name)) or UNKNOWN_PRICE


def _list_known(model: ModelSettings) -> dict[str, TokenPrice]:
    """Return the table for the provider's own endpoint, or nothing for another one, which has prices of its own."""
    offer = PROVIDERS[model.provider]
    if model.base_url not in ("", offer.base_url):
        return {}
    return {name: TokenPrice(*numbers) for name, numbers in offer.prices.items()}


def list_prices(settings: Settings, model: ModelSettings) -> dict[str, TokenPrice]:
    """Return the known prices at this model's endpoint, by name: the table's, overridden by the settings."""
    found = _list_known(model)
    for other in (*settings.models.values(), settings.model):
        if (other.provider, other.base_url) == (model.provider, model.base_url):
            found[other.name] = find_price(other)
    return found


def find_price_by_name(settings: Settings, name: str) -> TokenPrice:
    """Return the price of the model with this name at a configured provider, or the unknown price."""
    prices = (list_prices(settings, model).get(name) for model in (settings.model, *settings.models.values()))
    return next(filter(None, prices), UNKNOWN_PRICE)
