"""What hooks may know of how the gateway is set up, and what they find in their environment of it."""

from gateway.config.home import Home
from gateway.config.platforms import Network as NetworkSettings
from gateway.config.providers import OFFERS
from gateway.config.settings import Settings
from gateway.daemon.networks import why_off
from gateway.dispatcher import GatewayFacts, PlatformInfo


def about(home: Home, settings: Settings) -> GatewayFacts:
    """Without any secret."""
    platforms, model, sessions = settings.platforms, settings.model, settings.sessions
    offer = OFFERS.get(model.provider)
    return GatewayFacts(
        home=str(home.root),
        networks=tuple(_network(name, getattr(platforms, name)) for name in platforms.__struct_fields__),
        model=model.name or model.provider,
        provider=model.provider,
        base_url=model.base_url or (offer.base_url if offer else ""),
        reset=sessions.reset,
        idle_minutes=round(sessions.idle / 60),
        daily_at=sessions.daily_at,
    )


def _network(name: str, network: NetworkSettings) -> PlatformInfo:
    return PlatformInfo(name, not why_off(name, network), network.home_channel, network.home_channel_name)
