"""Where many talk, who is meant: the rules by which a message in a group is for us."""

from gateway.config.platform_settings import PlatformSettings
from gateway.messages import Address


def is_for_us(settings: PlatformSettings, address: Address, *, is_called: bool) -> bool:
    """`is_called`: the message mentions us, replies to us, or is a command of ours."""
    if address.chat_type == "dm" or is_called or not settings.require_mention:
        return True
    return address.chat_id in settings.free_response_channels
