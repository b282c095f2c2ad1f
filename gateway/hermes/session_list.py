"""The file `sessions/sessions.json` for hooks written for Hermes: the place and the id of each conversation.

The gateway writes it only in a home in which no Hermes has run: an existing `state.db` or `sessions.json` that is not
ours belongs to Hermes. It is a copy for hooks; the gateway itself reads only its own entries, after a restart.
"""

import asyncio
import json
import logging
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import msgspec

from gateway.config.home import Home
from gateway.engine.interface import Engine, Record, Tail
from gateway.events import Event
from gateway.files.folders import read_plain_file
from gateway.hooks.places.hook_files import KEPT_FILES
from gateway.messages.message import Message
from gateway.records import records, subjects
from gateway.sessions.keys import platform_of
from gateway.sessions.repository import SessionRepository
from gateway.sessions.session import Session
from gateway.threads import run_in_thread

MARKER = "written by hermes-gateway for hooks made for Hermes; the conversations themselves are in its journal"
SESSIONS_FILE = KEPT_FILES[1]
MESSAGE_KIND, OPENED_KIND, LONGEST_KIND = b'"kind":"in"', b'"kind":"opened"', 50  # a record begins with its kind
WRITE_PAUSE = 1.0  # seconds in which changes are collected
LOOK_PAUSE = 0.02  # seconds between two looks for a conversation whose event a hook is about to get
LAST_WORDS = 2.0  # seconds that a hook waits at most for its entry
MAX_SESSIONS = 500  # conversations, the newest

log = logging.getLogger(__name__)


class SessionList(msgspec.Struct, eq=False):
    """The writer of the file. `is_foreign` tells if the home's `state.db` is Hermes's own."""

    _home: Home
    _engine: Engine
    _sessions: SessionRepository
    _is_foreign: Callable[[], bool]
    _entries: dict[str, dict[str, Any]] = {}
    _heard: dict[str, Record] = {}  # by subject: the last message, and the last beginning of a session
    _changed: dict[str, None] = {}
    _is_running: bool = False
    _has_news: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    _one_at_a_time: anyio.Lock = msgspec.field(default_factory=anyio.Lock)

    async def keep_files(self, files: Collection[str]) -> None:
        """Do nothing: earlier entries are in the file, and a new one comes before its hook gets the event."""

    async def wait_for_files(self, files: Collection[str], event: Event) -> None:
        """Wait until the file has this conversation, as in Hermes, before a hook gets its event."""
        key, session_id = str(event.get("session_key") or ""), event.get("session_id")
        if SESSIONS_FILE not in files or not key or not session_id or not self._is_running:
            return
        with anyio.move_on_after(LAST_WORDS):
            while self._entries.get(key, {}).get("session_id") != session_id and self.is_ours():
                self._changed[key] = None
                await self._write()
                await anyio.sleep(LOOK_PAUSE)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write changes until cancelled; leave the file to Hermes once Hermes runs in this home."""
        heard = await self._engine.tail(subjects.IN_SUBJECTS, subjects.TURN_SUBJECTS)
        kept = _read_json(self._home.hermes_sessions)
        self._entries = {key: _with_local_times(value) for key, value in kept.items() if isinstance(value, dict)}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, heard)
            self._is_running = True
            task_status.started()
            while True:
                await self._has_news.wait()
                await anyio.sleep(WRITE_PAUSE)
                self._has_news.clear()
                if self.is_ours():
                    await self._write()

    def describe(self) -> str:
        """Describe the file for people, behind the name of a hook that reads it."""
        said = (
            "written for it, from the journal"
            if self._is_running and self.is_ours()
            else "Hermes's own; never written here"
        )
        return f"{SESSIONS_FILE}: {said}"

    def is_ours(self) -> bool:
        """Tell if the file is ours to write: it is ours, or missing, and no Hermes has run here."""
        path = self._home.hermes_sessions
        is_free = not path.exists() or _read_json(path).get("_README") == MARKER
        return is_free and not self._is_foreign()

    async def _listen(self, heard: Tail) -> None:
        async for record in heard:
            if MESSAGE_KIND in (begin := record.data[:LONGEST_KIND]) or OPENED_KIND in begin:
                self._heard[record.subject] = record
                self._has_news.set()

    async def _write(self) -> None:
        async with self._one_at_a_time:
            await self._write_changed()

    async def _write_changed(self) -> None:
        changed, self._changed = self._changed, {}
        heard, self._heard = self._heard, {}
        messages: dict[str, Message] = {}
        for record in heard.values():
            kept = records.decode_readable(record.data)
            if isinstance(kept, records.InboundMessage):
                messages[kept.session_key] = kept.message
            if isinstance(kept, records.InboundMessage | records.SessionOpened):
                changed[kept.session_key] = None
        for key in changed:
            session = await self._sessions.open(key)
            if session.session_id:
                before = self._entries.pop(key, {})
                self._entries[key] = entry_of(session, messages.get(key), before)
        self._entries = dict(list(self._entries.items())[-MAX_SESSIONS:])
        try:
            await run_in_thread(write_entries, self._home.hermes_sessions, {"_README": MARKER, **self._entries})
        except OSError as error:
            log.warning("%s cannot be kept: %s", self._home.hermes_sessions, error)


def entry_of(session: Session, message: Message | None, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return one value of the file, in Hermes's shape."""
    origin = dict(before.get("origin") or {})
    if message is not None:
        at = message.address
        origin = {
            "platform": at.platform,
            "chat_id": at.chat_id,
            "chat_name": None,
            "chat_type": at.chat_type,
            "user_id": message.user_id,
            "user_name": message.user_name or None,
            "thread_id": at.thread_id or None,
            "chat_topic": None,
        }
    used = session.usage
    reset = session.reason if session.reason in ("idle", "daily") else None
    return {
        "session_key": session.key,
        "session_id": session.session_id,
        "created_at": _format_time(session.began),
        "updated_at": _format_time(session.last_active),
        "display_name": session.title or origin.get("user_name"),
        "platform": origin.get("platform") or session.platform or platform_of(session.key),
        "chat_type": origin.get("chat_type", "dm"),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "total_tokens": used.input_tokens + used.output_tokens,
        "estimated_cost_usd": used.cost,
        "cost_status": "unknown",
        "last_prompt_tokens": 0,
        "was_auto_reset": reset is not None,
        "auto_reset_reason": reset,
        "suspended": False,
        "resume_pending": False,
        "resume_reason": None,
        **({"origin": origin} if origin else {}),
    }


def write_entries(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file as a whole, or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    beside.replace(path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_plain_file(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _format_time(seconds: float) -> str:
    """Format a time as Hermes does, in local time without a zone: handlers subtract it from `datetime.now()`."""
    return datetime.fromtimestamp(seconds).isoformat()  # noqa: DTZ006 - see above


def _with_local_times(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an earlier entry, which may name a zone, with local times."""
    times = {}
    for name in ("created_at", "updated_at"):
        with suppress(TypeError, ValueError, KeyError, OverflowError):
            times[name] = _format_time(datetime.fromisoformat(entry[name]).timestamp())
    return entry | times
