"""The surface of 0.1 for users and scripts still exists, unchanged, whatever becomes of the code within.

`tests/surface.json` is what there was, a fact a line, and `python tests/surface.py` prints what there is. Something new
is welcome; what is gone or has changed is named here, unless `EXCUSED` says why it may go.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.outside.code import imports
from tests.outside.live import live
from tests.outside.shapes import Facts
from tests.surface import LIVE, SECTIONS, STILL, known

# Where, which facts (`*` is anything), and why they may be gone or another.
EXCUSED: Mapping[tuple[str, str], str] = {
    **{
        ("imports", f"from gateway.hooks{name}"): "it had moved before 0.1.0, which warned of its new place"
        for name in (
            *(".wires.http import *", ".wires.server import *", ".wires.telling import interceptor"),
            *(" import CAUSE", " import Cause", " import Health", " import Hook", " import Pause"),
            *(" import Question", " import Scope", " import caused_by"),
        )
    },
    ("records", "Kept*"): "what all kinds of record share; there is no record of that kind",
    ("home", "journal: gw.ev.session.end"): "a turn's events stand with its conversation; what 0.1 left is delivered",
    ("imports", "from gateway.testing import *.until(patience)"): "a slow machine is waited for longer; no other is",
    ("command line", "hooks deps NAME"): "one is taken as before; with --all none is wanted",
    ("command line", "hooks new NAME"): "one is taken as before; with --skill none is wanted",
    ("configuration", "access.tools.user"): "users search the web, too, where a service is named",
    ("slash commands", "/pairing, usage"): "it takes more words than it did, and those still",
    (
        "events",
        "webhook:*.query",
    ): "nobody ever fired it; an address with a query is refused: secrets would stand in it",
}


def is_excused(section: str, fact: str) -> bool:
    return any(section == where and fnmatchcase(fact, which) for where, which in EXCUSED)


def lost(section: str, before: Facts, now: Facts) -> Iterator[str]:
    """What is not as it was, in words."""
    for fact, was in before.items():
        if not is_excused(section, fact) and now.get(fact) != was:
            became = f"was {was!r}, is {now[fact]!r}" if fact in now else f"is gone; it was {was!r}"
            yield f"{section}: `{fact}` {became}"


def holds(section: str, now: Facts) -> None:
    missing = [*lost(section, known()[section], now)]
    assert not missing, "\n".join(["users know of 0.1:", *missing])


@pytest.mark.parametrize("section", STILL)
def test_what_can_be_asked_without_a_gateway_is_as_it_was(section: str) -> None:
    holds(section, STILL[section]())


def test_what_is_imported_by_users_can_still_be_imported() -> None:
    holds("imports", imports(known()["imports"]))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Facts]:
    """What a gateway that runs tells."""
    return live(Path(tmp_path_factory.mktemp("surface")))


@pytest.mark.process
@pytest.mark.timeout(120)
@pytest.mark.parametrize("section", LIVE)
def test_what_a_gateway_that_runs_tells_is_as_it_was(section: str, told: dict[str, Facts]) -> None:
    holds(section, told[section])


@pytest.mark.process
@pytest.mark.timeout(120)
def test_every_command_that_prints_json_is_asked(told: dict[str, Facts]) -> None:
    print_json = {fact for fact in STILL["command line"]() if fact.endswith(" --json")}
    assert {fact for fact in print_json if fact not in told["json"]} == set()


def test_the_list_is_whole_and_no_verb_of_it_passes_a_parameter_over() -> None:
    listed = known()
    assert set(listed) == set(SECTIONS)
    assert all(listed.values())
    assert [fact for fact, said in listed["control socket"].items() if said == "counts for nothing"] == []
    assert set(listed["manifest"].values()) == {"taken"}


def test_what_is_gone_or_changed_is_named_and_what_is_new_is_welcome() -> None:
    before = {"hooks list --json": "told", "logs --lines": "N", "status": "command"}
    now = {"logs --lines": "COUNT", "status": "command", "weather": "command"}
    assert list(lost("command line", before, now)) == [
        "command line: `hooks list --json` is gone; it was 'told'",
        "command line: `logs --lines` was 'N', is 'COUNT'",
    ]


def test_only_what_was_there_is_excused() -> None:
    for where, which in EXCUSED:
        assert any(fnmatchcase(fact, which) for fact in known()[where]), which
