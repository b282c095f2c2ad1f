"""The program to install: from its source, with its extras, and with the reports of installers."""

import os
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.cli.upgrade import check_owner
from gateway.config.home import Home
from gateway.installation import Installation, Way
from gateway.upgrade.environment import check_place, exchange_folders
from gateway.upgrade.plan import UpgradeError
from gateway.upgrade.program import find_requirement, list_extras, parse_changes

METADATA = """Metadata-Version: 2.4
Name: hermes-gateway
Version: 0.1.0
Requires-Dist: msgspec
Requires-Dist: packaging ; extra == 'some'
Requires-Dist: nobody-has-this ; extra == 'none'
Requires-Dist: packaging ; extra == 'none'
Requires-Dist: hermes-gateway[some] ; extra == 'all'
Provides-Extra: some
Provides-Extra: none
Provides-Extra: all
"""
PIP = """{"version": "1", "install": [{"metadata": {"name": "hermes-gateway", "version": "0.2.0"}}]}
WARNING: something else"""
UV = """Resolved 1 package in 2ms
 - aiohttp==3.13.1
 + aiohttp==3.13.2
 + hermes-gateway @ file:///somewhere/hermes_gateway-0.2.0-py3-none-any.whl
"""


def installed(folder: Path, origin: str = "") -> Distribution:
    (folder / "METADATA").write_text(METADATA)
    if origin:
        (folder / "direct_url.json").write_text(origin)
    return Distribution.at(folder)


def test_an_extra_is_one_of_which_all_is_there(tmp_path: Path) -> None:
    assert list_extras(installed(tmp_path)) == ("some",)
    assert {"mcp", "openai"} <= {*list_extras(distribution("hermes-gateway"))}, "as the tests have it"


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        ("", "hermes-gateway[some]"),
        ('{"url": "file:///src", "dir_info": {}}', "hermes-gateway[some] @ file:///src"),
        (
            '{"url": "https://host/g.git", "vcs_info": {"vcs": "git", "commit_id": "a1", "requested_revision": "v1"}}',
            "hermes-gateway[some] @ git+https://host/g.git@v1",
        ),
    ],
)
def test_it_comes_from_where_this_one_came(tmp_path: Path, origin: str, wanted: str) -> None:
    assert find_requirement("", installed(tmp_path, origin), tmp_path) == wanted


def test_somebody_says_where_it_is(tmp_path: Path) -> None:
    found = installed(tmp_path, '{"url": "file:///old.whl", "archive_info": {}}')
    (tmp_path / "new.whl").touch()
    assert find_requirement("new.whl", found, tmp_path).endswith("/new.whl")
    assert find_requirement("git+ssh://a/b", found, tmp_path) == "hermes-gateway[some] @ git+ssh://a/b"
    for source, fault in (("", "--from"), ("other.whl", "not found"), ("https://a b\nc", "nothing that can be")):
        with pytest.raises(UpgradeError, match=fault):
            find_requirement(source, found, tmp_path)


@pytest.mark.parametrize(
    ("printed", "changes"),
    [
        (PIP, {"hermes-gateway": "0.2.0"}),
        (UV, {"aiohttp": "3.13.2", "hermes-gateway": ""}),
        ("Would make no changes", {}),
    ],
)
def test_both_installers_are_understood(printed: str, changes: dict[str, str]) -> None:
    assert parse_changes(printed) == changes


def test_two_folders_have_each_others_name_at_once(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / folder.name).touch()
    exchange_folders(first, second)
    assert [(first / "second").exists(), (second / "first").exists()] == [True, True]


@pytest.mark.parametrize(
    ("way", "remedy"),
    [
        ("system", "uv tool install"),
        ("clone", "./x backup create && ./x stop && git pull && ./x run"),
        ("container", "docker compose pull && docker compose up --detach"),
    ],
)
def test_where_nothing_can_be_put_beside_it_the_way_is_named(tmp_path: Path, way: Way, remedy: str) -> None:
    with pytest.raises(UpgradeError, match=remedy):
        check_place(Installation(way, tmp_path / "env"))


@pytest.fixture
def ordinary_user() -> Iterator[None]:
    """As whom the test goes on, where root runs it."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


@pytest.mark.usefixtures("ordinary_user")
def test_a_program_that_somebody_else_keeps_is_left_alone() -> None:
    with pytest.raises(UpgradeError, match=r"belongs to root\n.*\nthen, as root: .*--upgrade hermes-gateway\n"):
        check_place(Installation("environment", Path("/usr")))


@pytest.mark.usefixtures("ordinary_user")
def test_the_home_of_another_user_is_left_to_them_with_the_lines_to_type() -> None:
    with TemporaryDirectory() as home:  # where an ordinary user comes in, unlike pytest's own
        Path(home, "hermes-gateway").symlink_to("/usr")
        with pytest.raises(UpgradeError) as caught:
            check_owner(Home(Path(home)), Installation("environment", Path("/usr")))
    first, *steps = str(caught.value).splitlines()
    called = f"sudo -u root HERMES_HOME={home} /usr/bin/hermes-gateway"
    assert first == f"{home} belongs to root"
    assert steps[:2] == [f"copy it: {called} backup create", f"stop it: {called} stop"]
    assert re.fullmatch("as root: .* --upgrade hermes-gateway", steps[2])
    assert steps[3:] == [f"start it: {called} run"]
