"""The sandbox of the shell tool: the reach of commands, its limits, and the questions when it is too narrow."""

import os
import re
import socket
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from gateway.agent.context_files import ContextFiles
from gateway.agent.toolbox.shell import NOT_OUTSIDE, ShellOptions, make_shell_tool, run_command
from gateway.agent.toolbox.shell_rules import ShellPlaces
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.config.settings import SandboxSettings, ToolSettings
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.testing.live_gateway import until
from gateway.worker.protocol import ForkServerSettings
from gateway.worker.sandbox import SandboxSupport, find_support

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock"),
]

OWNER = {"role": "owner", "user_id": "1001"}
REFUSED = re.compile("denied|Read-only file system")


@pytest.fixture(scope="module")
async def fork_server():
    async with ForkServerClient(ForkServerSettings(processes=256)) as fork_server:
        yield fork_server


@pytest.fixture
def shell_in(fork_server, tmp_path):
    """A home with a secret in it, a workspace and a skill below that, keys beside it."""
    home = tmp_path / "user" / ".hermes"
    root, skills, keys = home / "hermes-gateway" / "workspace", home / "skills", home.parent / ".ssh"
    for folder in (root, skills, keys):
        folder.mkdir(parents=True)
    for file in (home / ".env", skills / "SKILL.md", keys / "id_rsa", home.parent / "notes.txt", root / "own.txt"):
        file.write_text(f"what stands in {file.name}\n")
    (root / "link").symlink_to(home / ".env")

    def make(shell="ask", support=None, rules=(), **sandbox):
        settings = ToolSettings(shell=shell, shell_allow=rules, sandbox=SandboxSettings(**sandbox))
        places = ShellPlaces(root, (root,), (home, keys), os.environ["PATH"])
        made = ShellSandbox(settings.sandbox, support or find_support(), (skills,))
        watch = partial(ContextFiles(home / "hermes-gateway" / "context").watch, [root / "AGENTS.md"])
        env = {"PATH": os.environ["PATH"]}
        return ShellOptions(settings, lambda _facts: places, env, fork_server.run, made, watch)

    return make


async def text_of(shell, command, facts=OWNER, **more):
    return (await run_command(shell, command, facts, **more)).text


async def test_it_reads_everything_but_the_home_and_keys(shell_in):
    shell = shell_in()
    for hidden in ("../../.env", "link", "../../../.ssh/id_rsa", "/dev/mem", f"/proc/{os.getpid()}/environ"):
        text = await text_of(shell, f"cat {hidden}")
        assert "what stands" not in text, hidden
        assert "denied" in text or "No such" in text or "not permitted" in text, (hidden, text)
    for free in ("own.txt", "../../skills/SKILL.md", "../../../notes.txt", "/etc/hostname", "/proc/meminfo"):
        assert "[exit code" not in await text_of(shell, f"cat {free} | head -3"), free
    assert "denied" in await text_of(shell, "ls ../../../.ssh")
    assert "what stands" in await text_of(shell, "cat ../../.env", is_outside=True)


async def test_it_writes_the_roots_and_a_folder_that_goes_with_it(shell_in, tmp_path):
    shell = shell_in()
    text = await text_of(shell, 'mkdir below && echo one > below/two && echo x > "$TMPDIR/y" && echo "$TMPDIR"')
    assert text.startswith("/")
    assert not os.access(text, os.F_OK)
    assert (shell.find_places({}).folder / "below/two").read_text() == "one\n"
    for place in (tmp_path / "new", tmp_path / "user/notes.txt", "/tmp/new-of-the-shell-test", "../../skills/SKILL.md"):
        assert REFUSED.search(await text_of(shell, f"echo x >> {place}")), place
    assert "what stands" in (tmp_path / "user/notes.txt").read_text()
    assert "denied" not in await text_of(shell, "echo x > /dev/null")


