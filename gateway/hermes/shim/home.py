"""Where Hermes's files lie, and what stands in its configuration: read, never written."""

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
    """A folder of the home that once had another name: that one, where it is still there."""
    old = get_hermes_home() / old_name
    return old if old.is_dir() and any(old.iterdir()) else get_hermes_home() / new_subpath


def display_hermes_home() -> str:
    """As people write it."""
    home = get_hermes_home()
    return f"~/{home.relative_to(Path.home())}" if home.is_relative_to(Path.home()) else str(home)


def load_config() -> dict[str, Any]:
    """Hermes's own `config.yaml` as it stands, and under `model` the model that answers here."""
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
    """What stands under these keys, one in the other; `default` where one of them is not there."""
    for key in keys if isinstance(cfg, dict) else ("",):
        if not isinstance(cfg, dict) or key not in cfg:
            return default
        cfg = cfg[key]
    return cfg


def get_env_value(key: str) -> str | None:
    """From the environment or Hermes's `.env`, of which this hook sees what it names."""
    return os.environ.get(key)  # noqa: TID251 - what the hook declared


def get_secret(name: str, default: str | None = None) -> str | None:
    """From the environment, of which this hook sees what it names."""
    return os.environ.get(name, default)  # noqa: TID251 - what the hook declared


def get_active_profile_name() -> str:
    """There are no others here."""
    return "default"


def resolve_gateway_model(config: dict[str, Any] | None = None) -> str:
    """The model's name: what the given configuration says, else the one that answers here."""
    model = get_facts()["model"] if config is None else config.get("model")
    if isinstance(model, dict):
        model = model.get("default") or model.get("model")
    return str(model or "")


def resolve_runtime_agent_kwargs() -> dict[str, Any]:
    """How the model is reached. The key is there only where this hook may see the variable that holds it."""
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
