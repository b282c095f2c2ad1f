"""The worker's module for handlers written for Hermes: it loads them, and shows them events."""

from collections.abc import Callable
from pathlib import Path

from gateway.hermes.shim.event_shapes import show_fields
from gateway.hermes.shim.session_env import enter_session
from gateway.worker.capabilities import GatewayRequests
from gateway.worker.loader import Handlers, load_handler
from gateway.worker.protocol import WorkerSpec

__all__ = ["enter_session", "load", "show_fields"]


def load(
    spec: WorkerSpec,
    requests: GatewayRequests,  # noqa: ARG001 - of plugins
    report: Callable[[BaseException], None],  # noqa: ARG001 - of plugins
    remark: Callable[[str], object],  # noqa: ARG001 - of plugins
) -> Handlers:
    """Import the handler."""
    return load_handler(spec.label or spec.name, Path(spec.handler))
