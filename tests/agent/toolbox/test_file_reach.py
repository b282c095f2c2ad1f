"""The files that people reach: by role, by being alone with the agent, and by nothing else."""

import pytest

from gateway.agent.toolbox.file_reach import FOLDER, FileReach
from gateway.errors import AgentError


@pytest.fixture
def reach(tmp_path):
    """A root that holds all the files of the gateway too."""
    files = tmp_path / "home" / "files"
    for name in ("net/1/own.txt", "net/2/own.txt", ".unclaimed/net/old.txt", "net/loose.txt"):
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_text(name)
    return FileReach((tmp_path / "home",), files, files / ".unclaimed")


def read(reach, name, role="user", chat_type="dm", folder="net/1"):
    workspace = reach.find_workspace({"role": role, "chat_type": chat_type, FOLDER: reach.files / folder})
    return workspace.read(str(reach.files / name)).decode()


@pytest.mark.parametrize("role", ["owner", "admin", "user", "guest"])
def test_a_root_around_all_files_gives_nobody_those_of_others(reach, role):
    assert read(reach, "net/1/own.txt", role) == "net/1/own.txt"
    for name in ("net/2/own.txt", "net/loose.txt"):
        with pytest.raises(AgentError, match="not open"):
            read(reach, name, role)
    workspace = reach.find_workspace({"role": role, FOLDER: reach.files / "net" / "1"})
    with pytest.raises(AgentError, match=r"not open|outside"):
        workspace.list(str(reach.files))
    if role in ("owner", "admin"):
        assert not [name for name, *_ in workspace.list(".") if name == "files"]


def test_what_is_nobodys_is_the_owners_alone(reach):
    assert read(reach, ".unclaimed/net/old.txt", "owner")
    for role in ("admin", "user"):
        with pytest.raises(AgentError):
            read(reach, ".unclaimed/net/old.txt", role)


def test_relative_paths_begin_where_the_person_works(reach):
    where = {
        (role, kind): reach.find_workspace({"role": role, "chat_type": kind, FOLDER: reach.files / "net/1"}).roots[0]
        for role in ("owner", "user")
        for kind in ("dm", "group", "thread")
    }
    own, (root,) = reach.files / "net/1", reach.roots
    assert where.pop(("owner", "dm")) == root
    assert set(where.values()) == {own}


@pytest.mark.parametrize("role", ["owner", "user"])
def test_a_path_of_another_gateway_leads_to_the_same_conversation_and_no_other(reach, role):
    workspace = reach.find_workspace({"role": role, FOLDER: reach.files / "net" / "1"})
    assert workspace.read("/srv/other/hermes-gateway/files/net/1/own.txt") == b"net/1/own.txt"
    workspace.write("/srv/other/hermes-gateway/files/net/1/new/notes.md", b"kept")
    assert (reach.files / "net" / "1" / "new" / "notes.md").read_bytes() == b"kept"
    for end in ("net/2/own.txt", "net/1/../2/own.txt", "net/loose.txt"):
        with pytest.raises(AgentError, match=r"not open|outside"):
            workspace.read(f"/srv/other/hermes-gateway/files/{end}")


def test_who_is_nobody_in_particular_has_nothing(reach):
    with pytest.raises(AgentError, match="no directory"):
        reach.find_workspace({}).read("x")
