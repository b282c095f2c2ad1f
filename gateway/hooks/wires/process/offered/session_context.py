"""`gateway.session_context`, as a handler sees it."""

from gateway.hooks.wires.process.session import get_session_env

__all__ = ["get_session_env"]