async def test_what_is_temporary_goes_however_deep_it_lies_or_closed_it_is(shell_in):
    shell = shell_in()
    deep = "import os; [(os.mkdir('a'), os.chdir('a')) for _ in range(1500)]"
    closed = 'cd "$TMPDIR"; echo "$TMPDIR"; mkdir -p b/c; ln -s / b/c; chmod 0 b .'
    command = f'{closed}; {sys.executable} -c "{deep}"; exit 3'
    folder, *said = (await text_of(shell, command)).splitlines()
    assert said[-1] == "[exit code 3]"
    assert not list(Path(folder).parent.glob(f"{Path(folder).name}*"))


async def test_what_is_hidden_in_a_root_stays_hidden(shell_in, fork_server, tmp_path):
    """A root that is the person's whole home is granted around what is hidden in it."""
    whole = tmp_path / "user"
    places = ShellPlaces(whole, (whole,), (whole / ".hermes", whole / ".ssh"), "")
    shell = replace(shell_in(), find_places=lambda _facts: places, env={})
    assert "denied" in await text_of(shell, "cat .ssh/id_rsa")
    assert REFUSED.search(await text_of(shell, "echo x >> .ssh/id_rsa"))
    assert await text_of(shell, "cat notes.txt") == "what stands in notes.txt"
    (whole / ".bashrc").write_text("as it was")
    places = replace(places, kept=(whole / ".bashrc", whole / ".zshenv"))
    shell = replace(shell, find_places=lambda _facts: places)
    for changed in ("echo x >> .bashrc", "mv .bashrc y", "echo x > .zshenv", "ln -s notes.txt .zshenv"):
        assert REFUSED.search(await text_of(shell, changed)), changed
    assert await text_of(shell, "cat .bashrc; echo more >> notes.txt") == "as it was"


async def test_what_runs_by_itself_appears_nowhere_in_a_root_where_it_was_not(shell_in, tmp_path):
    whole = tmp_path / "user"
    (whole / ".config/htop").mkdir(parents=True)
    places = ShellPlaces(whole, (whole,), (), "", kept=(whole / ".config/systemd", whole / ".zshenv"))
    shell = replace(shell_in(), find_places=lambda _facts: places, env={})
    for changed in ("mkdir .config/systemd", "mv .config x", "ln -s htop .config/systemd", "echo x > .zshenv"):
        assert REFUSED.search(await text_of(shell, changed)), changed
    assert await text_of(shell, "echo x > .config/htop/htoprc && cat .config/htop/htoprc") == "x"


@pytest.mark.parametrize("key", ["write", "read", "root", "alias"])
async def test_a_place_in_a_root_leads_nowhere_else_by_a_link_that_a_command_made(shell_in, tmp_path, key):
    whole = tmp_path / "user"
    root, inner = whole / "work", whole / "work/a/inner"
    inner.mkdir(parents=True)
    (whole / "alias").symlink_to("work")
    roots = (root, *{"root": (inner,), "alias": (whole / "alias/a/inner",)}.get(key, ()))
    named = {name: (inner,) if key == name else () for name in ("read", "write")}
    sandbox = ShellSandbox(SandboxSettings(), find_support(), named["read"], named["write"])
    places = ShellPlaces(root, roots, (whole / ".ssh",), "")
    shell = replace(shell_in(), find_places=lambda _facts: places, env={}, sandbox=sandbox)
    assert await text_of(shell, "echo x > a/inner/y && cat a/inner/y") == "x"
    for swapped in ("mv a/inner b; ln -s ../../.ssh a/inner", "mv a c; ln -s .. a; mkdir d; ln -s ../.ssh inner"):
        await text_of(shell, swapped)
        for path in ("a/inner", "inner", "../.ssh"):
            assert "what stands" not in await text_of(shell, f"cat {path}/id_rsa"), (swapped, path)


