"""`gateway.run`, as a handler sees it: its two functions about the model; all else is a name without effect."""

from gateway.hooks.wires.process.hermes.elsewhere import standing_in
from gateway.hooks.wires.process.hermes.home import resolve_gateway_model, resolve_runtime_agent_kwargs

_resolve_gateway_model = resolve_gateway_model
_resolve_runtime_agent_kwargs = resolve_runtime_agent_kwargs
__getattr__ = standing_in(__name__)

__all__ = ["_resolve_gateway_model", "_resolve_runtime_agent_kwargs"]
