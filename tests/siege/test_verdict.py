"""The judges of a siege: each fault that it looks for is found when it is there."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import Shown
from tests.siege.hooks import Notes, find_noted
from tests.siege.model import WRITTEN, Model, asked_for, unanswered
from tests.siege.people import Crowd, Person
from tests.siege.processes import end, left_behind
from tests.siege.siege import count_unanswered
from tests.siege.verdict import Doubt, Verdict, judge

ONE, TWO, TOOL, FORBIDDEN = "n000001", "n000002", "n000007", "n000077"


class Aftermath:
    """A siege that is over, of which a test writes what came of it."""

    def __init__(self, folder: Path) -> None:
        self.crowd = Crowd(folder / "socket", seed=1)
        gateway = GatewayProcess(folder / "home")
        self.tool = find_noted(gateway) / WRITTEN
        self.notes = Notes([gateway], folder / "notes", "1200.0000000")
        self.model = Model()
        self.cuts: list[float] = []
        self.elections: list[tuple[float, float]] = []

    @property
    def telegram(self) -> Person:
        return self.crowd.people[0]

    @property
    def discord(self) -> Person:
        return next(person for person in self.crowd.people if person.wire.network == "discord")

    def shows(self, person: Person, *texts: str) -> None:
        """Each a second after the one before it."""
        for text in texts:
            at = len(person.wire.shown)
            person.wire.shown.append(Shown(str(at), person.name, text))
            self.crowd.seen[person.wire.network, str(at)] = float(at)

    def writes(self, name: str, *lines: str) -> None:
        file = self.tool if name == WRITTEN else self.notes.folder / name
        file.write_text("".join(f"{line}\n" for line in lines))

    def verdict(self) -> Verdict:
        return judge(self.crowd, self.notes, self.model, Doubt(self.cuts, 2.0, self.elections))

    def faults(self) -> list[str]:
        return [kind for kind, found in self.verdict().lists.items() if found]


@pytest.fixture
def after(tmp_path: Path) -> Aftermath:
    return Aftermath(tmp_path)


def test_what_is_well_has_no_faults(after: Aftermath) -> None:
    after.telegram.said += [ONE, TWO]
    after.shows(after.telegram, f"heard {ONE}", f"heard {TWO}")
    assert after.faults() == []


def test_an_answer_that_is_missing_wrong_early_or_there_twice_is_found(after: Aftermath) -> None:
    after.telegram.said += [ONE, TWO]
    after.shows(after.telegram, f"heard {TWO}")
    assert after.faults() == ["lost"]
    after.shows(after.telegram, f"heard {ONE}")
    assert after.faults() == ["order"]
    after.shows(after.telegram, f"heard {ONE}")
    assert after.faults() == ["twice", "order"]


def test_an_answer_counts_that_comes_when_nobody_writes_any_more(after: Aftermath) -> None:
    after.telegram.said += [ONE]
    after.telegram.wire.shown.append(Shown("late", after.telegram.name, f"heard {ONE}"))
    assert count_unanswered(after.crowd) == 0
    assert after.verdict().lost == []


def test_an_apology_is_no_answer(after: Aftermath) -> None:
    after.telegram.said += [ONE]
    after.shows(after.telegram, "Sorry: I tried to answer this several times")
    assert after.faults() == ["given up"]


def test_a_kill_excuses_what_telegram_shows_twice_and_no_other_network(after: Aftermath) -> None:
    after.telegram.said += [ONE]
    after.shows(after.telegram, f"heard {ONE}", f"heard {ONE}")
    after.cuts = [0.5]
    assert (after.faults(), after.verdict().in_doubt) == ([], 1)
    after.discord.said += [TWO]
    after.shows(after.discord, f"heard {TWO}", f"heard {TWO}")
    assert after.faults() == ["twice"]


def test_what_was_shown_while_no_server_led_is_in_doubt_until_one_has_led_for_a_while(after: Aftermath) -> None:
    after.telegram.said += [ONE]
    after.shows(after.telegram, *([f"heard {ONE}"] * 2))
    after.crowd.seen["telegram", "1"] = 10.0
    after.cuts = [7.0]
    assert (after.faults(), after.verdict().in_doubt) == (["twice"], 0)
    after.elections = [(-1.0, 4.9)]
    assert (after.faults(), after.verdict().in_doubt) == (["twice"], 0)
    after.elections = [(-1.0, 5.1)]
    assert (after.faults(), after.verdict().in_doubt) == ([], 1)


def test_a_question_is_no_answer_and_what_is_said_next_is_its_answer(after: Aftermath) -> None:
    after.telegram.said += [ONE, TWO]
    after.shows(after.telegram, f"It failed. May I run it once: echo {ONE}", f"heard {ONE}")
    assert after.faults() == []
    assert after.verdict().strange == {"answered a question"}
    after.telegram.said += [TOOL]
    assert after.faults() == ["lost"]


def test_at_the_terminal_too(after: Aftermath) -> None:
    after.crowd.typed += [ONE, TWO]
    after.crowd.typists[0].answers[ONE] = {"status": "failed", "reply": "Sorry"}
    assert after.faults() == ["lost", "given up"]


def test_what_a_durable_hook_was_not_told_is_found(after: Aftermath) -> None:
    after.crowd.answered.add(ONE)
    assert [one.partition(": ")[2] for one in after.verdict().untold] == [
        *("agent:end", "agent:end of *", "message:received of *", "message:sent of *")
    ]
    after.writes("ends", f"agent:end {ONE}")
    after.writes("everything", f"agent:end {ONE}", f"message:received {ONE}", f"message:sent {ONE}")
    assert after.faults() == []
    after.model.tools.add(TOOL)
    assert after.verdict().untold == [f"{TOOL}: tool:after of *"]
    assert after.verdict().skipped == ["the tool never ran, so nothing was guarded"]


def test_a_guard_that_was_passed_over_or_not_heeded_and_a_tool_that_ran_twice_are_found(after: Aftermath) -> None:
    after.writes(WRITTEN, TOOL)
    assert after.faults() == ["skipped"]
    after.writes("guard", TOOL, FORBIDDEN)
    assert after.faults() == []
    after.writes(WRITTEN, TOOL, TOOL)
    assert after.faults() == ["twice"]
    after.writes(WRITTEN, FORBIDDEN)
    assert after.faults() == ["skipped"]


def test_a_process_that_was_left_behind_is_found_by_its_home_or_by_its_word(tmp_path: Path) -> None:
    home, sleeps = tmp_path / "home", f"1200.{os.getpid():07}"
    by_home = subprocess.Popen(["sleep", "1200"], env={"HERMES_HOME": str(home)})
    by_word = subprocess.Popen(["sleep", sleeps], env={})
    try:
        found = left_behind(home, sleeps)
    finally:
        for process in (by_home, by_word):
            end(process.pid)
            process.wait()
    assert set(found) == {by_home.pid, by_word.pid}
    assert left_behind(home, sleeps) == {}


def test_the_model_answers_what_was_said_since_it_last_did_and_calls_its_tool_once() -> None:
    said: list[dict[str, Any]] = [
        {"role": "user", "content": f"please {ONE}"},
        {"role": "assistant", "content": f"heard {ONE}"},
        {"role": "user", "content": [{"type": "text", "text": f"please {TWO}\nplease {TOOL}"}]},
    ]
    assert unanswered(said) == ([TWO, TOOL], "")
    call: dict[str, Any] = {"role": "assistant", "tool_calls": [{"function": {"arguments": f"echo {TOOL}"}}]}
    after = [*said, call, {"role": "tool", "content": TOOL}]
    assert unanswered(after) == ([TWO, TOOL], f'"{TOOL}"')
    assert asked_for(after) == {TOOL}
