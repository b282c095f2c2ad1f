"""A gateway of a later version on the journal of NATS servers: it says and asks what needs that, and what any knows."""

import sys

import anyio

from gateway.cluster.nats.engine import open_nats
from gateway.engine.live_messages import LIVE_VERSION
from gateway.errors import EngineError


async def main(url: str) -> None:
    async with await open_nats(url) as engine:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.readline)
        await engine.publish("rt.ctl.x", b"what one knows", version=LIVE_VERSION)
        await engine.publish("rt.ctl.x", b"what both know")
        try:
            await engine.request("rt.node.older", b"what one knows", 30, version=LIVE_VERSION)
        except EngineError as error:
            sys.stdout.write(f"refused: {str(error).rpartition('gateway ')[2]}\n")
        sys.stdout.write((await engine.request("rt.node.older", b"what both know", 30)).decode())


anyio.run(main, sys.argv[1])
