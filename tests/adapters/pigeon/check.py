"""Whether the pigeon is well."""

from gateway.adapters.shared.folder import PlatformReport
from tests.adapters.pigeon.settings import PigeonSettings


async def check(settings: PigeonSettings) -> PlatformReport:
    return PlatformReport(f"a pigeon of {settings.loft}")


async def say(settings: PigeonSettings, chat: str, text: str) -> None:
    """Nobody asks for it here."""
