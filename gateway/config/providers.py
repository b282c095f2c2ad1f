"""The providers of models, a row each: its address, the module that speaks to it, its variables, its prices.

A new provider is a row here and, where it speaks a language of its own, a module in `gateway.agent.models`.

The providers published these prices at `PRICES_DATE`, in US dollars. They are no promise: a price in the configuration
takes precedence, and a model in neither has no known price, which is reported and never counts as free.
"""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

DEMO = "demo"
PRICES_DATE = "2026-11"


class ListedPrice(NamedTuple):
    """The price of a million tokens: going in, coming out, out of the provider's cache, into the cache."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    cache_write: float | None = None


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """One provider.

    `language` is the module in `gateway.agent.models` that speaks to it. `payer_headers` name the account that pays,
    each with the variable of its value. `servers` are the programs on the user's own machine that setup looks for, by
    name, with their addresses; "" is `base_url`. `hears`: its endpoints may transcribe and speak.
    """

    language: str = "openai"
    base_url: str = ""
    url_variable: str = ""
    key_variable: str = ""
    payer_headers: Mapping[str, str] = {}
    servers: Mapping[str, str] = {}
    hears: bool = True
    prices: Mapping[str, ListedPrice] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the key, the address and the account that pays."""
        named = (self.key_variable, self.url_variable, *self.payer_headers.values())
        return tuple(filter(None, named))


PROVIDERS: Mapping[str, ProviderInfo] = {
    "openrouter": ProviderInfo(base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"),
    "openai": ProviderInfo(
        base_url="https://api.openai.com/v1",
        url_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
        payer_headers={"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"},
        servers={"llama.cpp": "http://127.0.0.1:8080/v1"},
        prices={
            "gpt-5": ListedPrice(1.25, 10.0, 0.125),
            "gpt-5-mini": ListedPrice(0.25, 2.0, 0.025),
            "gpt-5-nano": ListedPrice(0.05, 0.4, 0.005),
            "gpt-5.4": ListedPrice(2.5, 15.0, 0.25),
            "gpt-5.4-mini": ListedPrice(0.75, 4.5, 0.075),
            "gpt-4.1": ListedPrice(2.0, 8.0, 0.5),
            "gpt-4.1-mini": ListedPrice(0.4, 1.6, 0.1),
        },
    ),
    "anthropic": ProviderInfo(
        language="anthropic",
        base_url="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        hears=False,
        prices={
            "claude-opus-4-5": ListedPrice(5.0, 25.0, 0.5, 6.25),
            "claude-opus-4-6": ListedPrice(5.0, 25.0, 0.5, 6.25),
            "claude-sonnet-4-5": ListedPrice(3.0, 15.0, 0.3, 3.75),
            "claude-sonnet-4-6": ListedPrice(3.0, 15.0, 0.3, 3.75),
            "claude-haiku-4-5": ListedPrice(1.0, 5.0, 0.1, 1.25),
        },
    ),
    "ollama": ProviderInfo(
        base_url="http://127.0.0.1:11434/v1", url_variable="OLLAMA_BASE_URL", servers={"Ollama": ""}
    ),
    "lmstudio": ProviderInfo(
        base_url="http://127.0.0.1:1234/v1", url_variable="LM_BASE_URL", servers={"LM Studio": ""}
    ),
    DEMO: ProviderInfo(language=DEMO, hears=False, prices=dict.fromkeys(("", "demo", "script"), ListedPrice())),  # free
}
"""The order is that in which providers are tried if a model is named without a provider."""

ENDPOINTS: Mapping[str, ProviderInfo] = {name: offer for name, offer in PROVIDERS.items() if offer.base_url}
"""The providers with an address, on this machine or elsewhere."""


def find_provider(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the first provider whose key or address is in the environment, and that variable, or two empty texts."""
    for provider, offer in PROVIDERS.items():
        for variable in (offer.key_variable, offer.url_variable):
            if variable and environ.get(variable):
                return provider, variable
    return "", ""


def list_other_urls(base_url: str, models_path: str) -> tuple[str, ...]:
    """List the addresses that an endpoint was probably meant to have if this one does not answer; the nearest first.

    `models_path` is that of the list of models: an endpoint whose own begins with /v1 has no /v1 in its address.
    """
    parts = urlsplit(base_url)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    for ending in ("/chat/completions", "/completions", "/messages", "/responses", "/models"):
        path = path.removesuffix(ending)
    paths = (path.removesuffix("/v1"), "") if models_path.startswith("/v1") else (path, f"{path}/v1", "/v1", "/api/v1")
    urls = (f"{origin}{one}" for one in paths)
    return tuple(dict.fromkeys(url for url in urls if url != base_url.rstrip("/")))
