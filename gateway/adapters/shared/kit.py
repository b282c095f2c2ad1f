"""The adapter kit: the names that an adapter may import from `gateway.adapters`, and the module of each.

These are the parts of `gateway.public` that are open to adapters. A name is loaded on first use: every command reads
the settings of networks, which must not load the journal.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

KIT: Mapping[str, tuple[str, ...]] = {
    "gateway.adapters.shared.adapter": ("Adapter", "AdapterContext", "Presence"),
    "gateway.adapters.shared.adapter_host": ("AdapterHost",),
    "gateway.adapters.shared.buttons": ("decode_button", "encode_button"),
    "gateway.adapters.shared.files": ("FileMessage", "LoadedFile", "LoadedMessage", "OutboundFile", "fetch_file"),
    "gateway.adapters.shared.folder": ("PlatformReport", "PlatformSetup", "SetupQuestion", "make_access_questions"),
    "gateway.adapters.shared.incoming": (
        *("IncomingMessage", "add_context", "describe_reply", "make_reaction", "to_plain_name"),
    ),
    "gateway.adapters.shared.markdown_split": ("split_markdown",),
    "gateway.adapters.shared.network_errors": ("NetworkErrors",),
    "gateway.adapters.shared.network_routes": ("NetworkRoute", "RouteAnswer"),
    "gateway.adapters.shared.send_rate": ("Rate", "RateLimiter"),
    "gateway.adapters.shared.transport": ("NetworkTransport",),
    "gateway.config.fields": ("Secret", "describe"),
    "gateway.config.platform_settings": ("PlatformSettings", "PlatformSpec"),
    "gateway.errors": ("AdapterError",),
    "gateway.logs.redaction": ("TokenShape",),
    "gateway.messages.parts": (
        *("Contact", "Location", "MessagePart", "Poll", "Sticker"),
        *("describe_parts", "make_contact", "make_location", "make_poll", "make_sticker"),
    ),
    "gateway.messages.message": (
        "Address",
        "Attachment",
        "Button",
        "LiteralText",
        "Message",
        "Receipt",
        "Reply",
        "kind_of",
    ),
    "gateway.outbox.interface": ("DoubtPolicy", "LiveCapability", "Transport"),
}


def load_name(asking: str, name: str) -> Any:
    """Load a name of the kit for a module; raises AttributeError if the kit does not have it."""
    for module, names in KIT.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {asking!r} has no attribute {name!r}")
