"""`gateway.session`, as a handler sees it."""

from gateway.hermes.shim.config_shapes import GatewayConfig, HomeChannel, Platform, SessionResetPolicy
from gateway.hermes.shim.placeholders import make_placeholder_getattr
from gateway.hermes.shim.session_shapes import SessionEntry, SessionSource, SessionStore, build_session_key
from gateway.hermes.shim.whatsapp_ids import canonical_whatsapp_identifier, normalize_whatsapp_identifier

__getattr__ = make_placeholder_getattr(__name__)

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
