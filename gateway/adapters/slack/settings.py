"""The settings of Slack, and facts about it that need no library."""

from typing import Annotated, Literal

from gateway.config.fields import HTTP_PATTERN, Secret, describe
from gateway.config.platform_settings import PlatformSettings, PlatformSpec
from gateway.logs.redaction import TokenShape


class SlackSettings(PlatformSettings, frozen=True, kw_only=True):
    """Slack, by Socket Mode, or by its calls to the port."""

    IS_STAMPED = True

    bot_token: Annotated[Secret, describe("the bot's token, `xoxb-...`")] = Secret()
    app_token: Annotated[Secret, describe("the app's token for Socket Mode, `xapp-...`")] = Secret()
    mode: Annotated[
        Literal["socket", "http"],
        describe("`socket`: over a line that the gateway opens; `http`: Slack calls `/networks/slack` under `web.url`"),
    ] = "socket"
    signing_secret: Annotated[Secret, describe("by which Slack's calls are known; for `mode: http`")] = Secret()
    allow_bots: Annotated[Literal["none", "mentions", "all"], describe("which messages of other bots are answered")] = (
        "none"
    )
    prompts: Annotated[
        tuple[str, ...],
        describe("what people are offered to ask when they open the app, in Slack's view of agents", max_length=4),
    ] = ()
    base_url: Annotated[str, describe("another address of the Web API", pattern=HTTP_PATTERN)] = ""

    @property
    def is_called(self) -> bool:
        return self.mode == "http"

    @property
    def missing_tokens(self) -> list[str]:
        needed = {"bot_token": self.bot_token}
        needed |= {"signing_secret": self.signing_secret} if self.is_called else {"app_token": self.app_token}
        return [name for name, value in needed.items() if not value.reveal().strip()]


SPEC = PlatformSpec(
    settings=SlackSettings,
    ids="such as U012ABCDEF; channels such as C012ABCDEF",
    user_id=r"[UWB][A-Z0-9]{6,}",  # B: a bot; Slack does not promise the length of an id
    chat_id=r"[CGD][A-Z0-9]{6,}",
    variables={
        "SLACK_BOT_TOKEN": "platforms.slack.bot_token",
        "SLACK_APP_TOKEN": "platforms.slack.app_token",
        "SLACK_SIGNING_SECRET": "platforms.slack.signing_secret",
        "SLACK_FREE_RESPONSE_CHANNELS": "platforms.slack.free_response_channels",
        "SLACK_ALLOW_BOTS": "platforms.slack.allow_bots",
        "SLACK_API_URL": "platforms.slack.base_url",
    },
    token_shapes=(
        TokenShape(("xox", "xapp-"), r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}|\bxapp-[A-Za-z0-9-]{8,}"),
        TokenShape(("hooks.slack.com/",), r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]+"),
    ),
    noisy_loggers=("slack_bolt", "slack_sdk"),
    libraries=("slack_bolt", "slack_sdk", "aiohttp"),
)
