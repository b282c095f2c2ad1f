"""The real gateway in a process that a tool can kill: `python -m tests.chaos.mortal HOME POISON`.

The tool is the gateway's own, in its process, and dies where POISON is in its arguments, as by a fault in a C library.
"""

import ctypes
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from gateway.agent.tools import ToolContext
from gateway.testing import gateway_in


async def die(_args: dict[str, Any], _context: ToolContext) -> Any:
    await anyio.sleep(0.01)
    ctypes.string_at(0)


async def live(root: Path, poison: str) -> None:
    async with gateway_in(root) as gateway:

        def judge(event: Any) -> None:
            if poison in str(event["args"]):
                event["impl"] = replace(event["impl"], call=die, repeatable=True)

        gateway.registry.on("tool:before", judge)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(live, Path(sys.argv[1]), sys.argv[2])
