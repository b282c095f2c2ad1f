"""The frame of the command line: which command is meant, what a mistake says, and which code the shell gets."""

import argparse
import importlib
import importlib.metadata
import json
import os
import signal
import socketserver
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from gateway import __version__
from gateway.cli import build_command_parser, main, render_overview
from gateway.cli.output import format_duration
from gateway.cli.program import COMMANDS
from gateway.config.home import Home

PYTHON = "import sys; from gateway.cli import main; sys.exit(main())"


def ask(*words: str, home: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": str(home or "/nonexistent"), **environ}
    return subprocess.run([sys.executable, "-c", PYTHON, *words], env=given, capture_output=True, text=True)


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """`main` sets the umask of its process, which here is that of all tests."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_command(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert shown == render_overview() + "\n"
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_a_module_that_explains_itself(command: str) -> None:
    module = importlib.import_module(COMMANDS[command][0])
    parser = build_command_parser(command, module)
    assert callable(module.run)
    assert parser.format_help().startswith(f"usage: hermes-gateway {command} ")
    assert all(len(line) <= 100 for line in parser.format_help().splitlines())
    assert_everything_is_explained(parser)


def assert_everything_is_explained(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                assert_everything_is_explained(below)
        else:
            assert action.help, f"{parser.prog}: {action.option_strings or action.dest} has no help"


def test_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    """Also before it is built: what is installed here may be of a version before."""
    assert main(["--version"]) == 0
    built = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["version"]
    assert __version__ == built
    assert capsys.readouterr().out == f"hermes-gateway {importlib.metadata.version('hermes-gateway')}\n"


def test_a_word_before_the_command_that_fingers_know_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["gateway", "chat", "--help"])
    assert left.value.code == 0
    assert "usage: hermes-gateway chat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chta"], "unknown command `chta`; did you mean `chat`?"),
        (["xyzzy\x1b[31m"], "unknown command `xyzzy\\x1b[31m`; there is: "),
        (["chat", "--mesage", "x"], "chat: unrecognized arguments: --mesage x; did you mean `--message`?"),
        (["hooks", "install", "x", "--sure"], "hooks install: unrecognized arguments: --sure"),
        (["--home"], "argument --home: expected one argument"),
        *(
            ([group], f"    {verb} ")
            for group, verb in (
                *(("hooks", "install"), ("people", "forget"), ("pairing", "approve"), ("config", "show")),
                *(("platform", "probe"), ("security", "audit"), ("backup", "restore")),
            )
        ),
    ],
)
def test_a_wrong_word_is_a_usage_error_with_a_guess(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "\x1b" not in captured.err


def test_an_error_says_what_where_and_what_to_do(tmp_path: Path) -> None:
    told = ask("chat", "-m", "hello", home=tmp_path)
    assert told.returncode == 3
    assert told.stdout == ""
    first, second = told.stderr.splitlines()
    assert first.startswith("hermes-gateway: no gateway is running for this home: ")
    assert str(Home(tmp_path / ".hermes").socket) in first
    assert second == "  start it with: hermes-gateway run"


class OlderGateway(socketserver.StreamRequestHandler):
    """A gateway of an older version, with fewer fields."""

    facts: ClassVar[dict[str, object]] = {"version": "0.0.9"}

    def handle(self) -> None:
        for line in self.rfile:
            answer = {"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": self.facts}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class OlderBuild(OlderGateway):
    """Was started before the program got its files of today."""

    facts: ClassVar[dict[str, object]] = {"version": __version__, "since": 1.0}


@pytest.mark.parametrize(
    ("running", "named"),
    [(OlderGateway, "is 0.0.9, and this program is "), (OlderBuild, "is another build: this program was changed")],
)
def test_a_gateway_of_another_program_is_named_as_what_is_wrong(
    tmp_path: Path, running: type[OlderGateway], named: str
) -> None:
    socket = Home(tmp_path / ".hermes").socket
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with socketserver.ThreadingUnixStreamServer(str(socket), running) as older:
        threading.Thread(target=older.serve_forever, daemon=True).start()
        told = ask("status", home=tmp_path)
        older.shutdown()
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr.startswith(f"hermes-gateway: the gateway that runs {named}")


def test_a_relative_home_in_the_environment_is_refused(tmp_path: Path) -> None:
    told = ask("chat", "-m", "hello", home=tmp_path, HERMES_HOME="here")
    assert told.returncode == 78
    assert "HERMES_HOME is not an absolute path" in told.stderr


def test_a_home_that_has_no_name_in_text_is_refused(tmp_path: Path) -> None:
    told = ask("status", home=tmp_path, HERMES_HOME=os.fsdecode(bytes(tmp_path) + b"/caf\xe9"))
    assert told.returncode == 78
    assert f"the path of the home is not UTF-8: {tmp_path}/caf\\xe9\n" in told.stderr
    assert "HERMES_HOME or --home DIR" in told.stderr


@pytest.mark.parametrize("words", [["hooks", "new", "x"], ["run"]], ids=" ".join)
def test_a_full_disk_is_named(tmp_path: Path, words: list[str]) -> None:
    script = 'mount -t tmpfs -o size=64k tmpfs "$0" && mkdir -m 700 "$0/home" "$0/home/hermes-gateway" || exit 9\n'
    script += 'cat /dev/zero > "$0/all" 2> "$0/../why"\nexec "$@"'
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["unshare", "-Urm", "sh", "-c", script, str(disk), sys.executable, "-c", PYTHON, *words]
    given = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HERMES_HOME": f"{disk}/home"}
    told = subprocess.run(command, env=given, capture_output=True, text=True)
    if told.returncode in (9, 127):
        pytest.skip(f"no disk can be mounted here: {told.stderr}")
    assert told.returncode == 1
    assert f"No space left on device: {disk}/home" in told.stderr
    assert "make room there" in told.stderr
    assert "Traceback" not in told.stderr


def test_nothing_is_written_by_asking(tmp_path: Path) -> None:
    ask("chat", "-m", "hello", home=tmp_path)
    ask("--help", home=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_early_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        told = subprocess.run([sys.executable, "-c", PYTHON, "--help"], stdout=gone, stderr=subprocess.PIPE, text=True)
    assert told.stderr == ""
    assert told.returncode == 128 + signal.SIGPIPE


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; had = {*sys.modules}; from gateway.cli import main; main(['--help']); "
    code += "print(*{*sys.modules} - had, file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {
        "yaml",
        "msgspec",
        "anyio",
        "asyncio",
        "logging",
        "json",
        "socket",
        "dataclasses",
        "inspect",
        "hashlib",
        "shutil",
    }
    assert heavy & set(told.stderr.split()) == set()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0123, "12 ms"), (1, "1 s"), (59.9, "1 min"), (200, "3 min 20 s"), (3600, "1 h"), (187_000, "2 d 3 h")],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
