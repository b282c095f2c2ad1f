"""What hooks may know of how the gateway is set up, and what they find in their environment of it."""

from gateway.config.home import Home
from gateway.config.platform_settings import PlatformSettings
from gateway.config.providers import PROVIDERS
from gateway.config.settings import Settings
from gateway.daemon.platforms import why_not_served
from gateway.dispatcher import GatewayFacts, PlatformInfo


def build_setup_info(home: Home, settings: Settings) -> GatewayFacts:
    """Without any secret."""
    platforms, model, sessions = settings.platforms, settings.model, settings.sessions
    offer = PROVIDERS.get(model.provider)
    return GatewayFacts(
        home=str(home.root),
        networks=tuple(_build_platform_info(name, getattr(platforms, name)) for name in platforms.__struct_fields__),
        model=model.name or model.provider,
        provider=model.provider,
        base_url=model.base_url or (offer.base_url if offer else ""),
        reset=sessions.reset,
        idle_minutes=round(sessions.idle / 60),
        daily_at=sessions.daily_at,
    )


def _build_platform_info(name: str, network: PlatformSettings) -> PlatformInfo:
    return PlatformInfo(name, not why_not_served(network), network.home_channel, network.home_channel_name)
