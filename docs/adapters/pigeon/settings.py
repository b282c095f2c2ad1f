"""What a person sets for carrier pigeons."""

from typing import Annotated

from gateway.adapters import PlatformSettings, PlatformSpec, Secret, TokenShape, describe


class PigeonSettings(PlatformSettings, frozen=True, kw_only=True):
    """Carrier pigeons, by a loft."""

    ring_token: Annotated[Secret, describe("what is engraved on the ring")] = Secret()
    loft: Annotated[str, describe("the folder where they come and go")] = ""


SPEC = PlatformSpec(
    settings=PigeonSettings,
    ids="such as P1",
    user_id=r"P[0-9]+",
    chat_id=r"[LP][0-9]+",
    variables={"PIGEON_RING": "platforms.pigeon.ring_token", "PIGEON_LOFT": "platforms.pigeon.loft"},
    token_shapes=(TokenShape(("ring-",), r"\bring-[a-z]{8,}"),),
    noisy_loggers=("coo",),
)
