"""What the running gateway answers on its control socket."""

import math
from collections.abc import Mapping
from typing import Any

import anyio

from gateway.control_socket.server import Notify, Verb
from gateway.daemon import hooks
from gateway.daemon.gateway import Gateway
from gateway.daemon.platform_verbs import PlatformVerbs
from gateway.daemon.session_verbs import SessionVerbs
from gateway.daemon.status import build_status
from gateway.events.catalogue import get_event_spec

MAX_EVENTS_BEHIND = 1000  # events that a slow watcher may be behind before the oldest are dropped


def build_verbs(gateway: Gateway) -> Mapping[str, Verb]:
    """By name, each a function of its parameters and of how to notify its caller."""

    async def status(_params: dict[str, Any], _notify: Notify) -> Any:
        return await build_status(gateway)

    async def stop(_params: dict[str, Any], _notify: Notify) -> Any:
        gateway.shutdown.request("asked on the control socket")
        return {}

    async def events(params: dict[str, Any], notify: Notify) -> Any:
        return await tail_events(gateway, params.get("names") or ["*"], notify)

    own = {"status": status, "stop": stop, "events.tail": events, "chat.say": gateway.terminal.say}
    sessions = SessionVerbs(gateway.engine, gateway.sessions, gateway.search)
    return {
        **own,
        **hooks.build_hook_verbs(gateway.folder_hooks, gateway.engine),
        **sessions.verbs(),
        **PlatformVerbs(gateway).verbs(),
    }


async def tail_events(gateway: Gateway, names: list[str], notify: Notify) -> None:
    """Every event as it happens, until the caller leaves; a caller that is too slow loses some, never the gateway."""
    send, receive = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
    lost = 0

    def note(event_type: str, context: dict[str, Any]) -> None:
        nonlocal lost
        if send.statistics().current_buffer_used >= MAX_EVENTS_BEHIND:
            lost += 1
            return
        send.send_nowait({"event": event_type, "lost": lost, "fields": remove_live_fields(event_type, context)})

    remove = gateway.registry.watch(names, note)
    try:
        with send, receive:
            async for event in receive:
                await notify("event", event)
    finally:
        remove()


def remove_live_fields(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that are live objects of this process."""
    known = get_event_spec(name)
    live = {field.name for field in known.fields if field.live} if known else set()
    return {key: value for key, value in fields.items() if key not in live}
