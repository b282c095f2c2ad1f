"""The questions and texts of `setup discord`."""

from gateway.adapters.discord.settings import SPEC
from gateway.adapters.shared.folder import PlatformSetup, SetupQuestion, make_access_questions

SETUP = PlatformSetup(
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
            is_token=True,
            example="three parts with two dots, about 70 signs",
        ),
        *make_access_questions(
            "discord",
            "numbers, which Discord copies when its Developer Mode is on (right click on a person, Copy User ID)",
            "the id of a channel",
            SPEC.user_id,
            SPEC.chat_id,
        ),
    ),
)
