"""`hermes_cli.config`, as a handler sees it."""

from gateway.hermes.shim.home import get_config_path, get_env_path, get_hermes_home, load_config

read_raw_config = load_config_readonly = load_config

__all__ = [
    "get_config_path",
    "get_env_path",
    "get_hermes_home",
    "load_config",
    "load_config_readonly",
    "read_raw_config",
]
