"""The number of calls that one action takes on a network, beside the typing signs."""

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.testing.live_gateway import until
from gateway.testing.networks.house import housed
from gateway.testing.networks.suite import ASKS, may_ask
from tests.adapters.wires import WIRES

ANSWERS = {"telegram": ["sendMessage"], "discord": ["POST messages"], "slack": ["chat.postMessage"]}
APPROVALS = {
    "telegram": ["answerCallbackQuery", "editMessageText", "sendMessage", "sendMessage"],
    "discord": ["POST callback", "POST messages", "POST messages"],
    "slack": ["chat.postMessage", "chat.postMessage", "chat.update"],
}
COMMANDS = {"telegram": ["sendMessage"], "discord": ["POST callback"], "slack": ["chat.postMessage"]}
COUNTED = re.compile(
    r"send(?!ChatAction)|edit|answer|chat\.|(POST|PATCH|DELETE) .*(messages|callback|webhooks)|respond"
)


def list_calls(wire: Any) -> list[str]:
    """List the calls that show or answer something, as the network calls them."""
    named = (" ".join(part.rpartition("/")[2] for part in one[:2] if isinstance(part, str)) for one in wire.calls)
    return [one for one in named if COUNTED.match(one)]


@pytest.mark.parametrize("network", ["telegram", "discord", "slack"])
async def test_an_answer_an_approval_and_a_command_take_no_call_too_many(network: str, tmp_path: Path) -> None:
    wire: Any = WIRES[network](tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home", *ASKS, settings=may_ask(wire)) as house:
        await house.is_up()
        await wire.write("and you?")
        await house.hears("message:sent")
        assert list_calls(wire) == ANSWERS[network]
        wire.calls.clear()
        await wire.write("do it")
        await until(lambda: any(one.buttons for one in wire.shown), "the buttons")
        (question,) = [one for one in wire.shown if one.buttons]
        await wire.press(question, "Yes")
        await until(lambda: "Allowed by" in question.text, "the end of the question")
        await house.hears("message:sent", 3)
        assert sorted(list_calls(wire)) == APPROVALS[network]
        wire.calls.clear()
        await wire.write("/whoami")
        await house.hears("message:sent", 4)
        assert list_calls(wire) == COMMANDS[network]


async def test_slack_is_asked_once_who_we_are(tmp_path: Path) -> None:
    """Bolt would ask for each event that comes before its first answer."""
    wire: Any = WIRES["slack"](tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home") as house:
        for _ in range(5):
            await wire.write("and you?")
        await until(lambda: len(house.told("message:received")) == 5, "all of them")
        assert [name for name, _ in wire.calls].count("auth.test") == 1
