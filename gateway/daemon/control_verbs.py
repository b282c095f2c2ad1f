"""What the running gateway answers on its control socket."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
import msgspec

from gateway.adapters.terminal import SayRequest
from gateway.control_socket.params import NoParams
from gateway.control_socket.server import Notify, Verb
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.daemon.hook_verbs import HOOK_VERBS, ReplayParams, replay_events
from gateway.daemon.platform_verbs import PLATFORM_VERBS
from gateway.daemon.session_verbs import SESSION_VERBS
from gateway.daemon.status import build_status
from gateway.events.catalogue import get_event_spec

MAX_EVENTS_BEHIND = 1000  # events that a slow watcher may be behind before the oldest are dropped


def build_verbs(gateway: Gateway) -> Mapping[str, Verb]:
    """By name, each a function of its parameters and of how to notify its caller."""
    own = {"status": GatewayVerb(NoParams, _status), "stop": GatewayVerb(NoParams, _stop)}
    shown: dict[str, GatewayVerb[Any]] = {**own, **HOOK_VERBS, **PLATFORM_VERBS}
    return {
        **{name: Verb(verb.params, partial(_answer_without_secrets, gateway, verb)) for name, verb in shown.items()},
        **{name: Verb(verb.params, partial(_answer, gateway, verb)) for name, verb in SESSION_VERBS.items()},
        "events.tail": Verb(TailParams, partial(tail_events, gateway)),
        "events.replay": Verb(ReplayParams, partial(replay_events, gateway)),
        "chat.say": Verb(SayRequest, gateway.terminal.say),
    }


async def _answer(gateway: Gateway, verb: GatewayVerb[Any], params: Any, _notify: Notify) -> Any:
    """As it is: people's own texts."""
    return await verb.answer(gateway, params)


async def _answer_without_secrets(gateway: Gateway, verb: GatewayVerb[Any], params: Any, _notify: Notify) -> Any:
    said = msgspec.to_builtins(await verb.answer(gateway, params), enc_hook=str)
    return gateway.configuration.redactor.clean_all(said)


async def _status(gateway: Gateway, _params: NoParams) -> Any:
    return await build_status(gateway)


async def _stop(gateway: Gateway, _params: NoParams) -> Any:
    gateway.shutdown.request("asked on the control socket")
    return {}


class TailParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events of these names, which may be patterns; without any, all."""

    names: tuple[str, ...] | None = None


async def tail_events(gateway: Gateway, params: TailParams, notify: Notify) -> None:
    """Every event as it happens, until the caller leaves; a caller that is too slow loses some, never the gateway."""
    send, receive = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
    lost = 0

    def note(event_type: str, context: dict[str, Any]) -> None:
        nonlocal lost
        if send.statistics().current_buffer_used >= MAX_EVENTS_BEHIND:
            lost += 1
            return
        send.send_nowait({"event": event_type, "lost": lost, "fields": remove_live_fields(event_type, context)})

    remove = gateway.registry.watch(params.names or ["*"], note)
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
