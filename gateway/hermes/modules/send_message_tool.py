"""`tools.send_message_tool`, as a handler sees it."""

from gateway.hermes.shim.placeholders import make_placeholder_getattr
from gateway.hermes.shim.send_tool import send_message_tool

__getattr__ = make_placeholder_getattr(__name__)

__all__ = ["send_message_tool"]
