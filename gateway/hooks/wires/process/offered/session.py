"""`gateway.session`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.elsewhere import standing_in
from gateway.hooks.wires.process.hermes.networks import GatewayConfig, HomeChannel, Platform, SessionResetPolicy
from gateway.hooks.wires.process.hermes.sessions import SessionEntry, SessionSource, SessionStore, build_session_key
from gateway.hooks.wires.process.hermes.whatsapp import canonical_whatsapp_identifier, normalize_whatsapp_identifier

__getattr__ = standing_in(__name__)

__all__ = [
    "GatewayConfig",
    "HomeChannel",
    "Platform",
    "SessionEntry",
    "SessionResetPolicy",
    "SessionSource",
    "SessionStore",
    "build_session_key",
    "canonical_whatsapp_identifier",
    "normalize_whatsapp_identifier",
]
