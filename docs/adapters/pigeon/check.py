"""Whether the pigeon is well, for `setup`."""

from pathlib import Path

from gateway.adapters import AdapterError, PlatformReport

from .settings import PigeonSettings


async def check(settings: PigeonSettings) -> PlatformReport:
    """Who we are there. What is not good is an AdapterError, with the remedy."""
    if not Path(settings.loft).is_dir():
        raise AdapterError("there is no loft; make the folder that PIGEON_LOFT names")
    return PlatformReport(f"a pigeon of {settings.loft}")


async def say(settings: PigeonSettings, chat: str, text: str) -> None:
    """One text into a chat: the home channel is greeted."""
    (Path(settings.loft) / f"hello-{chat}.out").write_text(text)
