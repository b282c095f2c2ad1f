"""Pings: a job that went well and a gateway that lives call a URL, whose service alerts a person when the calls stop.

The URL is the owner's, and may lead anywhere. It is a secret as often as not, so no log has it.
"""

import logging
from collections.abc import Mapping
from types import MappingProxyType

import anyio
import anyio.abc

from gateway.agent.models.refusal import RefusedRequest
from gateway.errors import GatewayError
from gateway.late_imports import load_modules
from gateway.threads import run_in_thread

PATIENCE = 10.0  # seconds for one call
MINUTE = 60.0
TRIES, PAUSE = 3, 1.0  # calls, and seconds between them
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})

log = logging.getLogger(__name__)


async def call_ping(url: str, name: str, environ: Mapping[str, str] = NO_ENVIRONMENT) -> None:
    """Call the URL of this caller, again if it fails; a failure is logged, and has no other effect."""
    why = ""
    for turn in range(TRIES):
        await anyio.sleep(PAUSE if turn else 0.0)
        why = f"it took longer than {PATIENCE:g} seconds"
        with anyio.move_on_after(PATIENCE):
            why = await _call(url, environ)
        if not why:
            return
    log.warning("the ping of %s failed %d times: %s", name, TRIES, why)


async def run_ping(
    url: str, environ: Mapping[str, str], *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Call the URL of the gateway each minute until cancelled."""
    task_status.started()
    while True:
        await call_ping(url, "the gateway", environ)
        await anyio.sleep(MINUTE)


async def _call(url: str, environ: Mapping[str, str]) -> str:
    """Call the URL once; return why that failed, or ""."""
    try:
        [library] = await run_in_thread(load_modules, "gateway.agent.models.endpoint_client")  # most jobs call nothing
        client = library.EndpointClient(url, {}, stall=PATIENCE, connect=PATIENCE, environ=environ)
        try:
            await (await client.get(url)).aclose()
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()
    except RefusedRequest as error:
        return f"it answered {error.status}"
    except (GatewayError, OSError, ValueError) as error:
        return f"it could not be reached ({getattr(error, 'kind', type(error).__name__)})"
    return ""
