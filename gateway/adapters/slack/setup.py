"""The questions and texts of `setup slack`."""

from gateway.adapters.shared.folder import PlatformSetup, SetupQuestion, make_access_questions
from gateway.adapters.slack.manifest import build_manifest
from gateway.adapters.slack.settings import SPEC

SETUP = PlatformSetup(
    "connect a Slack app",
    "At https://api.slack.com/apps: Create New App, From a manifest, and paste what `hermes-gateway setup slack "
    "--manifest` prints. Then Install to Workspace, and copy the bot's token; under Basic Information, App-Level "
    "Tokens, make a token with the scope connections:write (not with `mode: http`: Slack calls the gateway there).",
    (
        SetupQuestion(
            "SLACK_BOT_TOKEN",
            "--bot-token",
            "the bot's token",
            "xoxb-..., from OAuth & Permissions",
            r"xoxb-[\w-]{10,}",
            is_token=True,
            example="xoxb-1234567890-1234567890-AbCd",
        ),
        SetupQuestion(
            "SLACK_APP_TOKEN",
            "--app-token",
            "the app's token",
            "xapp-..., from Basic Information, App-Level Tokens",
            r"xapp-[\w-]{10,}",
            is_token=True,
            example="xapp-1-A0123456789-1234567890-AbCd",
            is_called=False,
        ),
        SetupQuestion(
            "SLACK_SIGNING_SECRET",
            "--signing-secret",
            "the signing secret",
            "32 letters and digits, from Basic Information, App Credentials",
            r"[0-9a-f]{32}",
            is_token=True,
            example="0123456789abcdef0123456789abcdef",
            is_called=True,
        ),
        *make_access_questions(
            "slack",
            "such as U012ABCDEF, from a person's profile, Copy member ID",
            "C012ABCDEF",
            SPEC.user_id,
            SPEC.chat_id,
        ),
    ),
    manifest=build_manifest,
)
