"""Folders in the habits of people who come from Hermes, in one home: each does here what it did there.

What each sees and says beside Hermes itself is in test_movers_beside_hermes.py.
"""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_newcomers import states

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]

MOVERS = Path(__file__).with_name("movers")
HOOKS = sorted(path.name for path in (MOVERS / "hooks").iterdir())
PLUGINS = sorted(path.name for path in (MOVERS / "plugins").iterdir())
CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("far_shell", {"command": "uptime"}),
    ("read_file", {"path": "vault/key"}),
    ("terminal", {"command": "curl http://127.0.0.1:9/"}),
    ("terminal", {"command": "printf out"}),
    ("read_file", {"path": "nothing.txt"}),
)
SAID = (
    *("hello", "use a tool", "say: paid with 1234-5678", "say: happy days", "spam: say: seen"),
    *("/takeover at noon", "/subs new help nothing"),
)
WORDS = tuple(text.partition("say: ")[2] for text in SAID if "say: " in text)


class Moved(NamedTuple):
    """The folders' records, the person's answers, and the findings of the gateway and doctor about each."""

    seen: dict[str, list[Any]]
    answers: list[str]
    listed: dict[str, dict[str, Any]]
    doctor: dict[str, dict[str, Any]]

    def find(self, hook: str, *beginning: Any) -> list[Any]:
        return next(line for line in self.seen[hook] if line[: len(beginning)] == [*beginning])


def furnish(home: Path) -> None:
    for kind in ("hooks", "plugins"):
        shutil.copytree(MOVERS / kind, home / kind)
    (home / "calls.json").write_text(json.dumps(CALLS))


def seen_in(home: Path) -> dict[str, list[Any]]:
    files = sorted((home / "seen").glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in files}


def make_script() -> list[dict[str, Any]]:
    ours = {"terminal": "shell"}
    calls = [{"name": ours.get(name, name), "args": args} for name, args in CALLS]
    used = {"user": "use a tool", "answers": [{"tool_calls": calls}, {"text": "y" * 1200}]}
    plain = {"user": "hello", "answers": [{"text": "y" * 1200}]}
    return [used, plain, *({"user": f"say: {words}", "answers": [{"text": words}]} for words in WORDS)]


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    return move(tmp_path_factory.mktemp("h") / "home")


def move(home: Path) -> Moved:
    with GatewayProcess(home) as gateway:
        gateway.script(*make_script(), settings="tools: {shell: allow}\n")
        furnish(gateway.home.root)
        gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": PLUGINS}}))
        gateway.start()
        waited = {"loaded", "without effect"}
        gateway.until(lambda: {states(gateway).get(name) for name in (*HOOKS, *PLUGINS)} <= waited, 60)
        answers = [gateway.say(text)["reply"] for text in SAID]
        gateway.until(lambda: len(seen_in(gateway.home.root).get("stale-watch", ())) == 5)
        listed = {one["name"]: one for one in gateway.call("hooks.list")["hooks"]}
        rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)["hermes"]
        doctor = {row["name"]: row for row in rows if row["what"] in ("hook", "plugin")}
        gateway.stop()
        return Moved(seen_in(gateway.home.root), answers, listed, doctor)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("say: paid with 1234-5678", "paid with [card]"),
        ("/takeover at noon", "taken over: 1 at noon"),
        ("/subs new help nothing", "/new /help no nothing"),
    ],
)
def test_the_person_reads_what_plugins_make_of_it(moved: Moved, text: str, answer: str) -> None:
    assert moved.answers[SAID.index(text)] == answer


def test_a_picture_of_a_plugins_folder_goes_out(moved: Moved) -> None:
    assert moved.answers[SAID.index("say: happy days")].startswith("happy days\n[file happy.png: ")


def test_a_hook_keeps_the_reply_as_plugins_have_left_it(moved: Moved) -> None:
    assert moved.find("reply-ledger", "say: paid with 1234-5678")[1] == "paid with [card]"


@pytest.mark.parametrize(
    ("name", "shown", "error"),
    [
        ("far_shell", "ok", None),
        ("read_file", ["error"], "vault/key lies in the vault"),
        ("terminal", ["error"], "no curl here"),
    ],
)
def test_a_step_shows_a_blocked_call_as_hermes_does(moved: Moved, name: str, shown: Any, error: str | None) -> None:
    assert moved.find("step-inspector", name)[1:3] == [shown, error]


def test_a_guard_stays_that_was_registered_before_its_plugin_failed(moved: Moved) -> None:
    assert ["terminal", "blocked", "plugin_block", True] in moved.seen["vault-guard"]
    assert ["terminal", "ok", None, False] in moved.seen["vault-guard"]
    assert "what it registered before that is in force" in moved.listed["half-done"]["reason"]


def test_a_conversation_stands_in_the_files_when_a_hook_hears_of_it(moved: Moved) -> None:
    assert moved.seen["first-row"] == [["session:start", True, None]]
    assert moved.seen["stale-watch"] == [[[[True, True, True]]]] * 5


def test_a_hook_with_patterns_hears_the_events_of_hermes(moved: Moved) -> None:
    assert {line[0] for line in moved.seen["sees-all"]} - {"gateway:shutdown"} == {
        *("gateway:startup", "session:start", "agent:start", "agent:step", "agent:end")
    }


@pytest.mark.parametrize(
    ("name", "state", "verdict", "why"),
    [
        ("event-filter", "without effect", "without effect", "it patches gateway.run.GatewayRunner._handle_message"),
        ("note-keeper", "loaded", "degrades", "run_agent.AIAgent.note_keeper is patched"),
        ("slash-list", "loaded", "works", ""),
        ("far-shell", "loaded", "works", ""),
    ],
)
def test_a_label_says_whether_a_folder_does_anything_here(
    moved: Moved, name: str, state: str, verdict: str, why: str
) -> None:
    assert (moved.listed[name]["state"], moved.doctor[name]["verdict"]) == (state, verdict)
    assert why in str(moved.doctor[name]["why"])
