"""Control a chat network from any node, through the node that serves the network.

A node controls the networks that it serves; for a network on standby, the node asks the node that serves it.
"""

from collections.abc import Sequence

import anyio
import anyio.abc
import msgspec

from gateway.daemon.nodes import Nodes
from gateway.daemon.platform_steering import PlatformSteering
from gateway.daemon.platforms import PROBE_SECONDS, PlatformPart, find_platform
from gateway.engine.interface import Engine
from gateway.errors import AdapterError
from gateway.records import subjects

PATIENCE = 5.0  # the wait for another node's answer, in addition to its work


class SteeringRequest(msgspec.Struct, frozen=True):
    """A request to the node that serves a network; `verb` is pause, resume, restart or probe."""

    verb: str
    name: str


class SteeringAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request: a description of the result, or the error."""

    did: str = ""
    seconds: float = 0.0
    error: str = ""


class SharedSteering(PlatformSteering):
    """Control of the networks of this node, and of the networks of other nodes by request."""

    def __init__(self, engine: Engine, nodes: Nodes) -> None:
        super().__init__(nodes)
        self._engine = engine

    async def run(
        self,
        platforms: Sequence[PlatformPart],
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        self.platforms = platforms
        stop = await self._engine.serve(subjects.steering_subject_of(self._nodes.name), self._answer)
        try:
            task_status.started()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await stop()

    async def steer(self, verb: str, name: str) -> str:
        return (await self._ask(SteeringRequest(verb, name))).did

    async def probe(self, name: str) -> float:
        return (await self._ask(SteeringRequest("probe", name))).seconds

    async def _ask(self, request: SteeringRequest) -> SteeringAnswer:
        holder = find_platform(self.platforms, request.name).served_by
        if not holder:
            return await self._do(request)
        subject, asked = subjects.steering_subject_of(holder), msgspec.json.encode(request)
        try:
            told = await self._engine.request(subject, asked, PROBE_SECONDS + PATIENCE)
        except TimeoutError:
            raise AdapterError(f"{holder} serves {request.name}, and does not answer now") from None
        answer = msgspec.json.decode(told, type=SteeringAnswer)
        if answer.error:
            raise AdapterError(answer.error)
        return answer

    async def _do(self, request: SteeringRequest) -> SteeringAnswer:
        if request.verb == "probe":
            return SteeringAnswer(seconds=await super().probe(request.name))
        return SteeringAnswer(did=await super().steer(request.verb, request.name))

    async def _answer(self, asked: bytes) -> bytes:
        try:
            answer = await self._do(msgspec.json.decode(asked, type=SteeringRequest))
        except AdapterError as error:
            answer = SteeringAnswer(error=str(error))
        return msgspec.json.encode(answer)
