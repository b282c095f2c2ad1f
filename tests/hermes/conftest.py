"""A running gateway with a folder for each fact that hooks written for Hermes rely on; one for all tests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from gateway.testing.patience import wait_until

FOLDERS = Path(__file__).parent / "hooks"
SCRIPT = (
    {"user": "hello", "answers": [{"text": "hello yourself"}]},
    {
        "user": "use a tool",
        "answers": [{"tool_calls": [{"name": "remember", "args": {"text": "x"}}]}, {"text": "used"}],
    },
    {"user": "long", "answers": [{"text": "y" * 1200}]},
    {"user": "fail", "answers": [{"error": {"message": "the model is out of order"}}]},
    {"user": "the boot task", "answers": [{"text": "booted"}]},
    {"user": "please send", "answers": [{"text": "sent"}]},
)


class Seen:
    """The hooks' records, each in a file of its own."""

    def __init__(self, gateway: GatewayProcess) -> None:
        self.gateway = gateway
        self._folder = gateway.home.root / "seen"

    def all(self, hook: str) -> list[list[Any]]:
        try:
            text = (self._folder / f"{hook}.jsonl").read_text()
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait(self, hook: str, count: int = 1) -> list[list[Any]]:
        self.gateway.until(lambda: len(self.all(hook)) >= count)
        return self.all(hook)

    def events(self, name: str, **fields: Any) -> list[dict[str, Any]]:
        """Return the `every-event` hook's events of this name, with these fields."""
        told = [line[1] for line in self.all("every-event") if line[0] == name]
        return [one for one in told if all(one.get(key) == value for key, value in fields.items())]

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        """Wait for the first such event."""
        return wait_until(lambda: self.events(name, **fields), what=f"{name} with {fields}")[0]

    def log(self, hook: str) -> str:
        return (self.gateway.home.hook_logs / f"{hook}.log").read_text()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT, settings="platforms: {telegram: {home_channel: '42', home_channel_name: Ops}}\n")
        (gateway.home.root / "config.yaml").write_text("mine: {volume: 11}\nmodel: {default: other}\n")
        for folder in sorted(FOLDERS.iterdir()):
            gateway.add_hook(folder.name, folder)
        gateway.start()
        gateway.until(lambda: all(hook["state"] not in ("starting", "registered") for hook in hooks(gateway)), 60)
        assert {hook["name"]: hook["reason"] for hook in hooks(gateway) if hook["state"] != "loaded"} == {}
        yield Seen(gateway)


def hooks(gateway: GatewayProcess) -> list[dict[str, Any]]:
    return [one for one in gateway.call("hooks.list")["hooks"] if one["origin"] == "home"]
