"""The agent's files: only those below its roots, and never what would give it power over the gateway."""

import contextlib
import fcntl
import itertools
import os
import re
import threading
import time
from functools import partial

import anyio
import pytest
from msgspec.structs import replace

from gateway.agent.toolbox.files import make_file_tools
from gateway.agent.toolbox.workspace import make_workspace
from gateway.agent.tools import ToolContext
from gateway.errors import AgentError


@pytest.fixture
def home(tmp_path):
    """A home as it is: with a workspace, hooks and secrets beside it and below it."""
    (tmp_path / "hooks" / "mine").mkdir(parents=True)
    (tmp_path / "hooks" / "mine" / "handler.py").write_text("secret")
    (tmp_path / "config.yaml").write_text("secret")
    (tmp_path / "work" / "deep").mkdir(parents=True)
    (tmp_path / "work" / "note.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


@pytest.fixture
def workspace(home):
    return make_workspace([home / "work"], [home / "hooks", home / "config.yaml"])


@pytest.fixture
def use(workspace):
    tools = {tool.name: tool for tool in make_file_tools(lambda _facts: workspace, output_limit=1000)}

    async def use(name, **args):
        return await tools[name].call(args, ToolContext())

    return use


async def test_a_file_is_written_read_edited_and_listed(use, home):
    assert await use("write_file", path="deep/new/a.txt", content="hello world") == (
        "Created deep/new/a.txt (11 characters)."
    )
    assert await use("edit_file", path="deep/new/a.txt", old="world", new="you") == "Edited deep/new/a.txt (1 place)."
    assert await use("read_file", path="deep/new/a.txt") == "hello you"
    assert await use("list_files") == "deep/\nnote.txt (14)"
    assert await use("list_files", path="deep/new") == "a.txt (9)"
    assert (home / "work/deep/new/a.txt").stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_itself_open_is_read_and_not_written(home):
    (home / "rules.md").write_text("be kind")
    (home / "other.md").write_text("secret")
    opened = make_workspace([home / "work"], [], readable=[home / "rules.md"])
    for workspace in (opened, replace(opened, roots=(home / "work", home / "rules.md"), readable=())):
        assert workspace.read(str(home / "rules.md")) == b"be kind"
        with pytest.raises(AgentError, match="can be read here, and not written"):
            workspace.write(str(home / "rules.md"), b"be rude")
        with pytest.raises(AgentError, match="outside"):
            workspace.read(str(home / "other.md"))
    assert (home / "rules.md").read_text() == "be kind"


async def test_who_edits_one_file_at_the_same_time_takes_nothing_from_each_other(use):
    places = [f"<{number}>" for number in range(30)]
    await use("write_file", path="shared.txt", content="\n".join(places))
    async with anyio.create_task_group() as tasks:
        for number, place in enumerate(places):
            tasks.start_soon(partial(use, "edit_file", path="shared.txt", old=place, new=f"done {number}."))
    assert await use("read_file", path="shared.txt") == "\n".join(f"done {number}." for number in range(30))


async def test_who_replaces_a_file_is_told_what_is_gone(use):
    await use("write_file", path="shared.txt", content="from one")
    said = await use("write_file", path="shared.txt", content="from another")
    assert re.fullmatch(r"Replaced shared.txt \(12 characters\); gone are 8 bytes that were written \d s before.", said)


async def test_a_command_that_holds_a_folder_does_not_hold_up_the_agent(use, home):
    folder = os.open(home / "work", os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(AgentError, match="being written by another person"):
        await use("write_file", path="a.txt", content="x")
    os.close(folder)
    assert "Created" in await use("write_file", path="a.txt", content="x")


async def test_a_file_can_be_read_in_parts(use):
    assert await use("read_file", path="note.txt", first_line=2, lines=1) == "two\n\n[1 more lines]"


async def test_long_output_is_cut_and_says_so(use):
    await use("write_file", path="long.txt", content="x" * 5000)
    assert "[cut after 1000 characters" in await use("read_file", path="long.txt")


async def test_an_edit_wants_exactly_one_place_unless_told_otherwise(use):
    await use("write_file", path="a.txt", content="x y x")
    with pytest.raises(AgentError, match="contains that text 2 times"):
        await use("edit_file", path="a.txt", old="x", new="z")
    with pytest.raises(AgentError, match="does not contain"):
        await use("edit_file", path="a.txt", old="q", new="z")
    assert "2 places" in await use("edit_file", path="a.txt", old="x", new="z", every=True)
    assert await use("read_file", path="a.txt") == "z y z"


async def test_a_replaced_file_keeps_its_mode_and_is_never_half_written(use, home):
    path = home / "work/run.sh"
    path.write_text("old")
    path.chmod(0o755)
    before = path.stat().st_ino
    await use("write_file", path="run.sh", content="new")
    assert path.stat().st_mode & 0o777 == 0o755
    assert path.stat().st_ino != before
    assert not [path.name for path in (home / "work").iterdir() if path.name.startswith(".")]


@pytest.mark.row("T19")
@pytest.mark.parametrize(
    "path",
    [
        "../config.yaml",
        "deep/../../config.yaml",
        "/etc/passwd",
        "~/.ssh/id_rsa",
        "link/config.yaml",
        "outside.txt",
        "note.txt\0.png",
        "./../work/../hooks/mine/handler.py",
    ],
)
async def test_nothing_outside_of_the_roots_is_read_or_written(use, home, path):
    (home / "work/link").symlink_to(home)
    (home / "work/outside.txt").symlink_to("/etc/passwd")
    for call in (
        use("read_file", path=path),
        use("write_file", path=path, content="x"),
        use("edit_file", path=path, old="a", new="b"),
    ):
        with pytest.raises(AgentError):
            await call
    assert (home / "config.yaml").read_text() == "secret"


@pytest.mark.row("T11")
@pytest.mark.row("T23")
@pytest.mark.parametrize("root", [".", "hooks", "hooks/mine"])
async def test_hooks_and_configuration_are_closed_even_where_a_root_holds_them(home, root):
    workspace = make_workspace([home / root], [home / "hooks", home / "config.yaml"])
    tools = {tool.name: tool for tool in make_file_tools(lambda _facts: workspace, output_limit=64_000)}
    for path in (home / "hooks/mine/handler.py", home / "hooks/new/handler.py", home / "config.yaml"):
        for name, more in (("read_file", {}), ("write_file", {"content": "evil"})):
            with pytest.raises(AgentError):
                await tools[name].call({"path": str(path), **more}, ToolContext())
    assert (home / "hooks/mine/handler.py").read_text() == "secret"
    assert not (home / "hooks/new").exists()


@pytest.mark.row("T23")
async def test_a_hard_link_to_what_is_forbidden_is_known_by_its_inode(use, home):
    os.link(home / "config.yaml", home / "work/innocent.txt")
    with pytest.raises(AgentError, match="not open to the agent"):
        await use("read_file", path="innocent.txt")
    with pytest.raises(AgentError, match="not open to the agent"):
        await use("write_file", path="innocent.txt", content="evil")
    assert "innocent" not in await use("list_files")


@pytest.mark.row("T19")
def test_a_directory_that_is_swapped_for_a_link_in_between_leads_nowhere(workspace, home):
    """A race: one thread writes, another one changes the way under its feet."""
    stop = threading.Event()

    def swap():
        way, turns = home / "work/way", itertools.count()
        steps = [
            way.mkdir,
            lambda: way.rename(home / f"work/aside{next(turns)}"),
            lambda: way.symlink_to(home / "hooks"),
            way.unlink,
        ]
        while not stop.is_set():
            for step in steps:
                with contextlib.suppress(OSError):
                    step()

    thread = threading.Thread(target=swap)
    thread.start()
    deadline = time.monotonic() + 0.5
    try:
        while time.monotonic() < deadline:
            for attempt in (lambda: workspace.write("way/evil.py", b"evil"), lambda: workspace.read("way/handler.py")):
                try:
                    assert attempt() != b"secret"
                except AgentError:
                    continue
    finally:
        stop.set()
        thread.join()
    assert [path.name for path in (home / "hooks").iterdir()] == ["mine"]


async def test_what_is_no_text_file_is_refused_without_waiting(use, home):
    os.mkfifo(home / "work/pipe")
    (home / "work/binary").write_bytes(b"\x7fELF\0\0")
    for path, words in (("pipe", "not a regular file"), ("deep", "is a directory"), ("binary", "not a text file")):
        with pytest.raises(AgentError, match=words):
            await use("read_file", path=path)
    with pytest.raises(AgentError, match="not a regular file"):
        await use("write_file", path="pipe", content="x")
    with pytest.raises(AgentError, match="missing not found"):
        await use("read_file", path="missing")
    with pytest.raises(AgentError, match=r"note.txt/x not found|not a directory"):
        await use("read_file", path="note.txt/x")


STEERING = (
    "AGENTS.md",
    "agents.MD",
    "deep/AGENTS.md",
    "CLAUDE.md",
    ".git/config",
    "deep/.git/hooks/pre-commit",
    "rules",
)


@pytest.fixture
def steered(home):
    """A workspace with instructions: by their usual name, and `rules`, which the configuration names."""
    (home / "work" / "rules").write_text("be kind")
    workspace = make_workspace([home / "work"], [], [home / "work" / "rules"])
    return {tool.name: tool for tool in make_file_tools(lambda _facts: workspace, output_limit=1000)}


@pytest.mark.parametrize("path", STEERING)
async def test_what_steers_later_turns_is_read_and_not_written(steered, home, path):
    target = home / "work" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("be kind")
    assert await steered["read_file"].call({"path": path}, ToolContext()) == "be kind"
    for name, args in (("write_file", {"content": "obey"}), ("edit_file", {"old": "kind", "new": "cruel"})):
        with pytest.raises(AgentError, match="you can read it, and not write it"):
            await steered[name].call({"path": path, **args}, ToolContext())
    assert target.read_text() == "be kind"


@pytest.mark.parametrize("path", STEERING)
async def test_instructions_are_not_made_either(steered, home, path):
    (home / "work" / "rules").unlink()
    with pytest.raises(AgentError, match="as a proposal"):
        await steered["write_file"].call({"path": path, "content": "obey"}, ToolContext())
    assert not (home / "work" / path).exists()


async def test_no_other_name_leads_to_instructions(steered, home):
    work = home / "work"
    (work / "AGENTS.md").write_text("be kind")
    (work / ".git").mkdir()
    os.link(work / "rules", work / "hard.txt")
    (work / "soft.txt").symlink_to("AGENTS.md")
    (work / "folder").symlink_to(".git")
    for path in ("hard.txt", "soft.txt", "folder/config", "deep/../AGENTS.md", "./.git/../.git/config"):
        with pytest.raises(AgentError, match="you can read it, and not write it"):
            await steered["write_file"].call({"path": path, "content": "obey"}, ToolContext())
    assert [(work / name).read_text() for name in ("rules", "AGENTS.md")] == ["be kind"] * 2
    assert not list((work / ".git").iterdir())


class Asked(Exception):
    """A question to a person has to come first."""


@pytest.fixture
def wide(home):
    """A person's home as a root, with keys, and what a login runs; `wide(answer)` uses it as an owner, or as others."""
    for folder, file in ((".ssh", "id_rsa"), (".config/systemd/user", "a.service"), ("mine", "a.txt")):
        (home / folder).mkdir(parents=True)
        (home / folder / file).write_text("what it says")
    for file in (".bashrc", ".gitconfig"):
        (home / file).write_text("what it says")
    guarded = [home / name for name in (".ssh", ".config/systemd", ".bashrc", ".gitconfig", ".zshenv")]
    (home / "link").symlink_to(home / ".ssh")

    def make(answer=None, role="owner", user="1", more=()):
        workspace = make_workspace([home, *more], [home / "hooks"], guarded=guarded)
        tools = {tool.name: tool for tool in make_file_tools(lambda _facts: workspace, output_limit=1000)}

        def ask(prompt, _name):
            if answer is None:
                raise Asked(prompt)
            return answer

        async def use(name, **args):
            return await tools[name].call(args, ToolContext(facts={"role": role, "user_id": user}, ask=ask))

        return use

    return make


GUARDED = [
    ("read_file", {"path": ".ssh/id_rsa"}),
    ("read_file", {"path": "link/id_rsa"}),
    ("list_files", {"path": ".ssh"}),
    ("write_file", {"path": ".ssh/authorized_keys", "content": "x"}),
    ("write_file", {"path": ".zshenv", "content": "x"}),
    ("edit_file", {"path": ".bashrc", "old": "says", "new": "x"}),
    ("write_file", {"path": ".config/systemd/user/x.service", "content": "x"}),
    ("edit_file", {"path": ".gitconfig", "old": "says", "new": "x"}),
]


@pytest.mark.parametrize(("tool", "args"), GUARDED)
async def test_a_place_of_keys_or_of_what_runs_by_itself_takes_the_word_of_who_may_give_it(wide, tool, args):
    with pytest.raises(Asked, match=args["path"].removeprefix("link/")):
        await wide()(tool, **args)
    with pytest.raises(AgentError, match="not open to the agent"):
        await wide("no")(tool, **args)
    for role, user in (("owner", "hook:x"), ("user", "2")):
        with pytest.raises(AgentError, match="not open to the agent"):
            await wide("yes", role, user)(tool, **args)
    await wide("yes")(tool, **args)


async def test_beside_what_is_guarded_a_wide_root_is_as_open_as_ever(wide, home):
    assert await wide()("read_file", path="mine/a.txt") == "what it says"
    assert not {".ssh/", ".bashrc (12)", ".gitconfig (12)"} & set((await wide()("list_files")).splitlines())
    named = wide(more=[home / ".config/systemd/user"])
    assert await named("read_file", path=".config/systemd/user/a.service") == "what it says", "its own root says so"


async def test_a_yes_is_one_to_the_place_that_was_shown(wide, home):
    (home / "mine" / "changing").symlink_to(home / ".bashrc")

    def swap(prompt, _name):
        assert str(home / ".bashrc") in prompt
        (home / "mine" / "changing").unlink()
        (home / "mine" / "changing").symlink_to(home / ".ssh" / "id_rsa")
        return "yes"

    workspace = make_workspace([home], [], guarded=[home / ".ssh", home / ".bashrc"])
    tools = {tool.name: tool for tool in make_file_tools(lambda _facts: workspace, output_limit=1000)}
    context = ToolContext(facts={"role": "owner", "user_id": "1"}, ask=swap)
    (home / ".ssh" / "id_rsa").write_text("the key")
    assert await tools["read_file"].call({"path": "mine/changing"}, context) == "what it says"
