"""The interface of an adapter, the values that it gets, and the state of its connection.

An adapter runs until it is cancelled. It raises an error that it cannot repair itself, in words and with the remedy,
and the gateway starts it again, with growing pauses. So an adapter has no back-off of its own and no second way to
fail.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import structs

from gateway.adapters.shared.network_routes import NetworkRoutes
from gateway.adapters.shared.unreadable import format_unreadable, write_unreadable
from gateway.dispatcher.chat_commands import open_page_by_button, suggest_names
from gateway.dispatcher.commands import CommandChoice, parse_command
from gateway.dispatcher.context import DispatcherContext
from gateway.dispatcher.ingress import CompleteMessage
from gateway.engine.interface import NewRecord
from gateway.errors import AdapterError, GatewayError, describe_error
from gateway.hooks import HookRegistry
from gateway.messages.message import Address, Message, Receipt, name_of_account
from gateway.messages.pieces import MessageName
from gateway.records.records import KnownName

log = logging.getLogger(__name__)

UNREADABLE_PAUSE = 60.0  # seconds between two events about unreadable input
LONGEST_REASON = 500  # characters


class ReceiveMessage(Protocol):
    """The dispatcher's `Ingress.receive`: when it returns, the message is in the journal, or settled."""

    async def __call__(
        self,
        message: Message,
        *extra: NewRecord,
        bot: str = "",
        asked: str = "",
        complete: CompleteMessage | None = None,
    ) -> Receipt: ...


DeleteMessage: TypeAlias = Callable[[MessageName, str], Awaitable[bool]]
"""`DeletedMessages.delete`, if the settings enable it."""


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """The values that an adapter works with.

    They are the way in, the parts of the gateway, the folders for incoming files, and the routes by which networks
    call.
    """

    receive: ReceiveMessage
    parts: DispatcherContext
    files: Path
    unreadable: Path
    routes: NetworkRoutes
    delete: DeleteMessage
    served_as: str = ""  # the name of the served bot: `telegram`, or `telegram:work`

    def bind(self, served_as: str) -> "AdapterContext":
        """Return the context of one bot: its messages get the name of its account."""
        receive = partial(_receive_for_account, self.receive, served_as.partition(":")[2])
        return replace(self, receive=receive, served_as=served_as)

    def is_command(self, text: str) -> bool:
        """Tell if a text is a command of ours, and does not only begin like one."""
        parsed = parse_command(text)
        return parsed is not None and parsed.word in self.parts.commands

    def is_for_us(self, address: Address, *, is_called: bool, is_command: bool) -> bool:
        """Tell if a message is answered, by the rules of its chat.

        `is_called`: it mentions us, or replies to us; `is_command`: it is a command of ours.
        """
        return self.parts.chats.is_answered(self._here(address), is_called=is_called, is_command=is_command)

    def is_heard(self, address: Address) -> bool:
        """Tell if the chat's rules keep its other messages for a while."""
        return self.parts.chats.is_heard(self._here(address))

    def make_chat_name(self, chat: str, name: str, within: str = "") -> KnownName:
        """Make the name of a chat that the network lists for the bot, which is why it counts as an address."""
        return KnownName(of=f"{self.served_as}:{chat}", name=name, is_chat=True, within=within, is_trusted=True)

    async def suggest(
        self, message: Message, word: str, option: str, given: Mapping[str, object]
    ) -> list[CommandChoice]:
        """Suggest values for an option of a command to the sender; see `suggest_names`."""
        message = replace(message, address=self._here(message.address))
        return await suggest_names(self.parts, message, word, option, given)

    async def open_page(self, message: Message) -> str:
        """Return a link to the page for the sender; see `open_page_by_button`. Raises AccessError."""
        return await open_page_by_button(self.parts, replace(message, address=self._here(message.address)))

    def _here(self, address: Address) -> Address:
        return replace(address, account=self.served_as.partition(":")[2])


async def _receive_for_account(
    receive: ReceiveMessage, account: str, message: Message, *extra: NewRecord, **how: Any
) -> Receipt:
    return await receive(replace(message, address=replace(message.address, account=account)), *extra, **how)


class PresenceFacts(msgspec.Struct, frozen=True):
    """The shown state of a network. Times are the wall clock's; 0 means never since the start.

    origin: where its code was found, if it is not ours; it runs inside the gateway.
    """

    up: bool = False
    detail: str = ""
    last_event: float = 0.0
    last_send: float = 0.0
    last_probe: float = 0.0
    complaints: tuple[str, ...] = ()
    unreadable: int = 0
    origin: str = ""


