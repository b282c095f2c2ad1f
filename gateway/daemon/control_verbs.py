"""What the running gateway answers on its control socket."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import msgspec

from gateway.control_socket.server import Notify, Verb, as_verb
from gateway.daemon.gateway import AnswerVerb, Gateway
from gateway.daemon.hook_verbs import HOOK_VERBS, replay_events
from gateway.daemon.platform_verbs import PLATFORM_VERBS
from gateway.daemon.session_verbs import SESSION_VERBS
from gateway.daemon.status import build_status
from gateway.events.catalogue import get_event_spec

MAX_EVENTS_BEHIND = 1000  # events that a slow watcher may be behind before the oldest are dropped


def build_verbs(gateway: Gateway) -> Mapping[str, Verb]:
    """By name, each a function of its parameters and of how to notify its caller."""
    shown = {"status": _status, "stop": _stop, **HOOK_VERBS, **PLATFORM_VERBS}
    return {
        **{name: as_verb(partial(_answer_without_secrets, gateway, answer)) for name, answer in shown.items()},
        **{name: as_verb(partial(answer, gateway)) for name, answer in SESSION_VERBS.items()},  # people's own texts
        "events.tail": partial(tail_events, gateway),
        "events.replay": partial(replay_events, gateway),
        "chat.say": gateway.terminal.say,
    }


async def _answer_without_secrets(gateway: Gateway, answer: AnswerVerb, params: dict[str, Any]) -> Any:
    said = msgspec.to_builtins(await answer(gateway, params), enc_hook=str)
    return gateway.configuration.redactor.clean_all(said)


async def _status(gateway: Gateway, _params: dict[str, Any]) -> Any:
    return await build_status(gateway)


async def _stop(gateway: Gateway, _params: dict[str, Any]) -> Any:
    gateway.shutdown.request("asked on the control socket")
    return {}


async def tail_events(gateway: Gateway, params: dict[str, Any], notify: Notify) -> None:
    """Every event as it happens, until the caller leaves; a caller that is too slow loses some, never the gateway."""
    send, receive = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
    lost = 0

    def note(event_type: str, context: dict[str, Any]) -> None:
        nonlocal lost
        if send.statistics().current_buffer_used >= MAX_EVENTS_BEHIND:
            lost += 1
            return
        send.send_nowait({"event": event_type, "lost": lost, "fields": remove_live_fields(event_type, context)})

    remove = gateway.registry.watch(params.get("names") or ["*"], note)
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
