"""What `setup pigeon` asks for and says."""

from gateway.adapters import PlatformSetup, SetupQuestion, make_access_questions

from .settings import SPEC

SETUP = PlatformSetup(
    "build a loft for carrier pigeons",
    "Buy a pigeon.",
    (
        SetupQuestion("PIGEON_LOFT", "--loft", "the loft", "the folder where pigeons come and go"),
        SetupQuestion("PIGEON_RING", "--ring", "the ring", "on its leg", r"ring-[a-z]+", is_token=True),
        *make_access_questions("pigeon", "such as P1", "P1", SPEC.user_id),
    ),
)
