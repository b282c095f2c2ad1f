"""Values from outside the file: the order of the sources, and the form of each."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.environment import expand_references, find_references, read_environment


def values(tmp_path: Path, env_file: str = "", **environ: str) -> dict[str, str]:
    (tmp_path / ".env").write_text(env_file)
    return read_environment(environ, tmp_path / ".env").environ


def findings(path: Path, environ: dict[str, str] | None = None) -> list[str]:
    return [str(found).removeprefix(str(path.parent)) for found in read_environment(environ or {}, path).findings]


def test_the_process_counts_more_than_credentials_and_those_more_than_the_file(tmp_path: Path) -> None:
    directory = tmp_path / "credentials"
    directory.mkdir()
    for name in ("A", "B"):
        (directory / name).write_text(f"credential {name}\n")
    got = values(tmp_path, "A=file\nB=file\nC=file\n", A="process", CREDENTIALS_DIRECTORY=str(directory))
    assert [got[name] for name in "ABC"] == ["process", "credential B", "file"]


def test_what_is_empty_is_not_set(tmp_path: Path) -> None:
    assert values(tmp_path, "A=file\nB=\nC\n", A="") == {"A": "file"}


def test_each_value_knows_where_it_was_set(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# comment\nA=1\n\nB='2'\n")
    (tmp_path / "token").write_text("3")
    outside = read_environment({"D": "4", "CREDENTIALS_DIRECTORY": str(tmp_path)}, tmp_path / ".env")
    assert {name: str(outside.values[name].place) for name in ("A", "B", "TOKEN", "D")} == {
        "A": f"{tmp_path}/.env:2:1",
        "B": f"{tmp_path}/.env:4:1",
        "TOKEN": "the credential token",
        "D": "the variable D",
    }


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=plain", "plain"),
        ("export A=plain", "plain"),
        ("A = spaced ", "spaced"),
        ("A='single # not a comment'", "single # not a comment"),
        ('A="double\\nline"', "double\nline"),
        ("A=value # comment", "value"),
        ("A=a=b", "a=b"),
        ("A=ü", "ü"),
        ("A=${B}-x", "b-x"),
        ("A=${NONE:-other}", "other"),
        ("A=$B{}", "$B{}"),
    ],
)
def test_the_file_is_read_as_hermes_reads_it(tmp_path: Path, line: str, value: str) -> None:
    assert values(tmp_path, f"B=b\n{line}\n")["A"] == value


def test_a_line_that_makes_no_sense_is_warned_about_and_the_others_count(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=1\nnot a line\nB=2\n")
    outside = read_environment({}, tmp_path / ".env")
    assert outside.environ == {"A": "1", "B": "2"}
    assert findings(tmp_path / ".env") == ["/.env:2:1: warning: this line cannot be read; write NAME=value"]


def test_a_file_that_is_missing_is_fine(tmp_path: Path) -> None:
    assert findings(tmp_path / "none") == []


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "env").write_bytes(b"A=\xff")
    assert "cannot be read: it is not UTF-8 text" in findings(tmp_path / "env")[0]
    (tmp_path / "big").write_bytes(b"A=1\n" * 300_000)
    assert "too large" in findings(tmp_path / "big")[0]
    (tmp_path / "directory").mkdir()
    assert "Is a directory" in findings(tmp_path / "directory")[0]


def test_credentials_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    got = findings(tmp_path / "none", {"CREDENTIALS_DIRECTORY": str(tmp_path / "gone")})
    assert "the credentials cannot be read: No such file or directory" in got[0]


def test_what_is_no_credential_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "no-name").write_text("x")
    (tmp_path / "HUGE").write_text("x" * 100_000)
    assert set(values(tmp_path, CREDENTIALS_DIRECTORY=str(tmp_path))) == {"CREDENTIALS_DIRECTORY"}


def test_the_environment_of_the_process_is_not_changed(tmp_path: Path) -> None:
    given_environ = {"A": "1"}
    (tmp_path / ".env").write_text("A=2\nB=3\n")
    read_environment(given_environ, tmp_path / ".env")
    assert given_environ == {"A": "1"}


def test_references_are_named() -> None:
    assert find_references("${A} ${B:-x} $C {D}") == ["A"]


@settings(deadline=None)
@given(st.text(max_size=100))
def test_any_text_can_be_expanded(text: str) -> None:
    assert expand_references(text, {}) == text or "${" in text
