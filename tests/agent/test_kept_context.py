"""Files that steer later turns keep their text, whatever a command does to them, until a person changes them."""

import json
import os
import subprocess

import pytest

from gateway.agent.context_files import RUNNING, ContextFiles, join_context_files


@pytest.fixture
def place(tmp_path):
    """A workspace with instructions, below it a folder with more; beside it a secret."""
    for folder in ("below", "other"):
        (tmp_path / "work" / folder).mkdir(parents=True)
    (tmp_path / "secret").write_text("the secret")
    (tmp_path / "appears").touch()
    for name in ("AGENTS.md", "below/MORE.md"):
        (tmp_path / "work" / name).write_text(f"as {name} was")
    return tmp_path


@pytest.fixture
def paths(place):
    return [place / "work" / name for name in ("AGENTS.md", "below/MORE.md", "LATER.md")]


def texts(files, paths):
    return [files.read(path).decode() for path in paths]


WAS = ["as AGENTS.md was", "as below/MORE.md was", ""]
ATTACKS = {
    "written": "echo evil > AGENTS.md",
    "of the same size and time": "cp -p AGENTS.md a; printf 'is AGENTS.md evi' > AGENTS.md; touch -r a AGENTS.md",
    "removed": "rm AGENTS.md",
    "emptied": ": > AGENTS.md",
    "a link to a secret": "ln -sf ../secret AGENTS.md",
    "a hard link": "ln -f ../secret AGENTS.md",
    "a hard link to what is empty yet": "ln ../appears LATER.md",
    "a hard link to the same text": "cp AGENTS.md same; ln -f same AGENTS.md",
    "a link to what is not there yet": "ln -s ../appears LATER.md",
    "a link to the same text": "cp AGENTS.md same; ln -sf same AGENTS.md",
    "a pipe": "rm AGENTS.md; mkfifo AGENTS.md",
    "a folder": "rm AGENTS.md; mkdir AGENTS.md",
    "another below another folder": "mv below old; mkdir below; echo evil > below/MORE.md",
    "a folder that is a link": "mv below old; ln -s .. below; echo evil > ../MORE.md",
    "a folder that leads to what is not there yet": "mv below old; ln -s .. below",
    "a folder that leads to the same text": "cp below/MORE.md other; mv below old; ln -s other below",
    "one that was not there": "echo evil > LATER.md",
    "too long": "head -c 100000 /dev/zero | tr '\\0' x > AGENTS.md",
}


@pytest.mark.row("T23")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_what_a_command_makes_of_them_is_not_read(place, paths, attack):
    files = ContextFiles(place / "kept", settled=0.0)
    was = await files.join(tuple(paths))
    async with files.watch(paths) as command:
        subprocess.run(["sh", "-c", ATTACKS[attack]], cwd=place / "work", check=True)  # noqa: ASYNC221 - it is short
        assert (texts(files, paths), await files.join(tuple(paths))) == (WAS, was), "nor while it runs"
    assert (await files.join(tuple(paths)), await files.join(tuple(paths))) == (was, was), "nor what a turn remembers"
    assert len(command.changed) == 1
    for again in (files, ContextFiles(place / "kept")):
        assert texts(again, paths) == WAS
        assert again.list_held() == list(command.changed)
        # A pull, or an upload, brings what a link leads to.
        for later in ("appears", "work/same", "MORE.md", "work/other/MORE.md"):
            (place / later).write_text("evil")
        assert texts(again, paths) == WAS
        assert "evil" not in join_context_files(paths, again)


async def test_a_link_that_a_command_made_is_read_once_the_link_itself_is_touched(place, paths):
    files = ContextFiles(place / "kept", settled=0.0)
    async with files.watch(paths):
        paths[2].symlink_to(place / "mine")
    assert "LATER" not in await files.join(tuple(paths))
    (place / "mine").write_text("mine")
    assert f"touch -h {paths[2]}" in files.describe(paths[2])
    os.utime(paths[2], (1, 1), follow_symlinks=False)
    assert files.read(paths[2]) == b"mine"
    assert "mine" in await files.join(tuple(paths))
    async with files.watch(paths):
        assert files.read(paths[2]) == b"mine"
    (place / "mine").write_text("newer")
    assert files.read(paths[2]) == b"newer", "it is an ordinary link now"
    assert "newer" in await files.join(tuple(paths))


async def test_a_file_with_another_name_is_read_once_it_is_a_file_of_its_own(place, paths):
    files = ContextFiles(place / "kept", settled=0.0)
    async with files.watch(paths):
        os.link(paths[0], place / "work/other/name")
    (place / "work/other/name").write_text("evil")
    os.utime(paths[0])
    assert files.read(paths[0]).decode() == WAS[0]
    subprocess.run(["sh", "-c", files.describe(paths[0]).partition("then: ")[2]], check=True)  # noqa: ASYNC221 - short
    assert files.read(paths[0]) == b"evil"
    os.link(paths[0], place / "work/other/mine")
    async with files.watch(paths) as command:
        pass
    assert command.changed == (), "somebody else gave it that name"


async def test_a_gateway_that_was_killed_meanwhile_finds_what_was_changed(place, paths):
    files = ContextFiles(place / "kept")
    async with files.watch(paths):
        assert (place / "kept" / RUNNING).exists()
        paths[0].write_text("evil")
        after = ContextFiles(place / "kept")  # as after kill -9
        assert texts(after, paths) == WAS
        assert after.list_held() == [paths[0]]
        assert not (place / "kept" / RUNNING).exists()


async def test_whoever_touches_it_afterwards_lets_it_be_read(place, paths):
    files = ContextFiles(place / "kept")
    async with files.watch(paths):
        paths[0].write_text("as the agent proposes")
    async with files.watch(paths) as command:  # another command does not let it be read, not even by touching it
        os.utime(paths[0])
    assert texts(files, paths) == WAS
    assert command.changed == (paths[0],)
    async with files.watch(paths) as command:
        pass
    assert command.changed == ()
    os.utime(paths[0])
    for again in (files, ContextFiles(place / "kept")):
        assert texts(again, paths) == ["as the agent proposes", *WAS[1:]]
        assert again.list_held() == []
    async with files.watch(paths):
        pass
    paths[0].write_text("as the owner writes")
    assert files.read(paths[0]) == b"as the owner writes"


async def test_side_by_side_the_last_command_decides(place, paths):
    files = ContextFiles(place / "kept")
    async with files.watch(paths):
        async with files.watch(paths) as inner:
            paths[0].write_text("evil")
        assert inner.changed == (paths[0],)
        assert texts(files, paths) == WAS
        assert (place / "kept" / RUNNING).exists()
        paths[0].write_text(WAS[0])
    assert files.list_held() == []
    assert not (place / "kept" / RUNNING).exists()


async def test_what_is_kept_is_for_the_owners_eyes_and_broken_leftovers_hold_nothing_up(place, paths):
    (place / "kept").mkdir()
    (place / "kept" / "broken.json").write_text("{")
    files = ContextFiles(place / "kept")
    async with files.watch(paths):
        pass
    kept = [json.loads(one.read_text())["path"] for one in (place / "kept").glob("*.json") if one.stem != "broken"]
    assert sorted(kept) == sorted(map(str, paths))
