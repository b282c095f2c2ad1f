"""Control a network of this gateway, for people and programs that ask for it."""

from collections.abc import Sequence

import anyio
import anyio.abc

from gateway.daemon.nodes import Nodes
from gateway.daemon.platforms import PlatformPart, find_platform, steer_platform
from gateway.errors import AdapterError


class PlatformSteering:
    """The networks of this node (`platforms`, while it runs); `SharedSteering` also controls those of others."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.platforms: Sequence[PlatformPart] = ()

    async def run(
        self,
        platforms: Sequence[PlatformPart],
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Answer other nodes for these networks until cancelled."""
        self.platforms = platforms
        task_status.started()

    async def steer(self, verb: str, name: str) -> str:
        """Pause, resume or restart one network, and return a description.

        Raises:
            AdapterError: the network was not found, or the operation failed.
        """
        self._check_role(name)
        return steer_platform(self.platforms, verb, name)

    async def probe(self, name: str) -> float:
        """Send the network a small request, and return the seconds it took. Raises AdapterError."""
        self._check_role(name)
        return await find_platform(self.platforms, name).probe()

    def _check_role(self, name: str) -> None:
        if "ingress" not in self._nodes.roles:
            raise AdapterError(f"no gateway serves {name} now")
