"""What the running gateway answers on its control socket."""

import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import anyio
import msgspec

from gateway.adapters.terminal import SayRequest, ShowRequest
from gateway.cluster.event_relay import ForwardedEvent
from gateway.control.params import NoParams
from gateway.control.server import Notify, Verb
from gateway.daemon.gateway import Gateway, GatewayVerb
from gateway.daemon.groups.reports import check_start, restart_gateway
from gateway.daemon.home_verbs import HOME_VERBS
from gateway.daemon.hook_verbs import HOOK_VERBS, ReplayParams, replay_events
from gateway.daemon.people_verbs import PEOPLE_VERBS, PersonParams, export_person
from gateway.daemon.platform_verbs import PLATFORM_VERBS
from gateway.daemon.port_verbs import PORT_VERBS
from gateway.daemon.question_verbs import QUESTION_VERBS
from gateway.daemon.session_verbs import SESSION_VERBS
from gateway.daemon.usage_verbs import USAGE_VERBS
from gateway.daemon.verb_activity import write_verb
from gateway.daemon.verb_rights import restrict_verb
from gateway.errors import GatewayError
from gateway.events.catalogue import remove_live_fields
from gateway.records.activity import CALLER
from gateway.records.records import ActivityRecord

ReloadConfiguration: TypeAlias = Callable[[Gateway], Awaitable[tuple[list[str], list[str]]]]
"""Returns which settings have changed, and which of these count only from the next start on."""
AnswerLong: TypeAlias = Callable[[Gateway, Any, Notify], Awaitable[Any]]
MAX_EVENTS_BEHIND = 1000  # events that a slow watcher may be behind before the oldest are dropped


def build_verbs(gateway: Gateway, reload: ReloadConfiguration | None = None) -> Mapping[str, Verb]:
    """By name, each a function of its parameters and of how to notify its caller.

    `reload` reads the configuration again, where somebody has one to read.
    """
    own: dict[str, GatewayVerb[Any]] = {
        "status": GatewayVerb(NoParams, _status),
        "stop": GatewayVerb(NoParams, _stop),
        "restart": GatewayVerb(NoParams, _restart),
        "chat.commands": GatewayVerb(NoParams, _list_commands),
    }
    if reload:
        own["reload"] = GatewayVerb(NoParams, partial(_reload, reload))
    shown = {**own, **HOME_VERBS, **HOOK_VERBS, **PLATFORM_VERBS}
    plain: dict[str, GatewayVerb[Any]] = {
        **SESSION_VERBS,
        **QUESTION_VERBS,
        **PEOPLE_VERBS,
        **PORT_VERBS,
        **USAGE_VERBS,
    }
    answers: dict[str, tuple[Any, Callable[[Any, Notify], Awaitable[Any]]]] = {
        **{one: (verb.params, partial(_answer_without_secrets, gateway, one, verb)) for one, verb in shown.items()},
        **{one: (verb.params, partial(_answer, gateway, one, verb)) for one, verb in plain.items()},
        "events.tail": (TailParams, partial(_answer_long, "events.tail", tail_events, gateway)),
        "events.replay": (ReplayParams, partial(_answer_long, "events.replay", replay_events, gateway)),
        "people.export": (PersonParams, partial(export_person, gateway)),
        "chat.say": (SayRequest, gateway.terminal.say),
        "chat.show": (ShowRequest, gateway.terminal.show),
    }
    return {name: restrict_verb(name, *answer, gateway.activity) for name, answer in answers.items()}


async def _answer(gateway: Gateway, name: str, verb: GatewayVerb[Any], params: Any, _notify: Notify) -> Any:
    """As it is: people's own texts, and a key for whoever made it. What was done is recorded, whoever asked."""
    said = await verb.answer(gateway, params)
    await write_verb(gateway.activity, name, params, said)
    return said


async def _answer_without_secrets(
    gateway: Gateway, name: str, verb: GatewayVerb[Any], params: Any, notify: Notify
) -> Any:
    said = msgspec.to_builtins(await _answer(gateway, name, verb, params, notify), enc_hook=str)
    return gateway.configuration.redactor.clean_all(said)


async def _answer_long(name: str, answer: AnswerLong, gateway: Gateway, params: Any, notify: Notify) -> Any:
    """What goes on for long is recorded when it begins, unless the gateway asks for it itself, to feed its page.

    It does not wait for the record: events are watched when a journal is ill, too.
    """
    said, error = None, None
    async with anyio.create_task_group() as tasks:
        if CALLER.get(None):
            tasks.start_soon(write_verb, gateway.activity, name, params, None)
        try:
            said = await answer(gateway, params, notify)
        except GatewayError as refusal:  # out of the group it would come as one of several
            error = refusal
    if error:
        raise error
    return said


async def _status(gateway: Gateway, _params: NoParams) -> Any:
    return await gateway.status.build()


async def _list_commands(gateway: Gateway, _params: NoParams) -> Any:
    """What may be typed in a chat here, by whom all is allowed."""
    shown = (one for one in gateway.context.commands.values() if not one.hidden)
    return {"commands": [{"name": one.name, "usage": one.usage, "summary": one.summary} for one in shown]}


async def _stop(gateway: Gateway, _params: NoParams) -> Any:
    await gateway.activity.write(ActivityRecord(what="stop"))  # before: nobody waits for it afterwards
    gateway.shutdown.request("asked on the control socket")
    return {}


async def _restart(gateway: Gateway, _params: NoParams) -> Any:
    await check_start(gateway.groups.run)
    await gateway.activity.write(ActivityRecord(what="restart"))  # before, as of a stop
    await restart_gateway(gateway.groups.base, gateway.groups.run)
    return {}


async def _reload(reload: ReloadConfiguration, gateway: Gateway, _params: NoParams) -> Any:
    changed, later = await reload(gateway)
    return {"changed": changed, "restart": later}


class TailParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events of these names, which may be patterns; without any, all."""

    names: tuple[str, ...] | None = None


async def tail_events(gateway: Gateway, params: TailParams, notify: Notify) -> None:
    """Every event as it happens, on any node, until the caller leaves; a caller that is too slow loses some, never
    the gateway. Of an event of another node that one's name is told.
    """
    send, receive = anyio.create_memory_object_stream[dict[str, Any]](math.inf)
    names, lost = params.names or ("*",), 0

    def put(event_type: str, fields: dict[str, Any], **where: str) -> None:
        nonlocal lost
        if send.statistics().current_buffer_used >= MAX_EVENTS_BEHIND:
            lost += 1
            return
        send.send_nowait({"event": event_type, "lost": lost, "fields": fields, **where})

    def note(event_type: str, context: dict[str, Any]) -> None:
        put(event_type, remove_live_fields(event_type, context))

    def note_told(told: ForwardedEvent) -> None:
        put(told.event, told.fields, node=told.node)

    remove = gateway.registry.watch(names, note)
    try:
        with send, receive, gateway.event_relay.watching(names, note_told):
            async for event in receive:
                await notify("event", event)
    finally:
        remove()