class Presence:
    """The proved state of a network: a process that runs proves nothing."""

    def __init__(
        self,
        platform: str,
        registry: HookRegistry,
        on_up: Callable[[str], None],
        redact: Callable[[str], str] = str,
        unreadable: Path | None = None,
        account: str = "",
        origin: str = "",
    ) -> None:
        self.name = name_of_account(platform, account)
        self._place = {"platform": platform, "account": account}
        self.facts = PresenceFacts(origin=origin)
        self._registry = registry
        self._on_up = on_up
        self._redact = redact  # removes secrets from an error
        self._unreadable = unreadable
        self.way_in = ""  # instructions for a person with a code, as `{code}`; known after the first connection
        self._told_unreadable = -UNREADABLE_PAUSE  # by the steady clock
        self._complaints: tuple[str, ...] = ()
        self._lacks: tuple[str, ...] = ()
        self.probe: Callable[[], Awaitable[object]] | None = None  # a small request to the network, if possible
        self.on_answer: Callable[[], None] = lambda: None
        self.certain_for: Callable[[], float] = lambda: math.inf
        """The seconds from now in which no other gateway can serve the bot.

        A call that goes on at the network, such as a waiting poll, may last that long, even if this gateway stops
        meanwhile.
        """

    def check_right(self) -> None:
        """Check, right before a call, that this gateway still serves the bot: it may have been suspended since.

        Raises:
            AdapterError: another gateway may serve the bot by now, and do the same.
        """
        if self.certain_for() <= 0:
            raise AdapterError(f"another gateway may serve {self.name} by now; pending replies are left to it")

    def up(self, detail: str) -> None:
        """Note that the network is connected, and has answered."""
        is_news = not self.facts.up
        self._lacks = () if is_news else self._lacks
        self.facts = structs.replace(self.facts, up=True, detail=detail, complaints=(*self._complaints, *self._lacks))
        if is_news:
            self._on_up(detail)
            self._registry.emit("platform:up", **self._place, reason=detail)

    def down(self, reason: str) -> None:
        """Note that the network does not work; the event is sent once for each reason, however often a start fails."""
        reason = self._redact(reason)
        is_news = self.facts.up or reason != self.facts.detail
        self.facts = structs.replace(self.facts, up=False, detail=reason)
        if is_news:
            self._registry.emit("platform:down", **self._place, reason=reason)

    def rest(self, reason: str) -> None:
        """Note that the bot is not served here, which is not a fault and causes no event."""
        self.facts = structs.replace(self.facts, up=False, detail=reason)

    def complain(self, *what: str) -> None:
        """Note what is missing while the network works (a scope, an intent), with the remedy.

        These complaints replace the earlier ones, and are shown until the next call; none: all is well.
        """
        self._complaints = what
        self._show_complaints()

    def lack(self, what: str) -> None:
        """Note a missing ability beside the answers: logged once, and shown until the network connects again."""
        if what not in self._lacks:
            self._lacks += (what,)
            self._show_complaints()

    def _show_complaints(self) -> None:
        shown = (*self._complaints, *self._lacks)
        new = [one for one in shown if one not in self.facts.complaints]
        self.facts = structs.replace(self.facts, complaints=shown)
        for one in new:
            log.warning("%s: %s", self.name, one)

    def received(self) -> None:
        """Note that an event came in."""
        now = time.time()
        self.facts = structs.replace(self.facts, last_event=now, last_probe=now)

    def sent(self) -> None:
        """Note that the network has taken a message."""
        self.facts = structs.replace(self.facts, last_send=time.time())

    def answered(self) -> None:
        """Note that the network answered, even without an event for us."""
        self.facts = structs.replace(self.facts, last_probe=time.time())
        self.on_answer()

    @contextmanager
    def skipping(self, kind: str, payload: Callable[[], Any]) -> Iterator[None]:
        """Skip one incoming thing if reading or taking it fails, so that it holds up nothing else.

        Raises:
            GatewayError, OSError: the failure is not the thing's fault.
        """
        try:
            yield
        except (GatewayError, OSError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a network may have sent
            self.skip(kind, payload, error)

    def skip(self, kind: str, payload: Callable[[], Any], error: Exception) -> None:
        """Skip an unreadable incoming thing: count it, keep it in a file, log it and emit an event."""
        reason = self._redact(describe_error(error))[:LONGEST_REASON]
        self.facts = structs.replace(self.facts, unreadable=self.facts.unreadable + 1)
        path = self._keep(kind, payload, reason)
        if time.monotonic() - self._told_unreadable >= UNREADABLE_PAUSE:
            log.warning("%s sent what cannot be read (%s), passed over: %s; %s", self.name, kind, reason, path)
            self._told_unreadable = time.monotonic()
            self._registry.emit("platform:unreadable", **self._place, kind=kind, reason=reason, file=path)

    def _keep(self, kind: str, payload: Callable[[], Any], reason: str) -> str:
        """Store the thing, and return the path; "": it could not be stored."""
        if self._unreadable is None:
            return ""
        try:
            text = self._redact(format_unreadable(kind, reason, payload()))
            return str(write_unreadable(self._unreadable, self.name, text))
        except Exception as error:  # noqa: BLE001 - a library's object may not let itself be described
            log.warning("%s: what could not be read is not kept: %s", self.name, describe_error(error))
            return ""


class Adapter(Protocol):
    """The code between one network and the gateway."""

    async def serve(self, presence: Presence) -> None:
        """Connect, receive and send until cancelled; notify `presence` once it works, and at each proof of it.

        Raises:
            AdapterError: the adapter cannot go on; the message has the reason and the remedy.
        """
