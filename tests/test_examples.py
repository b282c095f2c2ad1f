"""docs/examples.md: all of it is one hook, with an example for each event there is, and each is called."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gateway.events.catalogue import EVENT_SPECS
from gateway.hooks import Deny, End, Retry
from gateway.testing import GatewayProcess

PAGE = Path(__file__).parent.parent / "docs" / "examples.md"
CODE = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
NAMES = frozenset(re.findall(r'"([a-z]+:[a-z*]+)"', "\n".join(re.findall(r"^@on\((.*)\)$", CODE, re.MULTILINE))))
DECIDED = tuple(spec.name for spec in EVENT_SPECS.values() if spec.outcomes or spec.writable)


def test_there_is_one_for_each_event() -> None:
    assert set(EVENT_SPECS) == NAMES


@pytest.mark.process
def test_each_is_called_and_does_what_has_an_effect(tmp_path: Path) -> None:
    told = sorted(NAMES - set(DECIDED))
    manifest = {
        "events": told,
        "intercepts": list(DECIDED),
        "schedule": "0 8 * * *",
        "webhook": {"secret_env": "SECRET", "verify": "token"},
    }
    gateway = GatewayProcess(tmp_path / "home")
    gateway.add_hook("examples", {"HOOK.yaml": json.dumps(manifest), "handler.py": CODE})
    done = gateway.cli("hooks", "test", "examples", "--json")
    calls = {call["event"]: call for call in json.loads(done.stdout)["trials"]}
    assert {name.partition(":")[0] for name in calls} == {name.partition(":")[0] for name in NAMES}
    assert len(calls) >= len(NAMES)
    assert {name: call for name, call in calls.items() if not call["ok"] or call["remarks"]} == {}
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("function", "given", "becomes"),
    [
        ("write_out", {"text": "6x7"}, {"text": "what is 6 * 7"}),
        ("hide_keys", {"text": "it is sk-abcdefgh1"}, {"text": "it is [key]"}),
        ("answer_ping", {"command": "ping"}, {"result": "pong"}),
        ("let_owner_on", {"person": "terminal:owner"}, {"allowed": True}),
        ("rename_skill", {"skill": "weather"}, {"skill": "forecast"}),
        ("shorten", {"result": "x" * 5000}, {"result": "x" * 4000 + " ..."}),
        ("say_so", {"error": {"kind": "down"}}, {"content": "The model is not to be had now; try again later."}),
        ("read_answer", {"response": " Yes\n"}, {"response": "yes"}),
    ],
)
def test_it_changes_what_the_page_says(function: str, given: dict[str, Any], becomes: dict[str, Any]) -> None:
    page = read_page()
    page[function](given)
    assert {name: given[name] for name in becomes} == becomes


@pytest.mark.parametrize(
    ("function", "given", "outcome"),
    [
        ("prepare", {"message_full": "my Password is x"}, Deny),
        ("limit_calls", {"calls": [{}] * 6}, Deny),
        ("no_circles", {"source": "a", "target": "a"}, Deny),
        ("want_words", {"response_full": " ", "interrupted": False}, Retry),
        ("try_again", {"error": {}, "node": "n"}, None),
        ("try_again", {"error": {"kind": "x"}, "node": "n"}, Retry),
        ("leave_out", {"node": "survey"}, End),
    ],
)
def test_it_decides_what_the_page_says(
    function: str, given: dict[str, Any], outcome: type[BaseException] | None
) -> None:
    page = read_page()
    if outcome is None:
        page[function](given)
    else:
        with pytest.raises(outcome):
            page[function](given)


def read_page() -> dict[str, Any]:
    page: dict[str, Any] = {}
    exec(CODE, page)
    return page
