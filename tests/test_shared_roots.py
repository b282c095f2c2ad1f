"""Which folders of agents all gateways have."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gateway.agent.toolbox.file_reach import FOLDER
from gateway.cluster.roots import find_shared_root, find_turn_folders, list_shared_roots
from gateway.config.home import Home
from gateway.config.settings import AgentSettings, Settings, ToolSettings


def make_settings(*roots: str) -> Settings:
    agent = AgentSettings(context_files=("rules/house.md",))
    return replace(Settings(), tools=ToolSettings(roots=roots), agents={"main": agent})


@pytest.mark.parametrize(
    ("roots", "names"),
    [
        (("hermes-gateway/workspace", "notes"), ["root/notes", "root/hermes-gateway/workspace"]),
        (("notes/below", "notes"), ["root/notes"]),
        ((".",), []),
        (("..",), []),
        (("hermes-gateway",), []),
        (("hermes-gateway/files/telegram",), []),
        (("hooks/mine", "skills", "hermes-gateway/backups"), []),
        (("elsewhere",), []),
    ],
    ids=" ".join,
)
def test_those_in_the_home_that_hold_nothing_of_the_gateway_s(
    tmp_path: Path, roots: tuple[str, ...], names: list[str]
) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    (home.root / "elsewhere").symlink_to(tmp_path)
    found = list_shared_roots(home, make_settings(*roots))
    assert sorted(one.name for one in found) == sorted(names)
    for one in found:
        again = find_shared_root(home, one.name)
        assert again
        assert again.root == one.root
    assert find_shared_root(home, "root/../../etc") is None
    assert find_shared_root(home, "files/net/7") is None


def test_what_steers_agents_is_not_among_it(tmp_path: Path) -> None:
    (root,) = list_shared_roots(Home(tmp_path), make_settings("work"))
    left = ("rules/house.md", "a/AGENTS.md", ".claude", "CLAUDE.md")
    assert [name for name in (*left, "a/notes.md", ".git", "house.md") if root.is_left_out(root.root / name)] == [*left]


@pytest.mark.parametrize(
    ("role", "names"),
    [("owner", ["root/work", "files/net/7"]), ("admin", ["root/work", "files/net/7"]), ("user", ["files/net/7"])],
)
def test_a_turn_has_those_that_it_reaches(tmp_path: Path, role: str, names: list[str]) -> None:
    roots = list_shared_roots(Home(tmp_path), make_settings("work"))
    facts = {"role": role, FOLDER: tmp_path / "files" / "net" / "7"}
    assert [one.name for one in find_turn_folders(roots, facts)] == names
    assert find_turn_folders(roots, {"role": "guest"}) == []
