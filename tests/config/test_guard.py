"""Other users who could change or read our files; and our own places, which are ours alone."""

import os
from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.permissions import check_home, prepare_home
from gateway.errors import ConfigError

pytestmark = pytest.mark.row("T33")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare_home(home)
    return home


def found(home: Home) -> list[tuple[str, str, str]]:
    root = str(home.root)
    return [(one.severity, one.place.source.removeprefix(root), one.what) for one in check_home(home)]


def test_a_new_home_is_for_us_alone(home: Home) -> None:
    assert found(home) == []
    made = [home.root, *home.root.rglob("*")]
    assert home.own_folder in made
    assert {oct(path.stat().st_mode & 0o777) for path in made} == {"0o700"}


def test_what_is_there_already_is_left_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "home"
    (root / "hooks").mkdir(parents=True)
    root.chmod(0o755)
    (root / "hooks").chmod(0o755)
    prepare_home(Home(root))
    assert root.stat().st_mode & 0o777 == 0o755
    assert (root / "hooks").stat().st_mode & 0o777 == 0o755


def test_our_directory_is_closed_to_others(home: Home) -> None:
    home.own_folder.chmod(0o755)
    prepare_home(home)
    assert home.own_folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["root", "own_folder", "config", "env"])
def test_what_everybody_can_change_is_refused(home: Home, name: str) -> None:
    path = getattr(home, name)
    if not path.exists():
        path.touch(mode=0o600)
    path.chmod(path.stat().st_mode | 0o002)
    assert [(severity, what) for severity, _, what in found(home)] == [
        ("error", "everybody on this machine can change it")
    ]
    with pytest.raises(ConfigError, match=f"chmod o-w {path}"):
        prepare_home(home)


@pytest.mark.parametrize("name", ["root", "own_folder", "config", "env"])
def test_what_the_group_can_change_is_warned_about(home: Home, name: str) -> None:
    path = getattr(home, name)
    if not path.exists():
        path.touch(mode=0o600)
    path.chmod(path.stat().st_mode | 0o020)
    assert [(severity, what) for severity, _, what in found(home)] == [("warning", "its group can change it")]


@as_root
@pytest.mark.parametrize("name", ["root", "config", "env"])
def test_what_belongs_to_somebody_else_is_refused(home: Home, name: str) -> None:
    path = getattr(home, name)
    if not path.exists():
        path.touch(mode=0o600)
    os.chown(path, 65534, 65534)
    assert ("error", "belongs to another user (uid 65534)") in [(severity, what) for severity, _, what in found(home)]


def test_secrets_that_others_can_read_are_warned_about(home: Home) -> None:
    home.env.touch(mode=0o600)
    assert found(home) == []
    home.env.chmod(0o644)
    assert found(home) == [("warning", "/.env", "others can read your secrets")]


def test_a_configuration_that_is_a_link_is_refused(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").touch(mode=0o600)
    home.config.symlink_to(tmp_path / "elsewhere.yaml")
    assert found(home) == [("error", "/hermes-gateway/config.yaml", "a link, which could lead anywhere")]


def test_our_directory_may_not_be_a_link_but_the_home_may(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    assert found(Home(tmp_path / "link")) == []
    (real / "hermes-gateway").symlink_to(tmp_path)
    assert found(Home(real)) == [("error", "/hermes-gateway", "a link, which could lead anywhere")]


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"the home cannot be written: .*file/home.*: Not a directory\nmake it"):
        prepare_home(Home(tmp_path / "file/home"))


def test_a_file_in_the_homes_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(ConfigError, match="not a directory; put a directory in its place"):
        prepare_home(Home(tmp_path / "home"))


def test_a_socket_far_away_gets_a_directory_of_our_own(tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    home = Home(tmp_path / ("d" * 120), runtime)
    prepare_home(home)
    assert (runtime / "hermes-gateway").stat().st_mode & 0o777 == 0o700
    (runtime / "hermes-gateway").chmod(0o755)
    with pytest.raises(ConfigError, match="not ours alone"):
        prepare_home(home)
