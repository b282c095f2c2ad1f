"""The group of chat networks, and the alerts in their home channels."""

from functools import partial

import msgspec

from gateway.adapters.shared.adapter import AdapterContext
from gateway.adapters.shared.network_routes import NetworkRoutes
from gateway.daemon.alerts import Alerts, JournalAlerts
from gateway.daemon.groups.people import People
from gateway.daemon.groups.process import Base, NodePresence
from gateway.daemon.groups.storage import Storage
from gateway.daemon.groups.turns import Turns
from gateway.daemon.platforms import PlatformPart, build_platforms
from gateway.lanes.lanes import list_open_sessions
from gateway.messages.pieces import MessageName
from gateway.sessions.deleted_messages import DeletedMessages


class Networks(msgspec.Struct, frozen=True):
    """The chat networks and their alerts. Each network gets `adapter_context`, its access to the gateway."""

    adapter_context: AdapterContext
    platforms: list[PlatformPart]
    alerts: Alerts
    journal_alerts: JournalAlerts


def build_networks(base: Base, presence: NodePresence, storage: Storage, people: People, turns: Turns) -> Networks:
    context = AdapterContext(
        turns.dispatcher.receive,
        turns.context,
        base.home.files,
        base.home.unreadable,
        NetworkRoutes(base.settings.web),
        partial(delete_message, base, storage, people),
    )
    platforms = build_platforms(base.current.configuration, context, presence.nodes)
    waiting, list_homes = turns.dispatcher.list_waiting, turns.context.places.list_homes
    journal_alerts = JournalAlerts(base.engine, turns.outbox, waiting, list_homes)
    return Networks(context, platforms, Alerts(platforms, turns.outbox), journal_alerts)


async def delete_message(base: Base, storage: Storage, people: People, name: MessageName, by: str = "") -> bool:
    """Delete a message that its author deleted; return True if anything was removed."""
    if base.settings.sessions.deletions == "keep":
        return False
    list_open = partial(list_open_sessions, base.engine)
    found = DeletedMessages(base.engine, storage.sessions, storage.search.find_message, list_open)
    was_heard = await people.heard.delete(name, by)
    return await found.delete(name, by) or was_heard
