"""The storage group: conversations and their index, files, notes about people, and the activity."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.backup.shared_journal import find_servers
from gateway.daemon.cluster_table import build_files
from gateway.daemon.groups.process import Base, NodePresence
from gateway.daemon.scheduled_backups import ScheduledBackups
from gateway.daemon.shared_memory import SharedMemory
from gateway.files.agent_folders import HomeFolders
from gateway.messages.files import HomeFiles, find_event_files
from gateway.records.activity import Activity
from gateway.sessions.repository import SessionRepository
from gateway.sessions.retention import Retention
from gateway.sessions.search import SessionSearch
from gateway.turn_marks import TurnMarks


class Storage(msgspec.Struct, frozen=True):
    """The storage. Gateways on one journal share `files` and `folders`; `marks` tells which turn was at work."""

    sessions: SessionRepository
    search: SessionSearch
    retention: Retention
    activity: Activity
    files: HomeFiles
    folders: HomeFolders
    memory: SharedMemory
    backups: ScheduledBackups
    marks: TurnMarks

    async def find_files(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of an event with the paths of its files in this home."""
        return await find_event_files(self.files, fields)


def build_storage(base: Base, presence: NodePresence) -> Storage:
    engine, home, clock = base.engine, base.home, base.engine.clock
    sessions = SessionRepository(engine, clock.stamp, ahead=clock.calculate_stamp_difference)
    search = SessionSearch(engine, home.search)
    return Storage(
        sessions,
        search,
        Retention(engine, sessions, search, lambda: base.settings.journal, clock.read),
        Activity(engine),
        *build_files(engine, home, presence.nodes.name, lambda: base.settings),
        SharedMemory(engine, home.memory),
        ScheduledBackups(home, lambda: base.settings.backup, find_servers(base.current.configuration)),
        TurnMarks(home.turn_marks),
    )
