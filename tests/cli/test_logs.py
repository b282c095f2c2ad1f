"""`hermes-gateway logs`: the lines that are wanted, across all files, and on as they come."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.cli.logs import parse_moment
from gateway.logs.lines import LogLine, as_json
from gateway.logs.log_files import LineFilter, LogFollower, read_last_lines
from gateway.logs.sinks import FileSink
from gateway.testing import GatewayProcess

NOW = 1_700_000_000.0


def line(message: str, level: str = "info", at: float = NOW, **context: str) -> LogLine:
    return LogLine(at, level, "gateway.x", message, context)


def messages(raw: list[str]) -> list[str]:
    return [json.loads(one)["message"] for one in raw]


def written(path: Path, lines: list[LogLine], size: int = 1_000_000, keep: int = 9) -> Path:
    sink = FileSink(path, size, keep)
    for one in lines:
        sink.write(one)
    sink.close()
    return path


def logs(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given_environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HERMES_HOME": str(home)}
    command = [sys.executable, "-m", "gateway.cli", "logs", *words]
    return subprocess.run(command, env=given_environ, capture_output=True, text=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "hermes-gateway/logs").mkdir(parents=True)
    return tmp_path


def test_the_last_lines_are_shown_the_oldest_first(tmp_path: Path) -> None:
    path = written(tmp_path / "log", [line(str(number)) for number in range(100)])
    assert messages(read_last_lines(path, LineFilter(), 3)) == ["97", "98", "99"]
    assert read_last_lines(path, LineFilter(), 0) == []
    assert len(read_last_lines(path, LineFilter(), 1000)) == 100


def test_lines_come_from_old_files_too(tmp_path: Path) -> None:
    path = written(tmp_path / "log", [line(f"{number:050}") for number in range(30)], size=1000)
    assert (tmp_path / "log.3").exists()
    assert messages(read_last_lines(path, LineFilter(), 25)) == [f"{number:050}" for number in range(5, 30)]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet="abcü\n", max_size=9).map(str), max_size=30), st.integers(1, 40))
def test_any_number_of_lines_is_read_whole(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], most: int
) -> None:
    path = written(tmp_path_factory.mktemp("logs") / "log", [line(text * 4000) for text in texts])
    assert messages(read_last_lines(path, LineFilter(), most)) == [text * 4000 for text in texts][-most:]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LineFilter(level=2), ["warned", "failed"]),
        (LineFilter(hook="timer"), ["hooked"]),
        (LineFilter(session="s1"), ["spoken"]),
        (LineFilter(since=NOW + 5), ["failed"]),
    ],
)
def test_only_what_is_wanted_is_shown(tmp_path: Path, wanted: LineFilter, found: list[str]) -> None:
    lines = [
        line("hooked", hook="timer"),
        line("spoken", session="s1", hook="other"),
        line("warned", "warning"),
        line("failed", "critical", NOW + 9),
    ]
    assert messages(read_last_lines(written(tmp_path / "log", lines), wanted, 100)) == found


def test_a_line_that_nobody_can_read_is_shown_as_it_is(home: Path) -> None:
    path = home / "hermes-gateway/logs/gateway.log"
    path.write_text('{"time": "half\nnot \x1b[31mJSON\n' + as_json(line("good")) + "\n")
    told = logs(home)
    assert told.stdout.splitlines()[:2] == ['{"time": "half', "not \\x1b[31mJSON"]
    assert told.stdout.splitlines()[2].endswith("info     x: good")
    assert logs(home, "--level", "info", "-n1").stdout.endswith("x: good\n")


def test_lines_are_for_people_or_as_they_are_kept(home: Path) -> None:
    written(home / "hermes-gateway/logs/gateway.log", [line("hello", "warning", session="s1")])
    assert logs(home).stdout.endswith("warning  x: hello  session=s1\n")
    assert json.loads(logs(home, "--json").stdout)["session"] == "s1"


def test_without_a_log_it_says_so(home: Path) -> None:
    told = logs(home)
    assert told.returncode == 1
    assert told.stderr.startswith(
        f"hermes-gateway: no log yet: {home}/hermes-gateway/logs/gateway.log\n  the first run"
    )


@pytest.mark.parametrize("words", [["--level", "loud"], ["--since", "yesterday-ish"], ["-n", "many"]])
def test_wrong_words_are_usage_errors(home: Path, words: list[str]) -> None:
    told = logs(home, *words)
    assert (told.returncode, told.stdout) == (2, "")


def test_a_moment_is_a_time_or_how_long_ago() -> None:
    assert parse_moment("1h") == pytest.approx(time.time() - 3600, abs=5)
    assert parse_moment("2026-01-31T12:00+00:00") == 1_769_860_800
    assert parse_moment("2026-01-31") == time.mktime((2026, 1, 31, 0, 0, 0, 0, 0, -1))


class TestFollowing:
    """Nothing that is written is missed, and nothing is shown twice."""

    def test_it_starts_at_the_end_and_goes_on(self, tmp_path: Path) -> None:
        path = written(tmp_path / "log", [line("old")])
        with LogFollower(path) as follower:
            assert list(follower.read()) == []
            written(path, [line("new"), line("newer")])
            assert messages(list(follower.read())) == ["new", "newer"]
            assert list(follower.read()) == []

    def test_what_it_begins_with_ends_where_it_goes_on(self, tmp_path: Path) -> None:
        path = written(tmp_path / "log", [line("before")])
        with LogFollower(path) as follower:
            written(path, [line("between")])
            assert messages(read_last_lines(path, LineFilter(), 9, follower.begin)) == ["before"]
            assert messages(list(follower.read())) == ["between"]

    def test_half_a_line_is_waited_for(self, tmp_path: Path) -> None:
        path = written(tmp_path / "log", [])
        path.touch()
        whole = as_json(line("whole"))
        with LogFollower(path) as follower, path.open("a") as file:
            file.write(whole[:20])
            file.flush()
            assert list(follower.read()) == []
            file.write(whole[20:] + "\n")
            file.flush()
            assert messages(list(follower.read())) == ["whole"]

    def test_it_waits_for_a_file_that_is_not_there_yet(self, tmp_path: Path) -> None:
        with LogFollower(tmp_path / "log") as follower:
            assert list(follower.read()) == []
            written(tmp_path / "log", [line("first")])
            assert messages(list(follower.read())) == ["first"]

    def test_it_follows_into_new_files_however_many_there_were(self, tmp_path: Path) -> None:
        sink = FileSink(tmp_path / "log", size=1000, keep=9)
        sink.write(line("old"))
        seen = []
        with LogFollower(tmp_path / "log") as follower:
            for number in range(60):
                sink.write(line(f"{number:050}"))
                if number % 17 == 0:
                    seen += messages(list(follower.read()))
            seen += messages(list(follower.read()))
        sink.close()
        assert seen == [f"{number:050}" for number in range(60)]

    def test_a_person_sees_lines_as_they_come(self, home: Path) -> None:
        path = home / "hermes-gateway/logs/gateway.log"
        written(path, [line("before")])
        command = [sys.executable, "-m", "gateway.cli", "--home", str(home), "logs", "-f", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            shown: Iterator[str] = iter(program.stdout)  # type: ignore[arg-type]
            assert "before" in next(shown)
            path.rename(path.with_name("gateway.log.1"))
            written(path, [line("after")])
            assert "after" in next(shown)
            program.terminate()


CLUMSY = {
    "HOOK.yaml": "intercepts: [agent:start]\n",
    "handler.py": "def handle(event_type, context):\n    raise KeyError('x')\n",
}
INSIDE = {
    "HOOK.yaml": "intercepts: [agent:start]\nisolation: none\n",
    "handler.py": "import logging\n\n\ndef handle(event_type, context):\n    logging.warning('seen')\n",
}
SETTINGS = """
platforms: {telegram: {base_url: 'http://127.0.0.1:9'}}
hooks: {inside: {isolation: none}}
"""


def test_the_lines_of_a_gateway_say_of_which_hook_session_and_network_they_are(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path) as gateway:
        gateway.script(settings=SETTINGS)
        gateway.add_hook("clumsy", CLUMSY)
        gateway.add_hook("inside", INSIDE)
        gateway.start(environ={"TELEGRAM_BOT_TOKEN": "1234567890:test"})
        for session in ("one", "two"):
            assert gateway.say("hello", session=session)["status"] == "failed"

        def shown(*words: str) -> list[dict[str, str]]:
            lines = gateway.cli("logs", "--json", "-n", "1000", *words).stdout.splitlines()
            return [json.loads(one) for one in lines]

        gateway.until(lambda: any(one.get("platform") == "telegram" for one in shown()))
        of_hook, of_session = shown("--hook", "clumsy"), shown("--session", "agent:main:terminal:dm:one")
        assert {one["message"] for one in shown("--hook", "inside")} == {"seen"}
        assert shown("--hook", "other") == []
    assert any("clumsy failed at agent:start" in one["message"] for one in of_hook)
    assert any("the turn of agent" in one["message"] for one in of_session)
    assert len({one["turn"] for one in of_session}) == 1


def test_a_hook_and_a_plugin_of_one_name_are_told_apart(tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "home")
    gateway.home.log.parent.mkdir(parents=True)
    written(gateway.home.log, [line("of the hook", hook="twin"), line("of the plugin", hook="plugin:twin")])
    (gateway.home.plugins / "twin").mkdir(parents=True)

    def shown(name: str) -> list[bool]:
        said = gateway.cli("logs", "--hook", name).stdout
        return [text in said for text in ("of the hook", "of the plugin")]

    assert shown("twin") == shown("plugin:twin") == [False, True]
    (gateway.home.hooks / "twin").mkdir(parents=True)
    assert (shown("twin"), shown("plugin:twin")) == ([True, False], [False, True])
