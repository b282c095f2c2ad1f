"""SIGHUP: the configuration is read again while everything runs on. One that is wrong changes nothing.

Who answers, with what, and who may speak counts from the next message on; what the parts were built with stays until
they are built again, and which settings these are is said.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from gateway.config.loading import Configuration
from gateway.config.settings import Settings
from gateway.daemon.gateway import Gateway
from gateway.daemon.status import format_status_line
from gateway.errors import ConfigError
from gateway.notify import Notifier

log = logging.getLogger(__name__)

LoadConfiguration: TypeAlias = Callable[[], Configuration]

RELOADABLE = {"model", "models", "agents", "routes", "tools", "mcp_servers", "access", "sessions.busy", "logs.level"}
RELOADABLE |= {f"hooks.{name}" for name in ("dirs", "enabled", "disabled", "env", "trust", "each")}


class ConfigurationReloader:
    """Reads the configuration again, and says what comes of it: in the log and in `status`."""

    def __init__(self, gateway: Gateway, load: LoadConfiguration, notifier: Notifier) -> None:
        self._gateway = gateway
        self._built = gateway.settings
        self._load = load
        self._notifier = notifier

    async def now(self) -> None:
        self._notifier.reloading()
        try:
            configuration = self._load()
        except ConfigError as error:
            log.error("the configuration was not reloaded, the one before goes on: %s", error)
            self._gateway.trouble = f"the configuration was not reloaded: {error}"
        else:
            await self._gateway.take(configuration)
            self._gateway.trouble = describe_restart_needed(list_restart_needed(self._built, configuration.settings))
            log.info("the configuration was reloaded%s", f"; {self._gateway.trouble}" * bool(self._gateway.trouble))
        self._notifier.ready(format_status_line(self._gateway))


def list_restart_needed(before: Settings, after: Settings) -> list[str]:
    """The settings that differ, and for which it must be started again."""
    return [name for name in list_differences(before, after) if not RELOADABLE & {name, name.partition(".")[0]}]


def list_differences(before: Any, after: Any, within: str = "") -> Iterator[str]:
    """The names of the settings that differ, with those of their sections before them."""
    if not isinstance(before, msgspec.Struct):
        yield from [within] if before != after else []
        return
    for field in before.__struct_fields__:
        yield from list_differences(getattr(before, field), getattr(after, field), f"{within}.{field}".lstrip("."))


def describe_restart_needed(names: list[str]) -> str:
    return f"changed, but only from the next start on: {', '.join(names)}" if names else ""
