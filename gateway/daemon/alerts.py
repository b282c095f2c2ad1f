"""Alerts about faults: the gateway reports a network that is down in the home channels of the networks that work.

A fault that ends at once causes no alert, and neither does a network that a person paused.

If the journal is damaged, gone, or on a disk that hangs, the gateway cannot write answers to the journal, and sends the
alert without it. While the fault lasts, each chat gets one alert: the chats whose message is being answered, waits or
cannot be accepted, and all home channels.
"""

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
import anyio.abc
import msgspec

from gateway.backoff import find_pause
from gateway.daemon.platforms import PAUSED_REASON, PlatformPart
from gateway.engine.interface import Engine
from gateway.errors import describe_error
from gateway.hooks import HookRegistry
from gateway.messages.message import Address, Message, Reply, address_of, name_of_account
from gateway.outbox.outbox import Outbox

ALERT_AFTER = 14.0
LOOK_SECONDS = 2.5  # other looks come every five seconds, and so this one wakes the processor with them
SEND_SECONDS = 20.0
ILL = (
    "I cannot answer now: my storage does not work. The person who runs me sees that in the "
    "status. If no answer comes later, please ask again."
)
ILL_HOME = "The journal cannot be written, so no message is taken and none is answered: {}"

log = logging.getLogger(__name__)


async def send_alert(outbox: Outbox, list_homes: Callable[[], Sequence[Address]], text: str) -> None:
    """Send an alert to the home channels."""
    for address in list_homes():
        await outbox.post(Reply(uuid.uuid4().hex, address, text))


class Alerts:
    """Reports networks that are down. It watches `platform:down` and `platform:up`."""

    def __init__(self, platforms: Sequence[PlatformPart], outbox: Outbox, patience: float = ALERT_AFTER) -> None:
        self._platforms = platforms
        self._outbox = outbox
        self._patience = patience
        self._down: dict[str, float] = {}  # since when, by the monotonic clock
        self._told: set[str] = set()
        self._news = anyio.Event()

    async def run(
        self, registry: HookRegistry, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Send alerts until cancelled."""
        remove = registry.watch(["platform:up", "platform:down"], self._note)
        try:
            task_status.started()
            while True:
                self._news = anyio.Event()
                await self._look()
                with anyio.move_on_after(self._next()):
                    await self._news.wait()
        finally:
            remove()

    def _note(self, event_type: str, fields: Mapping[str, Any]) -> None:
        name = name_of_account(str(fields["platform"]), str(fields["account"]))
        if event_type == "platform:up" or fields["reason"] == PAUSED_REASON:
            self._down.pop(name, None)
        else:
            self._down.setdefault(name, time.monotonic())
        self._news.set()

    async def _look(self) -> None:
        now = time.monotonic()
        for network in self._platforms:
            if network.state == "standby":
                self._down.pop(network.name, None)  # another node serves the network
            since = self._down.get(network.name)
            if network.name in self._told and network.works:
                self._told.discard(network.name)
                await self._tell(network.name, f"{network.name} works again.")
            elif since is not None and now - since >= self._patience and network.name not in self._told:
                self._told.add(network.name)
                await self._tell(network.name, f"{network.name} is down: {network.presence.facts.detail}")

    async def _tell(self, about: str, text: str) -> None:
        for network in self._platforms:
            home = network.home_channel
            if network.name != about and home and network.works:
                await self._outbox.post(Reply(uuid.uuid4().hex, address_of(network.name, home), text))

    def _next(self) -> float | None:
        """Return the seconds until the next alert is due; None: no network is down."""
        due = [since + self._patience for name, since in self._down.items() if name not in self._told]
        return max(min(due) - time.monotonic(), 0) if due else None


class JournalAlerts(msgspec.Struct, eq=False):
    """Watches the journal while messages wait. `list_waiting` and `list_homes` return the recipients of its alerts."""

    _engine: Engine
    _outbox: Outbox
    _list_waiting: Callable[[], Sequence[Message]]
    _list_homes: Callable[[], Sequence[Address]]
    _told: set[Address] = set()
    _untold: set[Address] = set()  # chats that the alert did not reach; the log names them

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Send alerts until cancelled."""
        async with anyio.create_task_group() as tasks:
            task_status.started()
            while True:
                await anyio.sleep(find_pause(LOOK_SECONDS))
                waiting = {one.address for one in self._list_waiting()}
                if waiting:
                    await self._engine.health()  # this call notices a damaged disk
                if not (why := self._engine.failure()):
                    self._told.clear()
                    self._untold.clear()
                    continue
                for address in waiting:
                    tasks.start_soon(self._tell, address, ILL)
                for address in self._list_homes():
                    tasks.start_soon(self._tell, address, ILL_HOME.format(why))

    async def _tell(self, address: Address, text: str) -> None:
        """Send the alert; if that fails, the next check tries again, as long as a message waits in the chat."""
        if address in self._told:
            return
        self._told.add(address)
        try:
            with anyio.fail_after(SEND_SECONDS):
                await self._outbox.say_now(Reply(uuid.uuid4().hex, address, text))
        except Exception as error:  # noqa: BLE001 - a network's library may raise anything; the next check tries again
            level = logging.DEBUG if address in self._untold else logging.INFO
            chat, why = address.chat_id, describe_error(error)
            log.log(level, "chat %s of %s is not told that the journal is ill: %s", chat, address.served_as, why)
            self._untold.add(address)
            self._told.discard(address)
