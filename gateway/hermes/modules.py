"""The modules that a handler may import, and the origin of each of their names: one table.

In a worker, `boot.py` makes them with the loader below, and a name is fetched at its first use: a hook that needs
nothing of Hermes does not pay for it. In the daemon, `unsupported_imports` reads the same table.
"""

import importlib
import sys
from collections.abc import Iterable, Mapping
from importlib.abc import Loader
from types import ModuleType
from typing import Any

AGENT_SESSIONS = "hermes-"  # begins the names of the sessions of an `AIAgent`

_SHIM = "gateway.hermes.shim"
# A module, the one behind it, and the names it gets from there; `new=old` is another name for the same.
_ROWS = (
    ("agent", "", ""),
    ("agent.secret_scope", f"{_SHIM}.home", "get_secret"),
    ("gateway.hooks", "gateway.events", "Deny End Event Retry is_yes on"),
    ("gateway.hooks", f"{_SHIM}.hook_registry", "HookRegistry"),
    (
        "gateway.config",
        f"{_SHIM}.config_shapes",
        "GatewayConfig HomeChannel Platform PlatformConfig SessionResetPolicy StreamingConfig load_gateway_config",
    ),
    ("gateway.platforms", "", ""),
    ("gateway.platforms.base", f"{_SHIM}.config_shapes", "Platform PlatformConfig"),
    (
        "gateway.platforms.base",
        f"{_SHIM}.platform_shapes",
        "BasePlatformAdapter=PlatformAdapter MessageEvent MessageType ProcessingOutcome SendResult",
    ),
    ("gateway.platforms.base", f"{_SHIM}.session_shapes", "SessionSource"),
    (
        "gateway.run",
        f"{_SHIM}.home",
        "_resolve_gateway_model=resolve_gateway_model _resolve_runtime_agent_kwargs=resolve_runtime_agent_kwargs",
    ),
    ("gateway.session", f"{_SHIM}.config_shapes", "GatewayConfig HomeChannel Platform SessionResetPolicy"),
    ("gateway.session", f"{_SHIM}.session_shapes", "SessionEntry SessionSource SessionStore build_session_key"),
    ("gateway.session", f"{_SHIM}.whatsapp_ids", "canonical_whatsapp_identifier normalize_whatsapp_identifier"),
    (
        "gateway.session_context",
        f"{_SHIM}.session_env",
        "async_delivery_supported clear_session_vars get_session_env reset_session_vars set_session_vars",
    ),
    ("gateway.session_context", f"{_SHIM}.session_env", "session_context_engaged set_current_session_id"),
    (
        "gateway.whatsapp_identity",
        f"{_SHIM}.whatsapp_ids",
        "canonical_whatsapp_identifier expand_whatsapp_aliases normalize_whatsapp_identifier to_whatsapp_jid",
    ),
    ("hermes_cli", "", ""),
    (
        "hermes_cli.commands",
        f"{_SHIM}.command_table",
        "COMMANDS COMMANDS_BY_CATEGORY COMMAND_REGISTRY CommandDef GATEWAY_KNOWN_COMMANDS SUBCOMMANDS",
    ),
    (
        "hermes_cli.commands",
        f"{_SHIM}.command_table",
        "gateway_help_lines is_gateway_known_command resolve_command should_bypass_active_session slack_subcommand_map",
    ),
    ("hermes_cli.config", f"{_SHIM}.home", "get_config_path get_env_path get_hermes_home load_config"),
    ("hermes_cli.config", f"{_SHIM}.home", "load_config_readonly=load_config read_raw_config=load_config"),
    ("hermes_cli.config", f"{_SHIM}.home", "cfg_get=find_setting get_env_value"),
    ("hermes_cli.profiles", f"{_SHIM}.home", "get_active_profile_name"),
    ("hermes_cli.plugins", "gateway.hermes.plugin.plugin_context", "PluginContext"),
    ("hermes_constants", f"{_SHIM}.home", "display_hermes_home get_config_path get_env_path get_hermes_dir"),
    ("hermes_constants", f"{_SHIM}.home", "get_hermes_home get_skills_dir"),
    ("hermes_constants", f"{_SHIM}.home", "get_default_hermes_root=get_hermes_home"),
    ("hermes_constants", f"{_SHIM}.home", "get_process_hermes_home=get_hermes_home"),
    ("run_agent", f"{_SHIM}.ai_agent", "AIAgent"),
    ("tools", "", ""),
    ("tools.approval", f"{_SHIM}.approval", "check_dangerous_command request_tool_approval"),
    ("tools.registry", f"{_SHIM}.tool_registry", "ToolRegistry registry tool_error tool_result"),
    ("tools.send_message_tool", f"{_SHIM}.send_tool", "send_message_tool"),
    ("toolsets", f"{_SHIM}.tool_registry", "resolve_multiple_toolsets resolve_toolset validate_toolset"),
)
# The top-level modules of hermes-agent 0.19. A package of such a name in a registry is by someone else.
_OWN_MODULES = """
acp_adapter agent batch_runner cli cron gateway hermes_bootstrap hermes_cli hermes_constants hermes_logging
hermes_state hermes_time mcp_serve model_tools plugins providers run_agent tools toolset_distributions toolsets
trajectory_compressor tui_gateway utils
"""
HERMES_OWN_MODULES = frozenset(_OWN_MODULES.split())
# Modules that no registry has for us: Hermes's own, and the package of its plugins.
PLUGIN_PARENT = "hermes_plugins"
NEVER_INSTALLED = HERMES_OWN_MODULES | {PLUGIN_PARENT}
# Modules in which people patch Hermes: any other name exists in them, too, without effect.
HOLLOW_MODULES = frozenset(
    {"gateway.platforms.base", "gateway.run", "gateway.session", "run_agent", "tools.send_message_tool"}
)


