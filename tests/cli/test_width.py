"""What is shown to a person fits the terminal: no line is longer than it is wide."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.cli.test_terminal_safety import show_on_terminal

pytestmark = pytest.mark.process

STYLE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    "words",
    [("--help",), ("hooks", "--help"), ("send", "--help"), ("logs", "--help"), ("security", "audit")],
    ids=" ".join,
)
def test_no_line_is_longer_than_the_terminal_is_wide(tmp_path: Path, words: tuple[str, ...]) -> None:
    home = tmp_path / "a-home-in-a-folder-with-a-name-that-leaves-less-room-than-others" / "home"
    home.mkdir(parents=True)
    home.chmod(0o777)
    with GatewayProcess(home) as gateway:
        lines = STYLE.sub("", show_on_terminal(gateway, *words)).replace("\r", "").splitlines()
    assert len(lines) > 4, lines
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []


SERVED = """
access:
  owners: {telegram: ["100200300400"]}
  groups:
    ops: {people: ["slack:U0123456789ABCDEFGHIJ", "telegram:200300400500"], role: operator}
budgets: {each_person: {day: {tokens: 1000000}, month: {money: 1000}}}
web: {listen: 127.0.0.1:0}
"""
NETWORK = {"TELEGRAM_BOT_TOKEN": "123456:not-a-token-of-anybody", "TELEGRAM_BASE_URL": "http://127.0.0.1:9/bot"}
PACKAGES = ["no-such-package-of-anybody-77", "nor-one-of-such-a-name-as-this-78"]
BROKEN = f"requires: {{python: [{', '.join(PACKAGES)}]}}\nevents: [agent:start, agent:end]\n"
HANDLER = "def handle(event_type, context):\n    pass\n"
PROGRAM = "a-program-that-tells-everybody-how-it-is-in-the-whole-house"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Names and reasons that are too long for a table of 80 columns."""
    with GatewayProcess(tmp_path_factory.mktemp("served") / "home") as gateway:
        gateway.script({"user": "", "text": "it is well"}, settings=SERVED)
        gateway.environ |= NETWORK
        gateway.add_hook("archive-of-all-that-was-ever-said-in-here", {"HOOK.yaml": BROKEN, "handler.py": HANDLER})
        gateway.start()
        gateway.call("keys.create", {"name": PROGRAM, "role": "operator"})
        gateway.say("how does the gateway that serves all of this house fare today, and who may know that?")
        yield gateway


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("activity list", ["keys.create", "as operator", "done"]),
        ("people list", ["slack:U0123456789ABCDEFGHIJ", "operator"]),
        ("keys list", [PROGRAM[:40], PROGRAM[-5:], "operator"]),
        ("hooks list", ["archive-of-all", "agent:start agent:end; the Python", *PACKAGES]),
        ("hooks stats", ["calls", "p95"]),
        ("sessions list", ["agent:main:terminal:dm:main"]),
        ("platform list", ["telegram", "down", "ConnectError: All connection attempts failed"]),
        ("usage", ["each_person terminal:owner", "1000000"]),
        ("status", ["restarts", "telegram"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_of_a_table_is_cut(served: GatewayProcess, words: str, wanted: list[str]) -> None:
    lines = STYLE.sub("", show_on_terminal(served, *words.split())).replace("\r", "").splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert "…" not in "".join(lines)
    shown = " ".join(map(str.strip, lines))
    assert [text for text in wanted if text not in shown] == []
