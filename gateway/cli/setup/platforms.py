"""What `setup` asks for and says of each network: facts, from which its flags and its questions are made."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """One thing to ask for, and the variable in which it is kept."""

    variable: str
    flag: str
    what: str
    where: str
    pattern: str = r"\S+"
    is_needed: bool = False
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class PlatformSetup:
    """One network. `before` is said first; `switches` are those that must be flipped at the network itself."""

    summary: str
    before: str
    asks: tuple[SetupQuestion, ...]
    switches: tuple[str, ...] = ()


def make_access_questions(network: str, ids: str, example: str, pattern: str) -> tuple[SetupQuestion, SetupQuestion]:
    """Who may speak, and the home channel: alike everywhere, but for what an id is."""
    name = network.upper()
    return (
        SetupQuestion(
            f"{name}_ALLOWED_USERS",
            "--allow",
            "who may speak, as ids",
            f"{ids}, several with commas; without any, whoever writes first can be paired",
            rf"{pattern}(,\s*{pattern})*",
        ),
        SetupQuestion(
            f"{name}_HOME_CHANNEL",
            "--home-channel",
            "the chat for reports and alerts, as an id",
            f"for instance {example}",
        ),
    )


SETUPS: Mapping[str, PlatformSetup] = {
    "telegram": PlatformSetup(
        "connect a Telegram bot",
        "In Telegram, write /newbot to @BotFather, choose a name and a username, and copy the token that it answers.",
        (
            SetupQuestion(
                "TELEGRAM_BOT_TOKEN",
                "--token",
                "the bot's token",
                "from @BotFather, /newbot or /token",
                r"\d{3,}:[A-Za-z0-9_-]{30,}",
                is_needed=True,
                is_secret=True,
            ),
            *make_access_questions("telegram", "numbers, which @userinfobot tells", "your own id", r"\d{1,20}"),
        ),
    ),
    "discord": PlatformSetup(
        "connect a Discord bot",
        "At https://discord.com/developers/applications: New Application, then Bot, Reset Token, and copy the token. "
        "On the same page, under Privileged Gateway Intents, switch on Message Content Intent.",
        (
            SetupQuestion(
                "DISCORD_BOT_TOKEN",
                "--token",
                "the bot's token",
                "from the developer portal, Bot, Reset Token",
                r"[\w-]{20,}\.[\w-]{5,}\.[\w-]{20,}",
                is_needed=True,
                is_secret=True,
            ),
            *make_access_questions(
                "discord",
                "numbers, which Discord copies when its Developer Mode is on (right click on a person, Copy User ID)",
                "the id of a channel",
                r"\d{15,20}",
            ),
        ),
    ),
    "slack": PlatformSetup(
        "connect a Slack app",
        "At https://api.slack.com/apps: Create New App, From a manifest, and paste what `hermes-gateway setup slack "
        "--manifest` prints. Then Install to Workspace, and copy the bot's token; under Basic Information, App-Level "
        "Tokens, make a token with the scope connections:write.",
        (
            SetupQuestion(
                "SLACK_BOT_TOKEN",
                "--bot-token",
                "the bot's token",
                "xoxb-..., from OAuth & Permissions",
                r"xoxb-[\w-]{10,}",
                is_needed=True,
                is_secret=True,
            ),
            SetupQuestion(
                "SLACK_APP_TOKEN",
                "--app-token",
                "the app's token",
                "xapp-..., from Basic Information, App-Level Tokens",
                r"xapp-[\w-]{10,}",
                is_needed=True,
                is_secret=True,
            ),
            *make_access_questions(
                "slack", "such as U012ABCDEF, from a person's profile, Copy member ID", "C012ABCDEF", "[UW][A-Z0-9]{6,}"
            ),
        ),
    ),
}
