"""The steering of networks by people and programs: pause, resume, restart and probe."""

from collections.abc import Sequence

import anyio
import anyio.abc

from gateway.daemon.nodes import Nodes
from gateway.daemon.platforms import PlatformPart, find_platform, steer_platform
from gateway.errors import AdapterError


class PlatformSteering:
    """Steers the networks of this node (`platforms`); `SharedSteering` also steers the networks of other nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.platforms: Sequence[PlatformPart] = ()

    async def run(
        self, platforms: Sequence[PlatformPart], *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Take the networks of this node. `SharedSteering` also answers requests of other nodes until cancelled."""
        self.platforms = platforms
        task_status.started()

    async def steer(self, verb: str, name: str) -> str:
        """Pause, resume or restart one network, and return the result in words.

        Raises:
            AdapterError: the network was not found, or the operation failed.
        """
        self._check_role(name)
        return steer_platform(self.platforms, verb, name)

    async def probe(self, name: str) -> float:
        """Send the network a small request, and return the seconds until its answer.

        Raises:
            AdapterError: the network was not found, is not connected, or does not answer.
        """
        self._check_role(name)
        return await find_platform(self.platforms, name).probe()

    def _check_role(self, name: str) -> None:
        if "ingress" not in self._nodes.roles:
            raise AdapterError(f"no gateway serves {name} now")
