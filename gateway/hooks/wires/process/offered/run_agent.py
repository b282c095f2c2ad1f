"""`run_agent`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.agent import AIAgent
from gateway.hooks.wires.process.hermes.elsewhere import standing_in

__getattr__ = standing_in(__name__)

__all__ = ["AIAgent"]
