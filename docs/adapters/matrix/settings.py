"""What a person sets for Matrix."""

from typing import Annotated

from gateway.adapters import Location, PlatformSettings, PlatformSpec, Poll, Secret, TokenShape, describe


class MatrixSettings(PlatformSettings, frozen=True, kw_only=True):
    """Matrix, by a homeserver of anybody's."""

    NATIVE_PARTS = (Poll, Location)

    homeserver: Annotated[str, describe("its address, such as https://matrix.example.org")] = ""
    access_token: Annotated[Secret, describe("the token of the bot's account, `syt_...`")] = Secret()


SPEC = PlatformSpec(
    settings=MatrixSettings,
    ids="such as @ann:example.org; rooms such as !abc:example.org",
    user_id=r"@[^\s:]+:\S+",
    chat_id=r"![^\s]+",
    variables={
        "MATRIX_HOMESERVER": "platforms.matrix.homeserver",
        "MATRIX_ACCESS_TOKEN": "platforms.matrix.access_token",
    },
    token_shapes=(TokenShape(("syt_", "mct_"), r"\b(?:syt|mct)_[A-Za-z0-9_]{8,}"),),
    noisy_loggers=("nio",),
    libraries=("nio",),
)
