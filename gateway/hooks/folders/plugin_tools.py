"""What the running plugins offer beside their callbacks (tools, commands, skills), and how it is used."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gateway.errors import HookError
from gateway.hooks.folders.hook import FolderHook
from gateway.hooks.wires.wire import HookFailed
from gateway.worker.protocol import CallMeta, PluginContents

SESSION_FIELDS = ("platform", "chat_id", "thread_id", "user_id")


class PluginTools:
    """`hooks`: the folder hooks that there are now, by name."""

    def __init__(self, hooks: Callable[[], Mapping[str, FolderHook]]) -> None:
        self._hooks = hooks

    def all(self) -> Iterator[tuple[FolderHook, PluginContents]]:
        """Of those that are up, in the order of their names."""
        for _, hook in sorted(self._hooks().items()):
            if hook.is_up and hook.process.targets and hook.current and hook.current.manifest:
                yield hook, hook.process.targets.offers

    async def use(self, name: str, target: str, fields: Mapping[str, Any], timeout: float) -> Any:
        """Call `tool:<name>` or `command:<name>` of this plugin. HookError when it fails or is gone."""
        hook, begun = self._hooks().get(name), time.perf_counter()
        if hook is None:
            raise HookError(f"the plugin {name} is gone")
        try:
            wire = await hook.process.get_wire(timeout)
            with hook.process.using(wire):
                meta = CallMeta(decides=True, target=target, session=_session_from(fields))
                answer = await wire.call(target, fields, meta, timeout)
        except HookFailed as failed:
            hook.calls.record.failed(target, time.perf_counter() - begun, failed)
            raise
        hook.calls.record.answered(target, time.perf_counter() - begun, "ok")
        return answer.result


def _session_from(fields: Mapping[str, Any]) -> dict[str, str]:
    found = {name.upper(): str(fields[name]) for name in SESSION_FIELDS if fields.get(name) is not None}
    found |= {"KEY": str(fields.get("session_key") or ""), "ID": str(fields.get("session_id") or "")}
    return found
