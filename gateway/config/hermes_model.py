"""The model in Hermes's own config.yaml: not used by itself, since it may cost money, and pointed to instead."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from gateway.config.providers import ENDPOINTS
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlMapping, YamlScalar, to_plain, to_printable

FILE_LIMIT = 1_000_000
OTHER_PROVIDER = "openai"  # any endpoint that speaks its language, with a `base_url`


class HermesModel(msgspec.Struct, frozen=True):
    """A model as our configuration would name it, and where Hermes's does."""

    provider: str
    name: str
    base_url: str
    place: SourceLocation

    @property
    def line(self) -> str:
        """The line for our config.yaml that selects this model."""
        address = f", base_url: {self.base_url}" if self.base_url else ""
        return f"model: {{provider: {self.provider}, name: {self.name}{address}}}"

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables for `.env` that select this model."""
        named = {
            "GATEWAY_MODEL_PROVIDER": self.provider,
            "GATEWAY_MODEL_NAME": self.name,
            "GATEWAY_MODEL_BASE_URL": self.base_url,
        }
        return {name: value for name, value in named.items() if value}


def find_hermes_model(path: Path) -> HermesModel | None:
    """Return the model that Hermes's configuration names, or None without such a file or a model that we can use."""
    if not path.is_file():
        return None
    root = read_yaml(path, FILE_LIMIT).root
    node = root.get("model") if isinstance(root, YamlMapping) else None
    if isinstance(node, YamlScalar):
        said: Mapping[str, Any] = {"default": node.text}
    elif isinstance(node, YamlMapping):
        said = to_plain(node)
    else:
        return None
    name, base_url = _text_at(said, "default") or _text_at(said, "name"), _text_at(said, "base_url")
    if not name:
        return None
    provider = _choose_provider(_text_at(said, "provider"), name, base_url)
    if not provider:
        return None
    is_usual = base_url.rstrip("/") == ENDPOINTS[provider].base_url
    return HermesModel(provider, to_printable(name, 200), "" if is_usual else to_printable(base_url, 300), node.place)


def point_to_hermes_model(path: Path, config: Path) -> list[Finding]:
    """Return a finding that says how to use Hermes's model here too."""
    found = find_hermes_model(path)
    if found is None:
        return []
    what = f"Hermes's configuration names the model {found.name}, and the built-in demo model answers"
    return [Finding(found.place, what, f"to use it here, write into {config}: {found.line}", "warning")]


def _choose_provider(named: str, name: str, base_url: str) -> str:
    """Return our provider for Hermes's word; an ambiguous word is resolved by the address or the shape of the name."""
    if named in ENDPOINTS:
        return named
    if host := urlsplit(base_url).hostname:
        # Several providers run on this machine, so a local address identifies none of them.
        by_host = {urlsplit(offer.base_url).hostname: one for one, offer in ENDPOINTS.items() if offer.key_variable}
        return by_host.get(host, OTHER_PROVIDER)
    return "openrouter" if named in ("", "auto") and "/" in name else ""


def _text_at(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value.strip() if isinstance(value, str) else ""
