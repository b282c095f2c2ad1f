"""The installed hooks are the earlier or the agreed ones, whole, whatever cuts off the change."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.hooks.manifests.installed import HooksLock
from gateway.hooks.places.trusted_copy import has_digest
from gateway.installer.lock_file import has_installed_packages, open_workspace
from gateway.testing import GatewayProcess
from tests.installer.archives import HANDLER, put

pytestmark = pytest.mark.process

# Killed where it is about to move something for the time of this number.
CUT = """
import os, signal, sys
left = int(sys.argv.pop(1))
def count(event, _):
    global left
    if event == "os.rename":
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
"""
COMMAND_LINE = "from gateway.cli import main; sys.exit(main())"
# Other packages of a hook that stays as it is.
OTHER_PACKAGES = """
import shutil
from dataclasses import replace
from pathlib import Path
from gateway.config.home import Home
from gateway.daemon.dialects import DIALECTS
from gateway.installer.fetched_hook import read_hook
from gateway.installer.lock_file import InstalledChange, change_installed, open_workspace
home, folder, packages = Home(Path(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])
with open_workspace(home) as work:
    place = shutil.copytree(packages, work / "packages")
    hook = replace(read_hook(folder, DIALECTS), packages=(packages.name,), packages_folder=place)
    change_installed(home, InstalledChange(hooks=[hook]), work)
"""
SKILL = "---\nname: coffee\ndescription: How coffee is made.\n---\nGrind it.\n"
GUARD = "description: Shouts\nintercepts: [llm:after]\n"
COFFEE = {"SKILL.md": SKILL, "hooks/loud/HOOK.yaml": GUARD, "hooks/loud/handler.py": HANDLER}
OWN_MOUNTS = ["unshare", "--mount", "sh", "-ec"]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Freeze another home: the hook `skill-coffee` and the skill `coffee`, and a large one."""
    tmp_path = tmp_path_factory.mktemp("many")
    manifest = "name: skill-coffee\nevents: [agent:end]\n"
    hook = put(tmp_path / "skill-coffee", {"HOOK.yaml": manifest, "handler.py": HANDLER})
    large = put(tmp_path / "wave", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": HANDLER, "x": "x" * 300_000})
    skill = put(tmp_path / "coffee", COFFEE)
    with GatewayProcess(tmp_path / "other") as other:
        other.home.root.mkdir(mode=0o700)
        for kind, folder in (("hooks", hook), ("hooks", large), ("skills", skill)):
            assert other.cli(kind, "install", str(folder), "--yes").returncode == 0
        frozen = tmp_path / "frozen.json"
        frozen.write_text(other.cli("hooks", "freeze").stdout)
    return frozen


def cut(gateway: GatewayProcess, *words: str, program: str = COMMAND_LINE) -> Iterator[bool]:
    """The program, killed at one step after the other; at last it comes to its end."""
    for step in range(1, 60):
        command = [sys.executable, "-c", CUT + program, str(step), *words]
        done = subprocess.run(command, env=gateway.environ, capture_output=True, text=True, check=False)
        assert done.returncode in (0, -9), done.stderr
        yield done.returncode == 0
        if done.returncode == 0:
            return
    raise AssertionError("it had no end")


def list_intact(gateway: GatewayProcess) -> list[str]:
    """List the entries of the lock, all of whose files are there."""
    lock = HooksLock(gateway.home.hooks_lock)
    hooks = [(name, one.path, one.digest) for name, one in lock.list()]
    skills = [(name, one.path, one.digest) for name, one in lock.list_skills()]
    for _, path, digest in (*hooks, *skills):
        assert has_digest(lock.folder / path, digest), path
    return sorted(name for name, _, _ in (*hooks, *skills))


@pytest.mark.row("T25")
def test_a_sync_that_is_killed_has_installed_all_or_nothing(gateway: GatewayProcess, many: Path) -> None:
    whole = ["coffee", "skill-coffee", "wave"]
    seen = [(list_intact(gateway), is_over) for is_over in cut(gateway, "hooks", "sync", str(many), "--yes")]
    assert seen[-1] == (whole, True)
    assert {len(names) for names, _ in seen} == {0, 3}
    assert len(seen) > 7
    assert [*gateway.home.own_folder.glob(".hooks.lock.*")] == []


@pytest.mark.row("T25")
def test_a_skill_whose_update_is_killed_is_the_old_one_or_the_new_one(gateway: GatewayProcess, tmp_path: Path) -> None:
    coffee = put(tmp_path / "coffee", COFFEE)
    assert gateway.cli("skills", "install", str(coffee), "--yes").returncode == 0
    put(coffee, {"SKILL.md": SKILL + "Pour it.\n"})
    seen = list[bool]()
    for is_over in cut(gateway, "skills", "update", "--yes"):
        assert list_intact(gateway) == ["coffee"]
        ((_, found),) = HooksLock(gateway.home.hooks_lock).list_skills()
        seen.append("Pour it." in (gateway.home.own_folder / found.path / "SKILL.md").read_text())
        assert seen[-1] or not is_over
    assert set(seen) == {False, True}


@pytest.mark.row("T25")
def test_a_hook_whose_packages_are_exchanged_has_the_old_or_the_new_ones(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    greet = put(tmp_path / "greet", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": HANDLER})
    old, new = (put(tmp_path / name, {"words.py": name}) for name in ("words==1", "words==2"))
    *_, is_over = cut(gateway, str(gateway.home.root), str(greet), str(old), program=OTHER_PACKAGES)
    assert is_over
    seen = list[str]()
    for _ in cut(gateway, str(gateway.home.root), str(greet), str(new), program=OTHER_PACKAGES):
        ((_, entry),) = HooksLock(gateway.home.hooks_lock).list()
        assert has_installed_packages(gateway.home, entry)
        seen += entry.packages
    assert [*dict.fromkeys(seen)] == ["words==1", "words==2"]
    with open_workspace(gateway.home):  # which clears up
        (folder,) = gateway.home.installed_hooks.glob(".packages/*")
    assert (folder / "words.py").read_text() == "words==2"


def can_mount() -> bool:
    """Return True if this process may mount: root of Linux; most containers forbid it."""
    trial = [*OWN_MOUNTS, "mount -t tmpfs tmpfs /mnt"]
    return bool(shutil.which("unshare")) and not subprocess.run(trial, capture_output=True, check=False).returncode


@pytest.mark.machine
@pytest.mark.skipif(not can_mount(), reason="nothing can be mounted here")
@pytest.mark.parametrize("size", [500_000, 200_000])
def test_a_full_disk_installs_nothing_and_says_so(gateway: GatewayProcess, many: Path, size: int) -> None:
    """It is full while things come, or while they are laid out."""
    ours, home = (sys.executable, "-m", "gateway.cli", "hooks"), gateway.home.root
    sync, freeze = shlex.join([*ours, "sync", str(many), "--yes"]), shlex.join([*ours, "freeze"])
    script = f"mount -t tmpfs -o mode=700,size={size} tmpfs '{home}'\n{sync} >/dev/null || echo $?; {freeze}"
    run = [*OWN_MOUNTS, script]
    done = subprocess.run(run, env=gateway.environ, capture_output=True, text=True, check=False)
    assert "No space left on device: " in done.stderr, done.stderr
    assert "make room there" in done.stderr
    code, _, frozen = done.stdout.partition("\n")
    assert (code, json.loads(frozen)["hooks"], json.loads(frozen)["skills"]) == ("1", {}, {})
