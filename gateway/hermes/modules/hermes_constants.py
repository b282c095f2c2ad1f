"""`hermes_constants`, as a handler sees it."""

from gateway.hermes.shim.home import (
    display_hermes_home,
    get_config_path,
    get_env_path,
    get_hermes_dir,
    get_hermes_home,
    get_skills_dir,
)

get_default_hermes_root = get_process_hermes_home = get_hermes_home

__all__ = [
    "display_hermes_home",
    "get_config_path",
    "get_default_hermes_root",
    "get_env_path",
    "get_hermes_dir",
    "get_hermes_home",
    "get_process_hermes_home",
    "get_skills_dir",
]
