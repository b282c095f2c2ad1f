"""Imports what Hermes has, and writes down what it finds."""

import json, os, pathlib

SEEN = pathlib.Path(os.environ["HERMES_HOME"]) / "seen"


def note(name, *what):
    SEEN.mkdir(exist_ok=True)
    with (SEEN / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(what) + "\n")


LOGS = (SEEN.parent / "logs").is_dir()

from gateway.config import HomeChannel, Platform, PlatformConfig, load_gateway_config
from gateway.hooks import HookRegistry
from gateway.platforms.base import BasePlatformAdapter, MessageEvent, MessageType, SendResult
from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
from gateway.session import SessionEntry, SessionSource, build_session_key
from gateway.whatsapp_identity import canonical_whatsapp_identifier
from hermes_cli.config import get_hermes_home as other_home
from hermes_cli.config import load_config
from hermes_constants import get_hermes_home


class Adapter(BasePlatformAdapter):
    async def connect(self, *, is_reconnect=False):
        return True

    async def disconnect(self):
        pass

    async def send(self, chat_id, content, reply_to=None, metadata=None):
        return SendResult(success=True, message_id="1")

    async def get_chat_info(self, chat_id):
        return {"name": chat_id}


async def handle(event_type, context):
    home = get_hermes_home()
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="-5", chat_type="group", user_id="7")
    event = MessageEvent(text="/Deploy@bot now fast", source=source, message_type=MessageType.COMMAND)
    registry = HookRegistry()
    registry.discover_and_load()
    entry = SessionEntry.from_dict(
        {
            "session_key": "k",
            "session_id": "i",
            "created_at": "2026-01-01T00:00:00",
            "updated_at": "2026-01-01T00:00:00",
            "platform": "telegram",
            "origin": source.to_dict(),
        }
    )
    adapter = Adapter(PlatformConfig(enabled=True), Platform.TELEGRAM)
    note(
        "facade",
        {
            "logs": LOGS,
            "home": str(home) == os.environ["HERMES_HOME"] == str(other_home()),
            "own setting": load_config().get("mine"),
            "platform": [Platform("telegram").value, Platform.SLACK is Platform("slack")],
            "keys": [
                build_session_key(source),
                build_session_key(SessionSource(platform=Platform.DISCORD, chat_id="9", thread_id="4")),
                build_session_key(source, group_sessions_per_user=False),
            ],
            "source": SessionSource.from_dict(source.to_dict()) == source,
            "source dict": source.to_dict(),
            "entry": [entry.to_dict()["origin"] == source.to_dict(), entry.updated_at.year, sorted(entry.to_dict())],
            "command": [event.is_command(), event.get_command(), event.get_command_args()],
            "sent": (await adapter.send("1", "x")).message_id,
            "home channel": HomeChannel(platform=Platform.SLACK, chat_id="C1", name="ops").to_dict(),
            "hooks": sorted(type(registry.loaded_hooks).__name__ for _ in [1]),
            "whatsapp": canonical_whatsapp_identifier("+60123:47@s.whatsapp.net"),
        },
    )
    if not context.get("alone"):
        look_around(registry)


def look_around(registry):
    """What only the gateway can tell."""
    config = load_gateway_config()
    home_channel = config.get_home_channel(Platform.TELEGRAM)
    note(
        "facade-here",
        {
            "home": [home_channel.chat_id, home_channel.name] if home_channel else None,
            "connected": [one.value for one in config.get_connected_platforms()],
            "variable": os.environ.get("TELEGRAM_HOME_CHANNEL"),
            "token": config.platforms[Platform.TELEGRAM].token,
            "model": _resolve_gateway_model(),
            "runtime": sorted(_resolve_runtime_agent_kwargs()),
            "hooks": [hook["name"] for hook in registry.loaded_hooks if hook["name"] == "facade"],
        },
    )
