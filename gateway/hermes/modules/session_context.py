"""`gateway.session_context`, as a handler sees it."""

from gateway.hermes.shim.session_env import (
    async_delivery_supported,
    clear_session_vars,
    get_session_env,
    set_session_vars,
)

__all__ = ["async_delivery_supported", "clear_session_vars", "get_session_env", "set_session_vars"]
