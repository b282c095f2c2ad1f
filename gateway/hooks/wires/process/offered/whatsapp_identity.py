"""`gateway.whatsapp_identity`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.whatsapp import (
    canonical_whatsapp_identifier,
    expand_whatsapp_aliases,
    normalize_whatsapp_identifier,
    to_whatsapp_jid,
)

__all__ = [
    "canonical_whatsapp_identifier",
    "expand_whatsapp_aliases",
    "normalize_whatsapp_identifier",
    "to_whatsapp_jid",
]
