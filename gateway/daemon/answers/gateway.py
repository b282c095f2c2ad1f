"""Answers about the gateway itself: its state, its stop and restart, its turns, and its events as they happen."""

import math
from typing import Any

import anyio

from gateway.daemon.groups.process import Base, NodePresence, Run
from gateway.daemon.groups.reports import check_start, restart_gateway
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.nodes import ForwardedEvent
from gateway.daemon.reload import ReloadConfiguration
from gateway.daemon.status import StatusReport
from gateway.events.catalogue import remove_live_fields
from gateway.events.verbs import TailParams
from gateway.records.records import ActivityRecord
from gateway.sessions.search import find_session
from gateway.sessions.verbs import SessionParams
from gateway.verbs import Notify

MAX_EVENTS_BEHIND = 1000  # events that a slow watcher may be behind before the oldest are dropped


async def status(status_report: StatusReport) -> Any:
    return await status_report.build()


async def chat_commands(turns: Turns) -> Any:
    """List the commands that an owner can type in a chat."""
    shown = (one for one in turns.context.commands.values() if not one.hidden)
    return {"commands": [{"name": one.name, "usage": one.usage, "summary": one.summary} for one in shown]}


async def stop(base: Base, storage: Storage) -> Any:
    await storage.activity.write(ActivityRecord(what="stop"))  # before the stop, which does not wait for the record
    base.shutdown.request("asked on the control socket")
    return {}


async def restart(base: Base, run: Run, storage: Storage) -> Any:
    await check_start(run)
    await storage.activity.write(ActivityRecord(what="restart"))  # before the restart, as for a stop
    await restart_gateway(base, run)
    return {}


async def reload(reload_configuration: ReloadConfiguration) -> Any:
    changed, later = await reload_configuration()
    return {"changed": changed, "restart": later}


async def sessions_stop(storage: Storage, turns: Turns, params: SessionParams) -> Any:
    session = await find_session(storage.search, storage.sessions, params.session)
    return {"stopped": await turns.lanes.interrupt(session.key)}


async def events_tail(base: Base, presence: NodePresence, params: TailParams, notify: Notify) -> None:
    """Notify the caller of each event on any node, until the caller leaves; a slow caller loses events.

    An event of another node comes with the name of that node.
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

    remove = base.registry.watch(names, note)
    try:
        with send, receive, presence.event_relay.watching(names, note_told):
            async for event in receive:
                await notify("event", event)
    finally:
        remove()
