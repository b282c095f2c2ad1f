"""`gateway.run`, as a handler sees it: its two functions about the model; all else is a name without effect."""

from gateway.hermes.shim.home import resolve_gateway_model, resolve_runtime_agent_kwargs
from gateway.hermes.shim.placeholders import make_placeholder_getattr

_resolve_gateway_model = resolve_gateway_model
_resolve_runtime_agent_kwargs = resolve_runtime_agent_kwargs
__getattr__ = make_placeholder_getattr(__name__)

__all__ = ["_resolve_gateway_model", "_resolve_runtime_agent_kwargs"]
