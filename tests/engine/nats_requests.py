"""What is asked of the servers, by kind, as one sees it who listens beside a gateway to all that it sends."""

from collections import Counter
from collections.abc import AsyncIterator
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


@asynccontextmanager
async def count_requests(url: str, journal: str = JOURNAL) -> AsyncIterator[Counter[str]]:
    """What all clients of this server, or of those that it works with, ask of the journal from now on."""
    client = await nats.connect(url)
    counts: Counter[str] = Counter()

    async def hear(message: Msg) -> None:
        if kind := find_kind(message, journal):
            counts[kind] += 1

    try:
        await client.subscribe(">", cb=hear)
        await client.request(f"{API}STREAM.INFO.{journal}", b"{}")  # by then all servers know that we listen
        counts.clear()
        yield counts
    finally:
        await client.close()


def find_kind(message: Msg, journal: str) -> str:
    """Empty for what is no request for a turn: answers, leases, what a server tells."""
    if message.subject.startswith(f"{journal}.d."):
        return "note"
    if not message.subject.startswith(f"{journal}.j."):
        return next((kind for begin, kind in KINDS.items() if message.subject.startswith(begin)), "")
    if message.reply.startswith("$JS.ACK."):
        return ""  # it is handed to a consumer
    headers = message.headers or {}
    is_whole = "Nats-Batch-Id" not in headers or "Nats-Batch-Commit" in headers
    return "append" if is_whole else "rest of a batch"


def count_trips(counts: Counter[str]) -> int:
    return sum(count for kind, count in counts.items() if kind not in UNAWAITED)
