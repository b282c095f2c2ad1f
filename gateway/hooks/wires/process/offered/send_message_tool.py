"""`tools.send_message_tool`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.elsewhere import standing_in
from gateway.hooks.wires.process.hermes.sending import send_message_tool

__getattr__ = standing_in(__name__)

__all__ = ["send_message_tool"]
