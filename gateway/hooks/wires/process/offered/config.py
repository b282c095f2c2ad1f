"""`gateway.config`, as a handler sees it."""

from gateway.hooks.wires.process.hermes.networks import (
    GatewayConfig,
    HomeChannel,
    Platform,
    PlatformConfig,
    SessionResetPolicy,
    StreamingConfig,
    load_gateway_config,
)

__all__ = [
    "GatewayConfig",
    "HomeChannel",
    "Platform",
    "PlatformConfig",
    "SessionResetPolicy",
    "StreamingConfig",
    "load_gateway_config",
]
