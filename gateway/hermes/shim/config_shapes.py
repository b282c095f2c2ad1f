"""The shapes of the chat networks and their settings in Hermes, filled from this gateway's configuration."""

import os
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Self

from gateway.hermes.shim.gateway_calls import get_facts
from gateway.hermes.shim.home import get_hermes_home


class Platform(Enum):
    """Hermes's networks by their names; a name that it does not know makes a member of its own."""

    LOCAL = "local"
    TERMINAL = "terminal"
    TELEGRAM = "telegram"
    DISCORD = "discord"
    WHATSAPP = "whatsapp"
    WHATSAPP_CLOUD = "whatsapp_cloud"
    SLACK = "slack"
    SIGNAL = "signal"
    MATTERMOST = "mattermost"
    MATRIX = "matrix"
    HOMEASSISTANT = "homeassistant"
    EMAIL = "email"
    SMS = "sms"
    DINGTALK = "dingtalk"
    API_SERVER = "api_server"
    WEBHOOK = "webhook"
    MSGRAPH_WEBHOOK = "msgraph_webhook"
    FEISHU = "feishu"
    WECOM = "wecom"
    WECOM_CALLBACK = "wecom_callback"
    WEIXIN = "weixin"
    BLUEBUBBLES = "bluebubbles"
    QQBOT = "qqbot"
    YUANBAO = "yuanbao"
    RELAY = "relay"

    @classmethod
    def _missing_(cls, value: object) -> "Platform | None":
        if not isinstance(value, str) or not value.strip():
            return None
        word = value.strip().lower()
        if word in cls._value2member_map_:
            return cls(word)
        made = object.__new__(cls)
        made._name_, made._value_ = word.upper(), word
        cls._value2member_map_[word] = made
        return made


# Networks for which Hermes uses ids as the names of chats and of unknown people.
CALLED_BY_ID = frozenset({Platform.SLACK.value})


@dataclass
class HomeChannel:
    platform: Platform
    chat_id: str
    name: str = "Home"
    thread_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        told = {**asdict(self), "platform": self.platform.value}
        return {name: value for name, value in told.items() if name != "thread_id" or value}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        thread = data.get("thread_id")
        return cls(
            Platform(data["platform"]),
            str(data["chat_id"]),
            data.get("name", "Home"),
            str(thread) if thread else None,
        )


@dataclass
class SessionResetPolicy:
    mode: str = "none"
    at_hour: int = 4
    idle_minutes: int = 1440
    notify: bool = True
    notify_exclude_platforms: tuple[str, ...] = ("api_server", "webhook")
    bg_process_max_age_hours: int = 24

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class StreamingConfig:
    enabled: bool = False
    transport: str = "auto"
    edit_interval: float = 0.8
    buffer_threshold: int = 24
    cursor: str = ""
    fresh_final_after_seconds: float = 0.0


@dataclass
class PlatformConfig:
    enabled: bool = False
    token: str | None = None
    api_key: str | None = None
    home_channel: HomeChannel | None = None
    reply_to_mode: str = "first"
    gateway_restart_notification: bool = True
    typing_indicator: bool = True
    typing_status_text: str | None = None
    channel_overrides: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        home = self.home_channel.to_dict() if self.home_channel else None
        return {**asdict(self), "home_channel": home}


@dataclass
class GatewayConfig:
    platforms: dict[Platform, PlatformConfig] = field(default_factory=dict)
    default_reset_policy: SessionResetPolicy = field(default_factory=SessionResetPolicy)
    reset_by_type: dict[str, SessionResetPolicy] = field(default_factory=dict)
    reset_by_platform: dict[Platform, SessionResetPolicy] = field(default_factory=dict)
    reset_triggers: list[str] = field(default_factory=lambda: ["/new", "/reset"])
    quick_commands: dict[str, Any] = field(default_factory=dict)
    sessions_dir: Path = field(default_factory=lambda: get_hermes_home() / "sessions")
    write_sessions_json: bool = True
    always_log_local: bool = True
    group_sessions_per_user: bool = True
    thread_sessions_per_user: bool = False
    max_concurrent_sessions: int | None = None
    multiplex_profiles: bool = False
    unauthorized_dm_behavior: str = "pair"
    streaming: StreamingConfig = field(default_factory=StreamingConfig)
    session_store_max_age_days: int = 90
    profile_routes: list[Any] = field(default_factory=list)

    def get_connected_platforms(self) -> list[Platform]:
        return [platform for platform, config in self.platforms.items() if config.enabled]

    def get_home_channel(self, platform: Platform) -> HomeChannel | None:
        config = self.platforms.get(platform)
        return config.home_channel if config else None

    def get_reset_policy(self, platform: Platform | None = None, session_type: str | None = None) -> SessionResetPolicy:
        by_platform = self.reset_by_platform.get(platform) if platform else None
        return by_platform or self.reset_by_type.get(session_type or "") or self.default_reset_policy


def load_gateway_config() -> GatewayConfig:
    """Load this gateway's configuration; it has a token only if this hook may read the token's variable."""
    about = get_facts()
    policy = SessionResetPolicy(about["reset"], about["daily_at"], about["idle_minutes"])
    return GatewayConfig({Platform(one["name"]): _make_platform_config(one) for one in about["networks"]}, policy)


def _make_platform_config(network: dict[str, Any]) -> PlatformConfig:
    platform = Platform(network["name"])
    chat, name = network["home_channel"], network["home_channel_name"] or "Home"
    token = os.environ.get(f"{platform.name}_BOT_TOKEN")  # noqa: TID251 - what the hook declared
    return PlatformConfig(
        enabled=network["served"], token=token, home_channel=HomeChannel(platform, chat, name) if chat else None
    )
