"""The questions and texts of `setup telegram`."""

from gateway.adapters.shared.folder import PlatformSetup, SetupQuestion, make_access_questions
from gateway.adapters.telegram.settings import SPEC

SETUP = PlatformSetup(
    "connect a Telegram bot",
    "In Telegram, write /newbot to @BotFather, choose a name and a username, and copy the token that it answers.",
    (
        SetupQuestion(
            "TELEGRAM_BOT_TOKEN",
            "--token",
            "the bot's token",
            "from @BotFather, /newbot or /token",
            r"\d{3,}:[A-Za-z0-9_-]{30,}",
            is_token=True,
            example="123456789:AAF with 32 more signs",
        ),
        *make_access_questions(
            "telegram", "numbers, which @userinfobot tells", "your own id", SPEC.user_id, SPEC.chat_id
        ),
    ),
)
