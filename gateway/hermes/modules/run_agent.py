"""`run_agent`, as a handler sees it."""

from gateway.hermes.shim.ai_agent import AIAgent
from gateway.hermes.shim.placeholders import make_placeholder_getattr

__getattr__ = make_placeholder_getattr(__name__)

__all__ = ["AIAgent"]
