"""`gateway.config`, as a handler sees it."""

from gateway.hermes.shim.config_shapes import (
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
