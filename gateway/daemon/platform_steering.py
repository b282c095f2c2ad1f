"""Control a network of this gateway, for people and programs that ask for it."""

from collections.abc import Sequence

import anyio
import anyio.abc
import msgspec

from gateway.daemon.nodes import Nodes
from gateway.daemon.platforms import PlatformPart, find_platform, steer_platform
from gateway.errors import AdapterError


class SteeringRequest(msgspec.Struct, frozen=True):
    """A request; `verb` is pause, resume, restart or probe."""

    verb: str
    name: str


class SteeringAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A description of what was done, or the reason why nothing was."""

    did: str = ""
    seconds: float = 0.0
    error: str = ""


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
        return (await self._ask(SteeringRequest(verb, name))).did

    async def probe(self, name: str) -> float:
        """Send the network a small request, and return the seconds it took. Raises AdapterError."""
        return (await self._ask(SteeringRequest("probe", name))).seconds

    async def _ask(self, request: SteeringRequest) -> SteeringAnswer:
        if "ingress" not in self._nodes.roles:
            raise AdapterError(f"no gateway serves {request.name} now")
        return await self._do(request)

    async def _do(self, request: SteeringRequest) -> SteeringAnswer:
        if request.verb == "probe":
            return SteeringAnswer(seconds=await find_platform(self.platforms, request.name).probe())
        return SteeringAnswer(did=steer_platform(self.platforms, request.verb, request.name))
