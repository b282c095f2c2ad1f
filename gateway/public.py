"""The names that programs and hooks of other people may import from the gateway.

Names in `PUBLIC` stay as they are until a version that says otherwise, names in `PROVISIONAL` may still change with a
word in the changelog; everything else is the gateway's own, and moves without notice. New names are added here first;
tests hold the documentation and the samples to this list.
"""

from collections.abc import Mapping

PUBLIC: Mapping[str, tuple[str, ...]] = {
    "gateway.hooks": ("Deny", "End", "Event", "HookRegistry", "Retry", "Subscription", "is_yes", "on"),
    "gateway.hooks.remote": ("Remote", "RemoteSpec", "interceptor"),
    "gateway.hooks.server": ("HookServer",),
    "gateway.testing": (
        "GatewayProcess",
        "LiveGateway",
        "RecordingHook",
        "HookTrial",
        "ScriptModel",
        "call",
        "gateway_in",
        "read_script",
        "script",
    ),
}
PROVISIONAL: Mapping[str, tuple[str, ...]] = {
    # The adapter kit, and what it takes to run the behaviour suite on an adapter.
    "gateway.adapters": (
        *("Adapter", "AdapterContext", "AdapterError", "AdapterHost", "Address", "Attachment", "Button"),
        *("DoubtPolicy", "IncomingMessage", "LiteralText", "LoadedFile", "Message", "NetworkErrors"),
        *(
            "NetworkRoute",
            "NetworkTransport",
            "OutboundFile",
            "PlatformReport",
            "PlatformSettings",
            "PlatformSetup",
        ),
        *("PlatformSpec", "Presence", "Rate", "RateLimiter", "Receipt", "Reply", "RouteAnswer", "Secret"),
        *("SetupQuestion", "TokenShape", "Transport", "add_context", "decode_button", "describe", "describe_reply"),
        *("encode_button", "fetch_file", "kind_of", "make_access_questions", "make_reaction"),
        *("Contact", "Location", "MessagePart", "Poll", "Sticker", "describe_parts"),
        *("make_contact", "make_location", "make_poll", "make_sticker"),
        *("split_markdown", "to_plain_name"),
    ),
    "gateway.testing.networks": ("ANN", "BEN", "GROUP", "STRANGER", "Shown", "Wire"),
    # `Chunk` and `ModelRequest` are what a `Model` gives and takes.
    "gateway.agent": ("Agent", "Chunk", "Model", "ModelRequest", "Ports", "Tool", "run_turn", "tool"),
    "gateway.transcript": ("Entry",),
}
# A class for the context of each event, for type checkers alone: the module does not exist at run time.
TYPES = "gateway.hooks.contexts"