def _read_rows() -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for module, source, words in _ROWS:
        names = found.setdefault(module, {})
        for new, _, old in (word.partition("=") for word in words.split()):
            names[new] = (source, old or new)
    return found


NAMES: Mapping[str, Mapping[str, tuple[str, str]]] = _read_rows()


class ModuleTableLoader(Loader):
    """The loader of the table's modules; in a module that is not in it, every name is a placeholder."""

    def exec_module(self, module: ModuleType) -> None:
        self.fill(module, is_hollow=module.__name__ in HOLLOW_MODULES or module.__name__ not in NAMES)

    def fill(self, module: ModuleType, *, is_hollow: bool) -> None:
        name = module.__name__
        names = NAMES.get(name, {})
        placeholder = None
        if is_hollow:
            placeholder = importlib.import_module(f"{_SHIM}.placeholders").make_placeholder_getattr(name)

        def get(attribute: str) -> Any:
            if attribute in names:
                source, original = names[attribute]
                found = vars(module)[attribute] = getattr(importlib.import_module(source), original)
                return found
            if placeholder is not None:
                return placeholder(attribute)
            raise AttributeError(f"{name} has no {attribute!r} for hooks; there is {', '.join(names) or 'nothing'}")

        vars(module).update(__getattr__=get, __all__=list(names))


LOADER = ModuleTableLoader()


def add_hollow_modules(patches: Iterable[str]) -> None:
    """Add empty modules for patches of modules outside the table, so that they have no effect and the code goes on."""
    for patch in patches:
        words = patch.split(".")[:-1]
        for count in range(1, len(words) + 1) if words and words[0] in HERMES_OWN_MODULES else ():
            name = ".".join(words[:count])
            try:
                module = importlib.import_module(name)
            except ImportError:
                module = sys.modules[name] = ModuleType(name)
                module.__path__, module.__loader__ = [], LOADER
            if isinstance(module.__loader__, ModuleTableLoader):
                LOADER.fill(module, is_hollow=True)
