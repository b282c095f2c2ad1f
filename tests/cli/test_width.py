"""Output for people fits the terminal: no line is longer than it is wide."""

import argparse
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli import build_command_parser
from gateway.cli.program import COMMANDS
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
HOOK = "archive-of-all-that-was-ever-said-in-here"
HANDLER = "def handle(event_type, context):\n    pass\n"
JOB = "the-report-of-all-that-happened-in-the-house-since-yesterday"
PROGRAM = "a-program-that-tells-everybody-how-it-is-in-the-whole-house"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Names and reasons that are too long for a table of 80 columns."""
    with GatewayProcess(tmp_path_factory.mktemp("served") / "home") as gateway:
        gateway.script({"user": "", "text": "it is well"}, settings=SERVED)
        gateway.environ |= NETWORK
        gateway.add_hook(HOOK, {"HOOK.yaml": BROKEN, "handler.py": HANDLER})
        gateway.start()
        gateway.call("keys.create", {"name": PROGRAM, "role": "operator"})
        gateway.call("jobs.add", {"name": JOB, "when": "0 9 * * 1-5", "text": f"Sum up {'all that happened, ' * 30}"})
        gateway.say("how does the gateway that serves all of this house fare today, and who may know that?")
        gateway.until(lambda: "connection refused" in str(gateway.call("platform.list")))
        yield gateway


# Every command that only shows something, with how it is called, and what stands there whole.
SHOWN: dict[str, tuple[str, list[str]]] = {
    "status": ("", ["telegram", "owner"]),
    "doctor": ("", ["archive-of-all"]),
    "security audit": ("", ["to know"]),
    "hooks list": ("--all", ["archive-of-all", "agent:start agent:end", *PACKAGES, "Measures how long models"]),
    "hooks info": (HOOK, ["agent:start", *PACKAGES]),
    "hooks stats": ("", ["calls", "p95"]),
    "hooks check": ("", PACKAGES),
    "hooks outdated": ("", ["everything that is installed"]),
    "hooks search": ("", ["prompt-guardrail", "before any model sees them"]),
    "hooks index list": ("", ["ours"]),
    "hooks dead-letters list": ("", ["there are no dead letters"]),
    "skills list": ("", ["there are no skills"]),
    "skills search": ("", ["no index has any skill"]),
    "events list": ("", ["gateway:startup", "can be changed"]),
    "service status": ("", ["service"]),
    "platform list": ("", ["telegram", "down", "connection refused"]),
    "approvals list": ("", ["nothing waits"]),
    "pairing list": ("", ["no pairing requests"]),
    "people list": ("", ["slack:U0123456789ABCDEFGHIJ", "operator"]),
    "people show": ("terminal:owner", ["terminal:owner"]),
    "keys list": ("", [PROGRAM[:40], PROGRAM[-5:], "operator"]),
    "jobs list": ("", [JOB[:20], JOB[-5:], "0 9 * * 1-5", "terminal:owner"]),
    "jobs show": (JOB, ["Sum up", "at most 10m"]),
    "jobs history": (JOB, ["none of its times has come"]),
    "cron list": ("", [JOB[:20], JOB[-5:]]),
    "cron show": (JOB, ["Sum up"]),
    "cron history": (JOB, ["none of its times has come"]),
    "activity list": ("", ["keys.create", "as operator", "done"]),
    "usage": ("", ["each_person terminal:owner", "1000000"]),
    "sessions list": ("", ["agent:main:terminal:dm:main"]),
    "sessions search": ("gateway", ["who may know that?"]),
    "config show": ("--origin", ["access.groups.ops.people", "telegram:200300400500"]),
}
# Those that do something, or print texts, lines and objects as they are.
OTHERS = """
run | chat | open | stop | restart | reload | hooks logs | hooks new | hooks test | hooks fire | hooks enable
hooks disable | hooks reload | hooks reset | hooks trust | hooks deps | hooks install | hooks update | hooks remove
hooks freeze | hooks sync | hooks index add | hooks index remove | hooks publish | hooks dead-letters show
hooks dead-letters retry | hooks dead-letters prune | skills install | skills update | skills remove
skills publish | events tail | events replay | setup model | setup service | setup message | setup telegram
setup discord | setup slack | service install | service uninstall | service logs | platform pause | platform resume
platform restart | platform probe | approvals yes | approvals no | approvals say | pairing approve | pairing invite
pairing uninvite | pairing revoke | people export | people forget | completions | hooks schema | keys new
keys revoke | activity export | send | sessions show | sessions export | sessions stop | sessions delete | upgrade
uninstall | hooks dev | sessions rebuild | migrate | backup create | backup verify | backup restore | demo | logs
jobs add | jobs import | jobs pause | jobs resume | jobs run | jobs remove
cron add | cron import | cron pause | cron resume | cron run | cron remove
connect | disconnect | hooks ask
config check | config path | config schema | config set | config unset | config undo | config edit | hooks forget
"""


def is_copied(line: str, width: int) -> bool:
    """A command, and a word that is as long as a line, stay whole."""
    return line.lstrip().startswith("hermes-gateway ") or max(map(len, line.split())) >= width - 20


def list_commands(parser: argparse.ArgumentParser, *words: str) -> Iterator[str]:
    """Each command with its verbs, as it is typed."""
    verbs = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in verbs:
        for verb, below in action.choices.items():
            yield from list_commands(below, *words, verb)
    if not verbs:
        yield " ".join(words)


def test_no_command_is_forgotten_here() -> None:
    modules = {name: importlib.import_module(module) for name, (module, _) in COMMANDS.items()}
    found = {one for name in modules for one in list_commands(build_command_parser(name, modules[name]), name)}
    assert found == {*SHOWN, *re.split(r" \| |\n", OTHERS.strip())}


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("words", SHOWN)
def test_nothing_of_a_screen_is_cut(served: GatewayProcess, words: str, width: int) -> None:
    more, wanted = SHOWN[words]
    text = STYLE.sub("", show_on_terminal(served, *words.split(), *more.split(), width=width))
    lines = text.replace("\r", "").splitlines()
    assert [line for line in lines if len(line) > width and not is_copied(line, width)] == []
    assert [sign for sign in ("…", "\x1b", "\\x1b") if sign in text] == []
    shown = " ".join(map(str.strip, lines))
    assert [one for one in wanted if one not in shown] == [], shown
