"""The parts that run side by side. A part that crashes is logged, shown and restarted; the other parts go on."""

import logging
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from gateway.backoff import Attempts, Backoff
from gateway.errors import GatewayError, describe_error, unwrap_error
from gateway.messages.roles import Role, is_admin

log = logging.getLogger(__name__)

BACKOFF = Backoff(0.5, 60.0, 0.8, 1.2)
RECOVERED_AFTER = 10.0  # a part that ran this long has recovered: its next pause is short again

PartState: TypeAlias = Literal["starting", "up", "standby", "restarting", "paused", "stopped"]


PART_WORDS: Mapping[str, str] = {
    "facts": "follows access, rules, names and usage in the journal",
    "lanes": "answers messages, one at a time in a conversation",
    "signs of turns": "shows in chats that a turn runs",
    "ping": "calls `gateway.ping` each minute",
    "jobs": "runs jobs and schedules at their times",
    "events of others": "passes on events of other gateways",
    "hooks that wait": "ends the waits of hooks for an answer",
    "approvals": "asks approvers, and closes what was answered",
    "proposals": "ends proposals from before a restart",
    "voice": "reads answers aloud",
    "quiet chats": "remembers for a day what is said to others there",
    "names": "keeps the names of people and chats",
    "journal alerts": "sends alerts if the journal fails",
    "terminal": "delivers to the terminal",
    "internal": "delivers what goes to no chat",
    "api": "delivers to programs",
    "chat": "delivers to the chat of the page",
    "search": "keeps the index of conversations",
    "state.db": "keeps Hermes's database of sessions",
    "session list": "keeps Hermes's list of sessions",
    "alerts": "notifies people of errors",
    "tool servers": "runs the servers of tools",
    "retention": "removes old conversations",
    "files": "shares and removes the files of people",
    "backups": "copies the journal",
    "usage": "sums up tokens and cost",
    "figures": "counts turns and calls of hooks by half hours",
    "traces": "sends traces",
    "control": "answers the command line",
    "desk": "answers programs that ask before they run a tool",
    "schedule": "calls hooks when they are due",
    "web": "serves the page, programs and webhooks",
}
NETWORK_WORDS = "serves this chat network"  # for a part that is not in `PART_WORDS`


class PartStatus(msgspec.Struct, frozen=True):
    """The line of `status` about a part."""

    name: str
    state: PartState
    detail: str
    restarts: int
    since: float


class ServeFunction(Protocol):
    """A function that serves until it is cancelled, and reports when it has started."""

    def __call__(self, *, task_status: anyio.abc.TaskStatus[None]) -> Coroutine[Any, Any, None]: ...


def describe_parts(parts: Sequence["Part"], networks: Collection[str], role: Role) -> str:
    """Describe the networks and the parts that have failed, for a chat. Only admins see the reasons."""
    facts = [one.facts for one in parts if one.name in networks or one.facts.state == "restarting"]
    lines = [f"{one.name}: {one.state} {one.detail if is_admin(role) else ''}".rstrip() for one in facts]
    return "\n".join(lines) or "No chat network is set up here; everything else is ready."


class Part(anyio.abc.TaskStatus[None]):
    """One service and its supervisor. A call of `started` or `up` reports that the service works."""

    def __init__(self, name: str, serve: ServeFunction) -> None:
        self.name = name
        self._serve = serve
        self.facts = PartStatus(name, "starting", "", 0, time.time())
        self.is_paused = False
        self._first, self._ended = anyio.Event(), anyio.Event()
        self._is_wanted = True
        self._news = anyio.Event()
        self._serving: anyio.CancelScope | None = None
        self.attempts = Attempts(BACKOFF, RECOVERED_AFTER)

    def up(self, detail: str = "") -> None:
        self._enter("up", detail)
        self._first.set()

    def started(self, _value: None = None) -> None:
        self.up()

    def stand_by(self, detail: str) -> None:
        """Enter standby: the part does nothing, on purpose."""
        self._enter("standby", detail)
        self._first.set()

    def leave(self, detail: str) -> None:
        """Enter standby for good: this node never runs the part, and the stop does not wait for its end."""
        self.stand_by(detail)
        self._ended.set()

    async def wait_first_try(self) -> None:
        """Wait until the part works, is on standby, or has failed once: then other parts start."""
        await self._first.wait()

    async def wait_until_ended(self) -> None:
        """Wait until a cancelled part has finished the work that it could not break off."""
        await self._ended.wait()

    def stop_restarting(self) -> None:
        """Do not restart the part after its next end."""
        self._is_wanted = False

    def pause(self) -> None:
        """Stop serving until `resume`."""
        self.is_paused = True
        self.restart()

    def resume(self) -> None:
        self.is_paused = False
        self.restart()

    def restart(self) -> None:
        """Restart the part at once, whatever it is doing."""
        self._news.set()
        if self._serving is not None:
            self._serving.cancel()

    async def run(self) -> None:
        """Serve until cancelled, and serve again after every unwanted end."""
        try:
            while True:
                begun = time.monotonic()
                self._news = anyio.Event()
                with anyio.CancelScope() as self._serving:
                    await self._once()
                self._serving = None
                self._first.set()
                if not self._is_wanted:
                    return
                if self._news.is_set():
                    self.attempts.reset()
                await self._wait(self.attempts.pause(time.monotonic() - begun))
                self.facts = replace(self.facts, restarts=self.facts.restarts + 1)
        finally:
            self._enter("stopped", self.facts.detail)
            self._ended.set()

    async def _wait(self, seconds: float) -> None:
        """Pause before the next try, until a person resumes the part or asks for an earlier try."""
        while self.is_paused:
            self._enter("paused", "until you resume it")
            self._news = anyio.Event()
            await self._news.wait()
        if not self._news.is_set():
            with anyio.move_on_after(seconds):
                await self._news.wait()

    async def _once(self) -> None:
        try:
            await self._serve(task_status=self)
        except Exception as error:  # any fault of a part leaves the others alone
            trace = None if isinstance(unwrap_error(error), GatewayError) else error  # our own errors need no traceback
            why = describe_error(error).replace("\n", "; ")
            log.error("%s failed; it is started again: %s", self.name, why, exc_info=trace)
            self._enter("restarting", why)
        else:
            if self._is_wanted:
                log.warning("%s ended by itself; it is started again", self.name)
            self._enter("restarting", "ended by itself")

    def _enter(self, state: PartState, detail: str) -> None:
        self.facts = replace(self.facts, state=state, detail=detail, since=time.time())
