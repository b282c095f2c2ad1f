"""What `setup matrix` asks for and says."""

from gateway.adapters import PlatformSetup, SetupQuestion, make_access_questions

from .settings import SPEC

SETUP = PlatformSetup(
    "talk on Matrix, by an account of its own",
    "Make an account for the bot on any homeserver, and log in with it once for an access token.",
    (
        SetupQuestion(
            "MATRIX_HOMESERVER", "--homeserver", "the homeserver", "such as https://matrix.org", r"https?://\S+"
        ),
        SetupQuestion(
            "MATRIX_ACCESS_TOKEN",
            "--access-token",
            "the access token",
            "in Element: All settings, Help & About, Access token; do not log out there",
            is_token=True,
        ),
        *make_access_questions("matrix", "such as @ann:example.org", "!abc:example.org", SPEC.user_id),
    ),
)
