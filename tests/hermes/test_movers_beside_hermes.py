"""The same folders of those who come from Hermes in its own gateway: what they see and say there, and here."""

import json
from pathlib import Path

import pytest

from tests.hermes.test_hooks_beside_hermes import SIDE, Side
from tests.hermes.test_movers import SAID, Moved, furnish, move, seen_in
from tests.hermes.test_plugins_beside_hermes import environ_of, hermes, run

pytestmark = [pytest.mark.process, pytest.mark.machine, pytest.mark.timeout(420), pytest.mark.thorough]

__all__ = ["hermes"]  # the fixtures


@pytest.fixture(scope="module")
def theirs(hermes: Path, tmp_path_factory: pytest.TempPathFactory) -> Side:
    home = tmp_path_factory.mktemp("hermes")
    furnish(home)
    done = run([str(hermes), str(SIDE), *SAID], env=environ_of(home, GATEWAY_ALLOW_ALL_USERS="1"), cwd=home)
    answers = [line.removeprefix("answers ") for line in done.stdout.splitlines() if line.startswith("answers ")]
    assert answers, done.stderr[-3000:]
    return Side(seen_in(home), json.loads(answers[0]))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Moved:
    return move(tmp_path_factory.mktemp("h") / "home")


@pytest.mark.parametrize(
    "text",
    ["hello", "use a tool", "say: paid with 1234-5678", "/takeover at noon", "/subs new help nothing"],
)
def test_the_person_reads_the_same(theirs: Side, ours: Moved, text: str) -> None:
    assert ours.answers[SAID.index(text)] == theirs.answers[SAID.index(text)]


def test_the_same_picture_is_sent(theirs: Side, ours: Moved) -> None:
    place = SAID.index("say: happy days")
    assert [side.answers[place].rpartition("/")[2].rstrip("]") for side in (ours, theirs)] == ["happy.png"] * 2


@pytest.mark.parametrize("hook", ["first-row", "stale-watch", "reply-ledger"])
def test_a_hook_notes_the_same(theirs: Side, ours: Moved, hook: str) -> None:
    for their, our in zip(theirs.seen[hook], ours.seen[hook], strict=False):
        assert [str(part).partition("/tmp")[0] for part in our] == [str(part).partition("/tmp")[0] for part in their]
    assert theirs.seen[hook]


def test_a_guard_hears_the_same_of_each_call(theirs: Side, ours: Moved) -> None:
    assert sorted(map(str, ours.seen["vault-guard"])) == sorted(map(str, theirs.seen["vault-guard"]))


def test_a_step_shows_the_same_results(theirs: Side, ours: Moved) -> None:
    """Hermes tells of them again at each later call of the model, and has other words for a file that is not there."""
    ours_, theirs_ = ([line[:2] for line in side.seen["step-inspector"]] for side in (ours, theirs))
    assert ours_ == theirs_[: len(ours_)]


def test_an_event_has_the_same_keys(theirs: Side, ours: Moved) -> None:
    shapes = [{line[0]: line[2:] for line in side.seen["sees-all"]} for side in (theirs, ours)]
    assert {name: shapes[1][name] for name in shapes[0]} == shapes[0]


def test_what_lives_in_hermess_process_alone_acts_there_alone(theirs: Side, ours: Moved) -> None:
    place = SAID.index("spam: say: seen")
    assert (theirs.answers[place], ours.answers[place]) == ("(dropped)", "seen")
    assert ours.listed["event-filter"]["state"] == "without effect"
