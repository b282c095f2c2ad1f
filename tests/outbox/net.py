"""A chat network that a test can make ill, and an outbox before it."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from gateway.engine.interface import Engine, NewRecord
from gateway.errors import AdapterError
from gateway.messages.message import Address, Reply
from gateway.outbox.interface import (
    DeliveryCallbacks,
    DeliveryReport,
    DoubtPolicy,
    LiveCapability,
    LiveTransport,
    OutboxSettings,
)
from gateway.outbox.outbox import Outbox
from gateway.records import records
from tests.spine import until

QUICK = OutboxSettings(
    first_pause=0.001, longest_pause=0.01, edit_pause=0.001, stream_after=0, shutdown=0.1, ack_wait=2.0
)
SIZE = 5


@dataclass
class Net(LiveTransport):
    """Shows texts in chats, in parts of five characters. `ills` are raised by the next calls, `deaf` chats for good."""

    platform: str = "net"
    doubt: DoubtPolicy = "resend"
    can_edit: bool = True
    can_draft: bool = False
    drafts: list[str] = field(default_factory=list)
    ills: list[Exception] = field(default_factory=list)
    deaf: set[str] = field(default_factory=set)
    shown: dict[str, tuple[str, str]] = field(default_factory=dict)  # message id -> chat, text
    nonces: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    gate: anyio.Event | None = None
    after: anyio.Event | None = None
    hangs: str = ""  # "before" or "after" it arrived, the second call never returns
    is_hanging: anyio.Event = field(default_factory=anyio.Event)
    now: int = 0
    most: int = 0
    asked: int = 0

    def parts(self, reply: Reply) -> int:
        return max(1, -(-len(reply.text) // SIZE))

    def texts(self, reply: Reply) -> int:
        return self.parts(reply)

    async def send(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...]:
        text = reply.text[part * SIZE : (part + 1) * SIZE]
        await self._call(f"send {text}", reply.address.chat_id)
        await self._hang("before")
        if self.doubt == "nonce" and nonce in self.nonces:
            return (self.nonces[nonce],)
        name = f"{len(self.shown) + 1}"
        self.shown[name] = (reply.address.chat_id, text)
        self.nonces[nonce] = name
        if self.after:
            await self.after.wait()
        await self._hang("after")
        return (name,)

    async def edit(self, reply: Reply, part: int, message_ids: tuple[str, ...]) -> None:
        text = reply.text[part * SIZE : (part + 1) * SIZE]
        await self._call(f"edit {text}", reply.address.chat_id)
        for name in message_ids:
            if name not in self.shown:
                raise AdapterError("no such message", permanent=True)
            self.shown[name] = (reply.address.chat_id, text)

    async def delete(self, address: Address, message_ids: tuple[str, ...]) -> None:
        await self._call("delete", address.chat_id)
        for name in message_ids:
            del self.shown[name]

    def capability(self, _address: Address) -> LiveCapability:
        return LiveCapability(self.can_edit, self.can_draft)

    async def draft(self, reply: Reply, part: int) -> bool:
        await self._call(f"draft {reply.text}", reply.address.chat_id)
        self.drafts.append(reply.text[part * SIZE : (part + 1) * SIZE])
        return self.can_draft

    async def close(self, address: Address, message_ids: tuple[str, ...]) -> None:
        self.closed += message_ids

    async def find(self, reply: Reply, part: int, nonce: str) -> tuple[str, ...] | None:
        self.asked += 1
        return (self.nonces[nonce],) if nonce in self.nonces else None

    async def _hang(self, when: str) -> None:
        if self.hangs == when and len(self.calls) == 2:
            self.is_hanging.set()
            await anyio.sleep_forever()

    async def _call(self, what: str, chat: str) -> None:
        self.calls.append(what)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.gate:
                await self.gate.wait()
            if self.ills:
                raise self.ills.pop(0)
            if chat in self.deaf:
                raise AdapterError("the bot was blocked", permanent=True)
        finally:
            self.now -= 1

    def in_chat(self, chat: str = "1") -> list[str]:
        return [text for at, text in self.shown.values() if at == chat]


@dataclass
class Post:
    """An outbox that serves a network, and what it reported."""

    outbox: Outbox
    net: Net
    tasks: anyio.abc.TaskGroup
    sent: list[DeliveryReport]
    failed: list[DeliveryReport]

    async def say(self, text: str, chat: str = "1", name: str = "", turn_id: str = "") -> None:
        reply = Reply(name or text, Address(self.net.platform, chat), text)
        await self.outbox.post(reply, f"agent:main:{self.net.platform}:dm:{chat}", turn_id)

    async def ended(self, count: int) -> None:
        await until(lambda: len(self.sent) + len(self.failed) >= count, f"the end of {count} deliveries")

    @property
    def texts(self) -> list[str]:
        return [delivery.reply.text for delivery in self.sent]


class Listener(DeliveryCallbacks):
    """The record of ended deliveries; `change` rewrites a reply before it is sent, and `owed` is added to each end."""

    def __init__(self, change: Callable[[Reply], Reply], owed: Sequence[NewRecord]) -> None:
        self.change = change
        self.owed = owed
        self.arrived: list[DeliveryReport] = []
        self.given_up: list[DeliveryReport] = []

    async def prepare(self, outbound: records.OwedReply) -> Reply:
        return self.change(outbound.reply)

    def owe(self, _delivery: DeliveryReport) -> Sequence[NewRecord]:
        return self.owed

    def sent(self, delivery: DeliveryReport) -> None:
        self.arrived.append(delivery)

    def failed(self, delivery: DeliveryReport) -> None:
        self.given_up.append(delivery)


@asynccontextmanager
async def posted(
    engine: Engine,
    net: Net | None = None,
    settings: OutboxSettings = QUICK,
    clock: Callable[[], float] = time.time,
    change: Callable[[Reply], Reply] = lambda reply: reply,
    owed: Sequence[NewRecord] = (),
) -> AsyncIterator[Post]:
    """An outbox over a journal, until the block ends."""
    net, listener = net or Net(), Listener(change, owed)
    outbox = Outbox(engine, settings, clock=clock)
    outbox.begin(listener)
    async with anyio.create_task_group() as tasks:
        await tasks.start(outbox.serve_platform, net)
        yield Post(outbox, net, tasks, listener.arrived, listener.given_up)
        tasks.cancel_scope.cancel()