async def test_a_place_beside_a_root_may_be_a_link(shell_in, tmp_path):
    whole = tmp_path / "user"
    (whole / "elsewhere").mkdir()
    (whole / "work").symlink_to("elsewhere")
    places = ShellPlaces(whole, (whole, whole / "work"), (whole / ".ssh",), "", kept=(whole / ".bashrc",))
    shell = replace(shell_in(), find_places=lambda _facts: places, env={})
    assert await text_of(shell, "echo x > work/y && cat elsewhere/y") == "x"


async def test_a_root_that_is_hidden_itself_is_a_root(shell_in, fork_server, tmp_path):
    """Who makes the gateway's home a root has said so; what lies in it and steers the gateway stays hidden."""
    home = tmp_path / "user" / ".hermes"
    places = ShellPlaces(home, (home,), (home, home / ".env"), "")
    shell = replace(shell_in(), find_places=lambda _facts: places, env={})
    assert await text_of(shell, "echo x > hermes-gateway/new && cat hermes-gateway/new") == "x"
    assert "denied" in await text_of(shell, "cat .env")


async def test_a_temporary_folder_that_cannot_be_made_is_said(shell_in):
    shell = replace(shell_in(), env={"TMPDIR": "/nowhere"})
    assert "no space for temporary files" in await text_of(shell, "true")


async def test_a_command_reads_nothing_temporary_of_another_one(shell_in, tmp_path):
    shell, said = shell_in(), tmp_path / "user/.hermes/hermes-gateway/workspace/told"
    async with anyio.create_task_group() as group:
        keeps = 'echo secret > "$TMPDIR/kept"; echo "$TMPDIR" > new; mv new told'
        group.start_soon(text_of, shell, f"{keeps}; while [ -e told ]; do :; done")
        await until(said.exists)
        own = said.read_text().strip()
        for command in (f"cat {own}/kept", f"ls {own}", f"ls {own}/..", f"echo x > {own}/new"):
            assert "[exit code" in await text_of(shell, command), command
        said.unlink()


async def test_what_is_set_is_added(shell_in, tmp_path):
    shell = shell_in()
    more = tmp_path / "more"
    more.mkdir()
    sandbox = ShellSandbox(SandboxSettings(), find_support(), (tmp_path / "user/.ssh",), (more,))
    wider = replace(shell, sandbox=sandbox)
    assert await text_of(wider, f"cat ../../../.ssh/id_rsa && echo x > {more}/x") == "what stands in id_rsa"


CONNECT = """
import socket, sys
way, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if way == "tcp":
    socket.create_connection(("127.0.0.1", port), 5)
elif way == "udp":
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port))
elif way == "mptcp":
    socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(("127.0.0.1", port))
elif way == "fast open":
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).sendto(b"x", 0x20000000, ("127.0.0.1", port))
elif way == "listen":
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).listen()
else:
    socket.socket(socket.AF_UNIX).connect(path)
print("through")
"""
NET = ("tcp", "udp", "mptcp", "fast open", "listen")


@pytest.mark.parametrize("way", [*NET, "a socket with a path"])
async def test_no_network_is_none_by_any_way(shell_in, way, tmp_path):
    inside = shell_in()
    (inside.find_places({}).folder / "connect.py").write_text(CONNECT)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        command = f"{sys.executable} connect.py '{way}' {server.getsockname()[1]} {tmp_path / 's'}"
        refused = shell_in(shell="sandboxed") if way in NET else inside
        assert "through" not in await text_of(refused, command)
        allowed = inside if way in NET else shell_in(sockets=True)
        outside = await text_of(inside, command, is_outside=True)
        if way in ("tcp", "udp", "a socket with a path"):
            assert outside == "through"
            assert await text_of(allowed, command) == "through"


async def test_a_program_of_the_owners_may_stand_in_front_instead(shell_in):
    shell = shell_in(command=("env", "FRONT=is there"))
    assert await text_of(shell, 'echo "$FRONT"; cat ../../.env') == "is there\nwhat stands in .env"
    assert await text_of(shell, 'echo "$FRONT"', is_outside=True) == "[no output]"
    assert "tools.sandbox" in await text_of(shell, "echo Permission denied; exit 1")
    assert "tools.sandbox" not in await text_of(shell, "echo Permission denied; exit 1", is_outside=True)
    with pytest.raises(AgentError, match=r"tools\.sandbox\.command: program bwrapp not found"):
        await text_of(shell_in(command=("bwrapp",)), "true")


