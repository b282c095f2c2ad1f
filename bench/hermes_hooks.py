"""Measure the rows of bench/hooks.py in hermes-agent's own environment, beside the same floors. Prints JSON."""

import asyncio
import contextlib
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from timing import beside, loop

with contextlib.redirect_stdout(io.StringIO()):
    from gateway.hooks import HookRegistry  # hermes-agent's


def handlers(count: int) -> list:
    def make():
        async def handle(event_type, context):
            pass

        return handle

    return [make() for _ in range(count)]


async def main(rounds: int) -> None:
    found = {}
    names = {"name": "agent:start", "context": {"platform": "telegram", "message": "hi"}}
    for count in (0, 1, 10, 100):
        registry, fns = HookRegistry(), handlers(count)
        if fns:
            registry._handlers["agent:start"] = fns  # noqa: SLF001 - as its discovery leaves it
        floor = "for fn in fns: await fn(name, context)" if count else "names.get(name)"
        runs = {
            "emit": loop("await registry.emit(name, context)", {**names, "registry": registry}),
            "collect": loop("await registry.emit_collect(name, context)", {**names, "registry": registry}),
            "floor": loop(floor, {**names, "fns": fns, "names": {}}),
        }
        times = await beside(runs, rounds)
        found[count] = {name: times[name] / times["floor"] for name in ("emit", "collect")}
    print(json.dumps(found))


asyncio.run(main(int(sys.argv[1])))
