"""Folders are recognized as hooks by stat alone; those that another user could have written are refused."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from gateway.hooks.manifests.manifest import read_manifest
from gateway.hooks.places.folder_source import FolderSource
from gateway.hooks.places.sources import HookVersion

EVENTS = "events: [agent:end]\n"


def plant(at: Path, manifest: str = EVENTS, handler: str = "def handle(event_type, context): pass\n") -> Path:
    at.mkdir(parents=True)
    (at / "HOOK.yaml").write_text(manifest)
    if handler:
        (at / "handler.py").write_text(handler)
    return at


def seen(path: Path) -> HookVersion:
    folder = FolderSource(path.parent, "home").find(path.name)
    assert folder
    return folder


def wrong(path: Path) -> list[str]:
    return [str(finding) for finding in seen(path).findings if finding.severity == "error"]


def test_folders_come_in_the_order_of_their_names_and_some_are_passed_over(tmp_path: Path) -> None:
    for name in ("b", "a", ".git", "_off", "old.bak", "c~", "éé"):
        plant(tmp_path / name)
    (tmp_path / "data").mkdir()
    (tmp_path / "a-file").write_text("x")
    assert [folder.name for folder in FolderSource(tmp_path, "home").list()] == ["a", "b", "éé"]
    assert not [finding for folder in FolderSource(tmp_path, "home").list() for finding in folder.findings]


def test_a_source_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert list(FolderSource(tmp_path / "none", "home").list()) == []


def test_code_is_the_manifest_and_every_python_file(tmp_path: Path) -> None:
    hook = plant(tmp_path / "a")
    for name in ("lib/deep.py", "__pycache__/x.py", ".venv/y.py", "node_modules/z.py", "data.json", "log.txt"):
        (hook / name).parent.mkdir(exist_ok=True)
        (hook / name).write_text("")
    assert sorted(file.name for file in seen(hook).files) == ["HOOK.yaml", "handler.py", "lib/deep.py"]


def test_a_half_written_folder_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "handler.py").write_text("")
    assert wrong(tmp_path / "a") == []
    assert [str(finding) for finding in read_manifest(tmp_path / "a").findings] == [
        "a/HOOK.yaml: error: is missing; write one; its least is: events: [agent:end]"
    ]
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "hook.yml").write_text(EVENTS)
    assert wrong(tmp_path / "b") == []
    assert "rename hook.yml to HOOK.yaml" in str(read_manifest(tmp_path / "b").findings[0])


@pytest.mark.row("T21")
def test_what_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    folder, code = plant(tmp_path / "folder"), plant(tmp_path / "code")
    folder.chmod(0o777)
    (code / "handler.py").chmod(0o666)
    assert wrong(folder) == [f"folder: error: everybody may write to it; run: chmod o-w {folder}"]
    assert "code/handler.py" in wrong(code)[0]


@pytest.mark.row("T21")
def test_a_source_that_everybody_may_write_to_refuses_all_that_is_in_it(tmp_path: Path) -> None:
    plant(tmp_path / "hooks" / "a")
    (tmp_path / "hooks").chmod(0o777)
    (folder,) = FolderSource(tmp_path / "hooks", "$HERMES_HOME/hooks").list()
    assert folder.state == "refused"


@pytest.mark.row("T21")
def test_what_the_group_may_write_to_is_warned_about_once_for_a_folder(tmp_path: Path) -> None:
    hook = plant(tmp_path / "a")
    hook.chmod(0o775)
    (hook / "handler.py").chmod(0o664)
    (hook / "HOOK.yaml").chmod(0o664)
    assert [*map(str, seen(hook).findings)] == [f"a: warning: its group may write to it; run: chmod -R g-w {hook}"]


@pytest.mark.row("T21")
@pytest.mark.machine
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("which", ["", "HOOK.yaml", "handler.py"])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, which: str) -> None:
    hook = plant(tmp_path / "a")
    os.chown(hook / which, 65534, 65534)
    assert "belongs to another user (uid 65534)" in wrong(hook)[0]


@pytest.mark.row("T21")
def test_the_folder_may_be_a_link_and_its_code_may_not_lead_out(tmp_path: Path) -> None:
    plant(tmp_path / "elsewhere")
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    assert wrong(tmp_path / "linked") == []
    assert seen(tmp_path / "linked").name == "linked"
    for name in ("handler.py", "HOOK.yaml", "helper.py"):
        hook = plant(tmp_path / f"out-{name}")
        (hook / name).unlink(missing_ok=True)
        (hook / name).symlink_to(tmp_path / "elsewhere" / "handler.py")
        assert f"out-{name}/{name}: error: is a link that leads out" in wrong(hook)[0]
    inside = plant(tmp_path / "inside", handler="")
    (inside / "real.py").write_text("")
    (inside / "handler.py").symlink_to("real.py")
    assert wrong(inside) == []


@pytest.mark.row("T19")
@pytest.mark.row("T21")
def test_circles_and_links_to_nothing_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "nothing").symlink_to(tmp_path / "gone")
    hook = plant(tmp_path / "a", handler="")
    (hook / "handler.py").symlink_to("handler.py")
    (hook / "up").symlink_to("..")
    found = {folder.name: folder for folder in FolderSource(tmp_path, "home").list()}
    assert sorted(found) == ["a", "round"]
    assert found["round"].state == "refused"
    assert "leads out of the folder, or to nothing" in wrong(hook)[0]


@pytest.mark.row("T19")
@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "x" * 101, "rtl\u202ename", os.fsdecode(b"\xff\xfe")])
def test_a_name_that_cannot_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    found = wrong(plant(tmp_path / name))
    assert "rename" in found[0]
    assert found[0].isprintable()


def test_a_folder_that_goes_while_it_is_looked_at_is_no_error(tmp_path: Path) -> None:
    assert FolderSource(tmp_path, "home").find("gone") is None
    (tmp_path / "file").write_text("")
    assert FolderSource(tmp_path, "home").find("file") is None


@contextmanager
def nobody() -> Iterator[None]:
    """Become another user meanwhile, since root reads everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_read_says_so() -> None:
    with TemporaryDirectory() as place:  # where nobody comes in too, unlike pytest's own
        Path(place).chmod(0o755)
        hook = plant(Path(place) / "a")
        hook.chmod(0)
        with nobody():
            found = wrong(hook)
        hook.chmod(0o755)
    assert "cannot be read: Permission denied" in found[0]


def test_a_link_that_leads_to_itself_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert "cannot be read: Too many levels of symbolic links" in wrong(tmp_path / "a")[0]