async def test_where_it_is_off_or_cannot_be_held_commands_run_as_before(shell_in):
    for shell in (shell_in(mode="off"), shell_in(support=SandboxSupport(0, True))):
        assert await text_of(shell, "cat ../../.env") == "what stands in .env"


@pytest.mark.parametrize(
    ("shell", "facts", "asks"),
    [
        ("ask", OWNER, True),
        ("sandboxed", OWNER, False),
        ("sandboxed", {"role": "admin", "user_id": "7"}, False),
        ("sandboxed", {"role": "user", "user_id": "8"}, True),
        ("sandboxed", {"role": "guest", "user_id": "9"}, True),
        ("sandboxed", {"role": "owner", "user_id": "hook:x"}, True),
        ("sandboxed", {}, True),
        ("allow", {}, False),
    ],
)
def test_who_is_asked_under_which_setting(shell_in, shell, facts, asks):
    assert shell_in(shell=shell).needs_approval("python build.py > log", facts) is asks


@pytest.mark.parametrize(
    "less",
    [
        {"mode": "off"},
        {"command": ("env",)},
        {"support": SandboxSupport(0, True)},
        {"support": SandboxSupport(7, False)},
    ],
)
def test_without_a_sandbox_that_holds_sandboxed_asks(shell_in, less):
    assert shell_in(shell="sandboxed", **less).needs_approval("python build.py", OWNER)


CALL = {"tool_calls": [{"name": "shell", "args": {"command": "echo ran >> own.txt; cat ../../.env"}}]}


@pytest.mark.parametrize(("answer", "said"), [("once", "what stands in .env"), ("no", NOT_OUTSIDE)])
async def test_an_owner_is_asked_whether_it_may_run_once_outside(stage, shell_in, answer, said):
    shell = shell_in(shell="sandboxed")
    agent = stage.agent(CALL, "ok", tools=[make_shell_tool(shell)])
    paused = await stage.play(agent, facts=OWNER)
    (question,) = paused.questions
    assert "outside" in question.prompt
    assert question.calls[0].args == CALL["tool_calls"][0]["args"]
    assert not question.can_last
    stage.answers[question.id] = answer
    again = await stage.again(agent, facts=OWNER)
    assert again.entries[2].content == said
    ran = (shell.find_places({}).folder / "own.txt").read_text().count("ran")
    assert ran == (2 if answer == "once" else 1)  # inside once, and not once more


async def test_a_yes_to_one_command_lets_no_other_run_outside(stage, shell_in):
    shell = shell_in(shell="sandboxed")
    agent = stage.agent(CALL, "ok", tools=[make_shell_tool(shell)])
    paused = await stage.play(agent, facts=OWNER)
    stage.answers[paused.questions[0].id] = "once"

    @stage.on("tool:before")
    def swap(event):
        event["args"] = {"command": "cat ../../.env > stolen"}

    again = await stage.again(agent, facts=OWNER)
    assert [call.args for call in again.questions[0].calls] == [{"command": "cat ../../.env > stolen"}]
    assert not (shell.find_places({}).folder / "stolen").exists()


@pytest.mark.parametrize("facts", [{"role": "user", "user_id": "1"}, {"role": "owner", "user_id": "hook:x"}])
async def test_nobody_else_is_offered_that_and_nor_is_a_hook(stage, shell_in, facts):
    agent = stage.agent(CALL, "ok", tools=[make_shell_tool(shell_in(shell="allow"))])
    result = await stage.play(agent, facts=facts)
    assert "tools.sandbox" in result.entries[2].content
    assert "what stands" not in result.entries[2].content
