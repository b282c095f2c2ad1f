"""The real gateway in a process that a tool can kill: `python -m tests.chaos.mortal HOME POISON`.

The tool is the gateway's own, in its process, and dies where POISON is in its arguments, as by a fault in a C library.
"""

import ctypes
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from gateway.adapters.shared.folder import load_settings_schema
from gateway.agent.tools import ToolContext
from gateway.config.loading import load_configuration
from gateway.daemon.control_verbs import FindPart, build_verbs
from gateway.daemon.shutdown import Shutdown
from gateway.daemon.startup import open_gateway
from gateway.testing import GatewayProcess


async def die(_args: dict[str, Any], _context: ToolContext) -> Any:
    await anyio.sleep(0.01)
    ctypes.string_at(0)


async def live(root: Path, poison: str) -> None:
    def judge(event: Any) -> None:
        if poison in str(event["args"]):
            event["impl"] = replace(event["impl"], call=die, repeatable=True)

    def build_poisoned(find: FindPart) -> Any:
        """The last that is made before the lanes take up what was left by the life before."""
        find("registry").on("tool:before", judge)
        return build_verbs(find)

    files = GatewayProcess(root)
    files.configure("")
    configuration = load_configuration(load_settings_schema(), files.home, files.environ)
    async with open_gateway(files.home, configuration, Shutdown(1), build_poisoned):
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(live, Path(sys.argv[1]), sys.argv[2])
