"""The object `gateway` that Hermes passes to callbacks: the served networks, for sending, and the configuration.

It replaces an object of Hermes's own process. A part that cannot be offered is named with the reason, once, in the
hook's log; setting an attribute on it changes nothing here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gateway.hermes.shim.config_shapes import GatewayConfig, Platform, PlatformConfig, load_gateway_config
from gateway.hermes.shim.gateway_calls import begin_request, get_facts, note_patch, refuse_attribute
from gateway.hermes.shim.hook_registry import HookRegistry
from gateway.hermes.shim.platform_shapes import PlatformAdapter, SendResult
from gateway.hermes.shim.session_env import get_session_env
from gateway.hermes.shim.session_shapes import SessionSource, SessionStore, build_session_key

TERMINAL = Platform.TERMINAL  # a network without settings, which is always there
INSIDE = "it is a part of Hermes's own process"


def list_destinations(platform: Platform, chat: str, thread: str) -> Iterator[str]:
    """Yield the possible destinations of `send`: the call's conversation, by its key, and else the chat."""
    here = [get_session_env(f"HERMES_SESSION_{name}") for name in ("PLATFORM", "CHAT_ID", "THREAD_ID", "KEY")]
    if here[:2] == [platform.value, chat] and thread in ("", here[2]) and here[3]:
        yield here[3]
    yield f"{platform.value}:{chat}" + (f":{thread}" if thread else "")


class LiveAdapter(PlatformAdapter):
    """One served network; its messages go the way of every message of ours."""

    def __init__(self, config: PlatformConfig, platform: Platform) -> None:
        super().__init__(config, platform)
        self._is_made = True

    async def connect(self, *, is_reconnect: bool = False) -> bool:  # noqa: ARG002 - it is
        return True

    async def disconnect(self) -> None:
        """Do nothing: the gateway decides about that."""

    async def send(
        self,
        chat_id: str,
        content: str,
        reply_to: str | None = None,  # noqa: ARG002 - Hermes's signature
        metadata: dict[str, Any] | None = None,
    ) -> SendResult:
        """Send the message as soon as possible; it counts as a success once it is in the journal."""
        thread = str((metadata or {}).get("thread_id") or "")
        why = ""
        for to in list_destinations(self.platform, str(chat_id), thread):
            try:
                return SendResult(True, (await begin_request("send", to=to, text=content))["id"])
            except RuntimeError as refused:  # for instance: in this conversation nothing is kept yet
                why = str(refused)
        return SendResult(False, error=why)

    async def get_chat_info(self, chat_id: str) -> dict[str, Any]:
        return {"id": chat_id, "name": chat_id, "type": "dm"}

    def __getattr__(self, name: str) -> Any:
        refuse_attribute(f"the adapter of {self.__dict__.get('name', 'a network')}", name, INSIDE)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_is_made" in self.__dict__ and not name.startswith("_handler"):
            note_patch(f"{name} of the adapter of {self.name}")
        super().__setattr__(name, value)


class Adapters(Mapping[Platform, LiveAdapter]):
    """The served networks, by their members of `Platform`; a network's name as text finds it, too."""

    def __getitem__(self, key: Any) -> LiveAdapter:
        platform = key if isinstance(key, Platform) else Platform(str(getattr(key, "value", key)))
        return self._made()[platform]

    def __iter__(self) -> Iterator[Platform]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def __setitem__(self, key: Any, value: Any) -> None:
        note_patch(f"gateway.adapters[{key}]")

    def _made(self) -> dict[Platform, LiveAdapter]:
        configs = load_gateway_config().platforms
        served = [Platform(one["name"]) for one in get_facts()["networks"] if one["served"]]
        return {one: LiveAdapter(configs.get(one) or PlatformConfig(enabled=True), one) for one in (TERMINAL, *served)}


class GatewayRunner:
    """The runner that callbacks get."""

    adapters: Adapters

    def __init__(self) -> None:
        self.__dict__.update(adapters=Adapters(), session_store=SessionStore(), hooks=HookRegistry())

    @property
    def config(self) -> GatewayConfig:
        return load_gateway_config()

    def _adapter_for_source(self, source: SessionSource) -> LiveAdapter | None:
        return self.adapters.get(source.platform)

    def _session_key_for_source(self, source: SessionSource) -> str:
        return build_session_key(source)

    def __getattr__(self, name: str) -> Any:
        refuse_attribute("gateway", name, INSIDE)

    def __setattr__(self, name: str, value: Any) -> None:
        note_patch(f"gateway.{name}")
        self.__dict__[name] = value
