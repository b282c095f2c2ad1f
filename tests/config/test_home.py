"""The place of a gateway: from the environment alone, the same for the daemon and for every command."""

import os
import socket
from pathlib import Path

import pytest

from gateway.config.home import LONGEST_SOCKET, Home, find_home
from gateway.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "chosen", "root"),
    [
        ({"HOME": "/home/ann"}, "", "/home/ann/.hermes"),
        ({"HOME": "/home/ann", "HERMES_HOME": ""}, "", "/home/ann/.hermes"),
        ({"HOME": "/home/ann", "HERMES_HOME": "/srv/bot/"}, "", "/srv/bot"),
        ({"HOME": "/home/ann", "HERMES_HOME": "~/bot"}, "", "/home/ann/bot"),
        ({"HOME": "/home/ann", "HERMES_HOME": "/srv/bot"}, "/srv/other", "/srv/other"),
        ({"HOME": "/home/ann", "HERMES_HOME": "bad"}, "/srv/other", "/srv/other"),
    ],
)
def test_the_home_is_what_is_chosen_else_named_else_the_usual(environ: dict[str, str], chosen: str, root: str) -> None:
    assert str(find_home(environ, chosen).root) == root


def test_a_home_chosen_by_hand_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_home({"HOME": "/x"}, "here").root == tmp_path / "here"


def test_a_relative_home_in_the_environment_is_refused() -> None:
    with pytest.raises(ConfigError, match="not an absolute path"):
        find_home({"HOME": "/x", "HERMES_HOME": "here"})


def test_all_that_we_write_lies_in_our_directory() -> None:
    home = Home(Path("/h"))
    ours = ("config", "journal", "logs", "log", "hook_logs", "hook_state", "files", "backups", "lock", "socket")
    assert all(getattr(home, name).is_relative_to("/h/hermes-gateway") for name in ours)
    shared = ("env", "hooks", "plugins", "skills", "boot_md", "hermes_config")
    assert [str(getattr(home, name)) for name in shared] == [
        f"/h/{name}" for name in (".env", "hooks", "plugins", "skills", "BOOT.md", "config.yaml")
    ]


def test_a_path_in_the_configuration_begins_at_the_home() -> None:
    assert Home(Path("/h")).path("work") == Path("/h/work")
    assert Home(Path("/h")).path("/srv/work") == Path("/srv/work")
    assert Home(Path("/h")).path("~/work") == Path.home() / "work"


def deep(base: Path) -> Path:
    path = base / ("d" * 100) / ("e" * 50)
    path.mkdir(parents=True)
    return path


def test_a_socket_whose_name_is_too_long_goes_to_the_runtime_directory(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    root = deep(tmp_path)
    home = find_home({"HOME": "/x", "HERMES_HOME": str(root), "XDG_RUNTIME_DIR": str(runtime)})
    assert home.socket.parent == runtime / "hermes-gateway"
    assert len(os.fsencode(home.socket)) <= LONGEST_SOCKET
    other = find_home({"HOME": "/x", "HERMES_HOME": str(root / "other"), "XDG_RUNTIME_DIR": str(runtime)})
    assert other.socket != home.socket


def test_the_boundary_is_the_byte_that_the_kernel_sets(tmp_path: Path) -> None:
    room = LONGEST_SOCKET - len(os.fsencode(tmp_path / "hermes-gateway/control.sock")) - 1
    fits, too_long = tmp_path / ("f" * room), tmp_path / ("t" * (room + 1))
    for root, near in ((fits, True), (too_long, False)):
        home = Home(root)
        home.own_folder.mkdir(parents=True)
        assert (home.socket.parent == home.own_folder) is near
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Home(fits).socket))


def test_gateway_and_command_agree_though_only_one_knows_the_runtime_directory(tmp_path: Path) -> None:
    runtime, root = tmp_path / "run", deep(tmp_path)
    (runtime / "hermes-gateway").mkdir(parents=True, mode=0o700)
    runtime.chmod(0o700)
    home = Home(root, runtime)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        assert Home(root, runtime).socket == home.socket
    before = Home(root, None).socket
    assert before.parent.parent == Path("/tmp")
    assert Home(root, None).socket == before


def test_a_runtime_directory_that_others_may_enter_is_not_used(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o755)
    home = find_home({"HOME": "/x", "HERMES_HOME": str(deep(tmp_path)), "XDG_RUNTIME_DIR": str(runtime)})
    assert not home.socket.is_relative_to(runtime)


def test_the_marks_of_turns_lie_in_memory_where_there_is_a_place_for_them(tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    environ = {"HOME": "/x", "HERMES_HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(runtime)}
    home = find_home(environ)
    other = find_home({**environ, "HERMES_HOME": str(tmp_path / "other")})
    assert home.turn_marks.parent == other.turn_marks.parent == runtime
    assert home.turn_marks != other.turn_marks
    assert Home(tmp_path / "home").turn_marks.parent == home.own_folder
