"""The hooks of single agents: `agents.NAME.hooks` switches them on, and lets them hear that agent's turns alone."""

from collections.abc import Iterable

from msgspec.structs import replace

from gateway.config.settings import HookOverrides, HooksSettings, Settings
from gateway.hooks.folders.stats import HookStatus


def add_agent_hooks(settings: Settings) -> HooksSettings:
    """The settings of hooks, with what the agents say of theirs."""
    each = dict(settings.hooks.each)
    for agent, own in settings.agents.items():
        for name in own.hooks:
            before = each.get(name, HookOverrides())
            enabled = True if before.enabled is None else before.enabled
            each[name] = replace(before, enabled=enabled, agents=tuple(dict.fromkeys((*before.agents, agent))))
    return replace(settings.hooks, each=each)


def check_agent_hooks(settings: Settings, found: Iterable[HookStatus]) -> list[str]:
    """Agents whose hooks are none."""
    names = {status.name for status in found}
    return [
        f"agents.{agent}.hooks names {name!r}, and there is no hook of that name: see `hermes-gateway hooks list`"
        for agent, own in settings.agents.items()
        for name in own.hooks
        if name not in names
    ]
