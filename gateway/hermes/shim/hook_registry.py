"""Hermes's `HookRegistry` for hooks: it lists the hooks, and emits an event of the hook's own."""

import sys
from typing import Any

import yaml

from gateway.hermes.shim.gateway_calls import ask_gateway
from gateway.hermes.shim.home import get_hermes_home
from gateway.hermes.shim.placeholders import PatchWarningType


class HookRegistry(metaclass=PatchWarningType):
    """The registry.

    The hooks themselves are the gateway's: loading them here only reads their manifests.
    """

    def __init__(self) -> None:
        self._loaded: list[dict[str, Any]] = []

    @property
    def loaded_hooks(self) -> list[dict[str, Any]]:
        return list(self._loaded)

    def discover_and_load(self) -> None:
        """Read the manifests in the folders again."""
        self._loaded = []
        for manifest in sorted((get_hermes_home() / "hooks").glob("*/HOOK.yaml")):
            try:
                found = yaml.safe_load(manifest.read_text(encoding="utf-8"))
            except (OSError, ValueError, yaml.YAMLError):
                continue
            if isinstance(found, dict) and found.get("events"):
                self._loaded.append(
                    {
                        "name": found.get("name", manifest.parent.name),
                        "description": found.get("description", ""),
                        "events": found["events"],
                        "path": str(manifest.parent),
                    }
                )

    async def emit(self, event_type: str, context: dict[str, Any] | None = None) -> None:
        """Emit an event to all hooks; one of the gateway's own events is refused, with a line in the log."""
        try:
            ask_gateway("emit", name=event_type, fields=dict(context or {}))
        except RuntimeError as refused:
            print(f"emit {event_type}: {refused}", file=sys.stderr)  # noqa: T201 - as in Hermes, nothing is raised

    async def emit_collect(self, event_type: str, context: dict[str, Any] | None = None) -> list[Any]:
        """Emit as `emit` does; observers return no answers here."""
        await self.emit(event_type, context)
        return []
