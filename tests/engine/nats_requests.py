"""The requests to the servers, by kind, as a listener beside a gateway sees them."""

import asyncio
import re
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import nats
from nats.aio.msg import Msg

JOURNAL = "hermes"
API = "$JS.API."
KINDS = {
    f"{API}DIRECT.GET.": "read",
    f"{API}STREAM.MSG.GET.": "read from the leader",
    f"{API}STREAM.INFO.": "state of a stream",
    f"{API}CONSUMER.INFO.": "state of a consumer",
    f"{API}CONSUMER.MSG.NEXT.": "pull",
    API: "other call",
    "$JS.ACK.": "ack",
}
UNAWAITED = {"pull", "note", "rest of a batch"}  # nobody stands still until the server has answered


def find_kind(message: Msg, journal: str) -> str:
    """Empty for what is not a request for a turn: answers, leases, what a server tells."""
    if message.subject.startswith(f"{journal}.d."):
        return "note"
    if not re.match(rf"{journal}\.j\.", message.subject):
        return next((kind for begin, kind in KINDS.items() if message.subject.startswith(begin)), "")
    if message.reply.startswith("$JS.ACK."):
        return ""  # it is handed to a consumer
    headers = message.headers or {}
    is_whole = "Nats-Batch-Id" not in headers or "Nats-Batch-Commit" in headers
    return "append" if is_whole else "rest of a batch"


def find_any_kind(message: Msg, journal: str) -> str:
    """Also of what is for no turn: leases, and what gateways tell each other."""
    other = {f"{journal}.k.": "lease", f"{journal}.l.": "live message"}
    return next((kind for begin, kind in other.items() if message.subject.startswith(begin)), "") or find_kind(
        message, journal
    )


@asynccontextmanager
async def count_requests(
    url: str, journal: str = JOURNAL, find: Callable[[Msg, str], str] = find_kind
) -> AsyncIterator[Counter[str]]:
    """Count all clients' requests about the journal from now on; commas separate the addresses."""
    servers = url.split(",")
    client = await nats.connect(servers[0])
    counts: Counter[str] = Counter()
    heard = set[str]()
    greeting = f"heard.{uuid.uuid4().hex}."

    async def hear(message: Msg) -> None:
        if message.subject.startswith(greeting):
            heard.add(message.subject)
        elif kind := find(message, journal):
            counts[kind] += 1

    async def greet(number: int, server: str) -> None:
        beside = await nats.connect(server)
        while f"{greeting}{number}" not in heard:
            await beside.publish(f"{greeting}{number}", b"")
            await asyncio.sleep(0.01)
        await beside.close()

    try:
        await client.subscribe(">", cb=hear)
        await asyncio.gather(*(greet(number, server) for number, server in enumerate(servers)))
        counts.clear()  # by now each server knows that we listen
        yield counts
    finally:
        await client.close()


def count_trips(counts: Counter[str]) -> int:
    return sum(count for kind, count in counts.items() if kind not in UNAWAITED)
