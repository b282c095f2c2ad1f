"""The paths of Hermes's files, and the contents of its configuration, which is read and never written."""

import os
from pathlib import Path
from typing import Any

import yaml

from gateway.hermes.shim.gateway_calls import get_facts


def get_hermes_home() -> Path:
    return Path(os.environ["HERMES_HOME"])  # noqa: TID251 - every worker has it


def get_config_path() -> Path:
    return get_hermes_home() / "config.yaml"


def get_env_path() -> Path:
    return get_hermes_home() / ".env"


def get_skills_dir() -> Path:
    return get_hermes_home() / "skills"


def get_hermes_dir(new_subpath: str, old_name: str) -> Path:
    """Return a folder of the home that once had another name; the old one if it still has files."""
    old = get_hermes_home() / old_name
    return old if old.is_dir() and any(old.iterdir()) else get_hermes_home() / new_subpath


def display_hermes_home() -> str:
    """Return the home's path as people write it."""
    home = get_hermes_home()
    return f"~/{home.relative_to(Path.home())}" if home.is_relative_to(Path.home()) else str(home)


def load_config() -> dict[str, Any]:
    """Load Hermes's own `config.yaml` as it is, with our model under `model`."""
    try:
        with get_config_path().open(encoding="utf-8") as file:
            found = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (OSError, yaml.YAMLError):
        found = None
    config: dict[str, Any] = found if isinstance(found, dict) else {}
    about = get_facts()
    ours = {"default": about["model"], "provider": about["provider"], "base_url": about["base_url"]}
    written = config.get("model")
    return {**config, "model": {**written, **ours} if isinstance(written, dict) else ours}


def find_setting(cfg: Any, *keys: str, default: Any = None) -> Any:
    """Find the value under these nested keys; return `default` if one of them is missing."""
    for key in keys if isinstance(cfg, dict) else ("",):
        if not isinstance(cfg, dict) or key not in cfg:
            return default
        cfg = cfg[key]
    return cfg


def get_env_value(key: str) -> str | None:
    """Return a variable of the environment or Hermes's `.env`; the hook sees only those that it names."""
    return os.environ.get(key)  # noqa: TID251 - what the hook declared


def get_secret(name: str, default: str | None = None) -> str | None:
    """Return a variable of the environment; the hook sees only those that it names."""
    return os.environ.get(name, default)  # noqa: TID251 - what the hook declared


def get_active_profile_name() -> str:
    """Return the only profile here."""
    return "default"


def resolve_gateway_model(config: dict[str, Any] | None = None) -> str:
    """Return the model's name from the given configuration, or else that of our model."""
    model = get_facts()["model"] if config is None else config.get("model")
    if isinstance(model, dict):
        model = model.get("default") or model.get("model")
    return str(model or "")


def resolve_runtime_agent_kwargs() -> dict[str, Any]:
    """Return how the model is reached; the key only if this hook may read the key's variable."""
    about = get_facts()
    provider = str(about["provider"])
    return {
        "api_key": os.environ.get(f"{provider.upper()}_API_KEY"),  # noqa: TID251 - what the hook declared
        "base_url": about["base_url"],
        "provider": provider,
        "api_mode": "chat_completions",
        "command": None,
        "args": [],
        "credential_pool": None,
        "max_tokens": None,
    }
