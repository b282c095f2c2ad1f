"""The offerers of models: where they are, and which of their usual variables hold a key or an address."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit


class ProviderInfo(NamedTuple):
    """An address, and the variables that hold another one, the key, and who pays."""

    base_url: str
    url_variable: str
    key_variable: str
    organization_variable: str = ""
    project_variable: str = ""


PROVIDERS: Mapping[str, ProviderInfo] = {
    "openrouter": ProviderInfo("https://openrouter.ai/api/v1", "", "OPENROUTER_API_KEY"),
    "openai": ProviderInfo(
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
    ),
    "anthropic": ProviderInfo("https://api.anthropic.com", "", "ANTHROPIC_API_KEY"),
    "ollama": ProviderInfo("http://127.0.0.1:11434/v1", "OLLAMA_BASE_URL", ""),
    "lmstudio": ProviderInfo("http://127.0.0.1:1234/v1", "LM_BASE_URL", ""),
}
"""The order is that in which providers are tried if a model is named without a provider."""


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
