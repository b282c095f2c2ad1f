"""`gateway.whatsapp_identity`, as a handler sees it."""

from gateway.hermes.shim.whatsapp_ids import (
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
