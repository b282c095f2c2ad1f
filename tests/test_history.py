"""Commits say what they change and why; words come into the lists in the open. Each rule is shown a sin first."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.test_names import OTHERS, VERBS, listed

ROOT = Path(__file__).parent.parent
LISTS = ("docs/glossary.md", "docs/contributing/names.md")  # the first had the words until the second did
SUBJECT = re.compile(r"[a-z0-9_./ -]+(, [a-z0-9_./ -]+)*: \S.*")
MOST_CHARACTERS = 72
OLD_HOMES = "tests/homes/home-"  # only the version that wrote one can make it anew
PACKED = (".whl", ".zip", ".gz", ".xz", ".bz2", ".tar", ".pyc", ".so", ".db", ".log")


@dataclass(frozen=True)
class Commit:
    id: str
    subject: str
    body: str


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


@pytest.fixture(scope="module")
def commits() -> list[Commit]:
    """Those since this file is there, itself included."""
    first = git("log", "--diff-filter=A", "--format=%H", "--", "tests/test_history.py").split()
    if not first or not git("cat-file", "-t", f"{first[-1]}^"):
        pytest.skip("there is no history here, or not so much of it")
    log = git("log", "--no-merges", "--format=%H%x00%s%x00%b%x01", f"{first[-1]}^..HEAD")
    return [Commit(*(part.strip() for part in entry.split("\0"))) for entry in log.split("\1") if entry.strip()]


def faults_of(commit: Commit) -> list[str]:
    faults = []
    if not SUBJECT.fullmatch(commit.subject):
        faults.append("the subject is no `room: what`")
    if len(commit.subject) > MOST_CHARACTERS:
        faults.append(f"the subject has {len(commit.subject)} characters")
    if not commit.body:
        faults.append("the body does not say why")
    return [f"{commit.id[:9]} {commit.subject}: {fault}" for fault in faults]


def unsaid_words(commit: Commit, before: str, after: str) -> list[str]:
    """Words that the list has now and the message does not have."""
    new = {word for section in (VERBS, *OTHERS) for word in listed(after, section)}
    new -= {word for section in (VERBS, *OTHERS) for word in listed(before, section)}
    said = set(re.findall(r"[a-z0-9]+", commit.body.lower()))
    return [f"{commit.id[:9]} adds {word!r} to the lists and does not say why" for word in sorted(new - said)]


@pytest.mark.parametrize(
    ("subject", "body", "fault"),
    [
        ("A reason for a wait", "It was missing.", "room: what"),
        ("lanes: " + "x" * 66, "It was missing.", "73 characters"),
        ("lanes: a reason for a wait", "", "why"),
    ],
)
def test_the_rule_sees_the_sin(subject: str, body: str, fault: str) -> None:
    assert [fault in one for one in faults_of(Commit("0" * 40, subject, body))] == [True]


def test_a_word_that_came_in_silently_is_seen() -> None:
    before, after = "## Nouns\n\n- **all**: lane\n", "## Nouns\n\n- **all**: lane, track,\n  rail\n"
    commit = Commit("0" * 40, "lanes: tracks", "A rail is not a lane.")
    assert unsaid_words(commit, before, after) == ["000000000 adds 'track' to the lists and does not say why"]


def names_of_packed(files: list[str]) -> list[str]:
    """What somebody's tools have made or fetched; who needs it makes it anew."""
    return [name for name in files if name.endswith(PACKED) and not name.startswith(OLD_HOMES)]


def test_a_wheel_that_came_in_silently_is_seen() -> None:
    files = ["x", "anyio-4.16.0-py3-none-any.whl", "gateway/stop.py", "tests/homes/home-0.1.0.tar.xz"]
    assert names_of_packed(files) == ["anyio-4.16.0-py3-none-any.whl"]


@pytest.mark.machine
def test_nothing_that_is_packed_or_made_is_kept() -> None:
    assert names_of_packed(git("ls-files").splitlines()) == []


@pytest.mark.machine
def test_every_commit_says_what_and_why(commits: list[Commit]) -> None:
    assert [fault for commit in commits for fault in faults_of(commit)] == []


@pytest.mark.machine
def test_every_word_that_was_added_to_the_lists_has_its_reason(commits: list[Commit]) -> None:
    touching = git("log", "--format=%H", "--", *LISTS).split()
    faults = []
    for commit in (one for one in commits if one.id in touching):
        before, after = ("".join(git("show", f"{of}:{path}") for path in LISTS) for of in (f"{commit.id}^", commit.id))
        if listed(before, VERBS):  # the commit that brings the list names no words
            faults += unsaid_words(commit, before, after)
    assert faults == []
