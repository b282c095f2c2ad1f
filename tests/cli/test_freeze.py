"""`hooks freeze` and `hooks sync`: another home made the same, by a file that may be a stranger's."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.cli.test_install import code_of, commit, git, lock_of
from tests.installer.archives import GREET, HANDLER, MANIFEST, put

pytestmark = pytest.mark.process


def test_sync_makes_another_home_the_same(gateway: GatewayProcess, tmp_path: Path, greet: Path) -> None:
    repository = tmp_path / "repository"
    commit(repository, {"HOOK.yaml": MANIFEST.replace("greet", "wave"), "handler.py": HANDLER})
    for source in (str(greet), f"git+file://{repository}"):
        assert gateway.cli("hooks", "install", source, "--yes").returncode == 0
    frozen = tmp_path / "frozen.json"
    done = gateway.cli("hooks", "freeze")
    assert f"! greet comes from {greet} of this machine" in done.stderr
    frozen.write_text(done.stdout)
    with GatewayProcess(tmp_path / "other") as other:
        other.home.root.mkdir(mode=0o700)
        extra = put(tmp_path / "extra", {**GREET, "HOOK.yaml": MANIFEST.replace("greet", "extra")})
        other.cli("hooks", "install", str(extra), "--yes")
        done = other.cli("hooks", "sync", str(frozen), "--yes", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["removed"] == ["extra"]
        assert lock_of(other) == lock_of(gateway)
        file = other.home.own_folder / lock_of(other)["greet"]["path"] / "handler.py"
        file.chmod(0o600)
        file.write_text("raise SystemExit('planted')\n")
        mended = other.cli("hooks", "sync", str(frozen), "--yes", "--json")
        assert (json.loads(mended.stdout.splitlines()[-1])["installed"], code_of(other)) == (["greet"], HANDLER)
        put(greet, {"handler.py": HANDLER.replace("hello", "other")})
        away = put(tmp_path, {"away.json": frozen.read_text().replace(str(greet), "/elsewhere/greet")}) / "away.json"
        refused = other.cli("hooks", "sync", str(away), "--yes")
        assert "greet: /elsewhere/greet is not there; it was frozen where it came from there" in refused.stderr
        assert "install it there from where both find it" in refused.stderr
        gateway.cli("hooks", "remove", "greet")
        changed = gateway.cli("hooks", "sync", str(frozen), "--yes")
        assert (changed.returncode, "is not what was frozen" in changed.stderr) == (1, True), changed.stderr
        assert "to use the present version, install it where the hooks are and freeze again" in changed.stderr


@pytest.mark.row("T25")
def test_a_commit_that_no_branch_leads_to_is_told_before_a_yes(gateway: GatewayProcess, tmp_path: Path) -> None:
    """A stranger's file may name one that somebody has put into a copy of the repository."""
    repository = tmp_path / "repository"
    first = commit(repository, GREET)
    stray = commit(repository, {"handler.py": HANDLER.replace("hello", "planted")})
    git(repository, "update-ref", "refs/pull/1/head", stray)
    assert gateway.cli("hooks", "install", f"git+file://{repository}", "--yes").returncode == 0
    git(repository, "reset", "--hard", first)
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    gateway.cli("hooks", "remove", "greet")
    told = f"! greet: no branch and no tag of file://{repository} leads to the commit {stray[:12]}"
    assert told in gateway.cli("hooks", "sync", str(frozen)).stderr
    commit(repository, {"README": "more"})
    git(repository, "branch", "again", stray)
    assert "no branch" not in gateway.cli("hooks", "sync", str(frozen)).stderr


@pytest.mark.row("T25")
def test_sync_says_what_install_says_before_a_yes(gateway: GatewayProcess, tmp_path: Path, greet: Path) -> None:
    """What Python runs is not what is shown, and which guard of a skill another hook stands in for."""
    put(greet, {"handler.py": f"# coding: utf-7\n{HANDLER}"})
    tea = {"SKILL.md": "---\nname: tea\ndescription: Tea.\n---\nSteep.\n"}
    tea |= {"hooks/greet/HOOK.yaml": "intercepts: [tool:before]\n", "hooks/greet/handler.py": HANDLER}
    assert gateway.cli("hooks", "install", str(greet), "--yes").returncode == 0
    without = put(tmp_path, {"without.json": gateway.cli("hooks", "freeze").stdout}) / "without.json"
    assert gateway.cli("skills", "install", str(put(tmp_path / "tea", tea)), "--yes").returncode == 0
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    gateway.cli("hooks", "remove", "greet")
    told = gateway.cli("hooks", "sync", str(without)).stdout
    assert "! handler.py is in utf-7" in told
    assert "! it replaces the hook of this name that the skill tea brings: " in told
    gateway.cli("skills", "remove", "tea")
    assert "! hooks above replace these of its hooks: greet\n" in gateway.cli("hooks", "sync", str(frozen)).stdout


@pytest.mark.row("T25")
@pytest.mark.parametrize("kind", ["hooks", "skills"])
def test_a_guard_becomes_weaker_by_a_persons_yes_alone(gateway: GatewayProcess, tmp_path: Path, kind: str) -> None:
    """The file may be a stranger's, and what it names may have been read by nobody here."""
    skill = {"SKILL.md": "---\nname: tea\ndescription: x\n---\n"} if kind == "skills" else {}
    inner = "hooks/tea/" if skill else ""
    guards = "name: tea\nintercepts: [tool:before]\non_error: deny\n"
    weak = {f"{inner}HOOK.yaml": guards.replace("deny", "skip"), f"{inner}handler.py": HANDLER, **skill}
    commit(tmp_path / "tea", weak)
    source = f"git+file://{tmp_path}/tea"
    gateway.cli(kind, "install", source, "--yes")
    frozen = put(tmp_path, {"frozen.json": gateway.cli("hooks", "freeze").stdout}) / "frozen.json"
    gateway.cli(kind, "remove", "tea")
    commit(tmp_path / "tea", {f"{inner}HOOK.yaml": guards})
    gateway.cli(kind, "install", source, "--yes")
    guarded = gateway.home.hooks_lock.read_text()
    done = gateway.cli("hooks", "sync", str(frozen), "--yes")
    assert (done.returncode, gateway.home.hooks_lock.read_text()) == (1, guarded), done.stderr
    assert "denies nothing where it fails: on_error: skip" in done.stdout
    assert "tea would guard less, and this run cannot ask you; nothing was changed" in done.stderr
    without = put(tmp_path, {"without.json": '{"version": 1, "hooks": {}, "skills": {}}'}) / "without.json"
    done = gateway.cli("hooks", "sync", str(without), "--yes")
    assert (done.returncode, gateway.home.hooks_lock.read_text()) == (1, guarded), done.stderr
    assert "tea, which is removed, decides no more on tool:before" in done.stdout
    assert "tea would guard less" in done.stderr


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("kind", "name", "change", "named"),
    [
        ("hooks", "../../../hooks", {}, "hooks.../../../hooks: its name"),
        ("hooks", "{outside}", {}, ": its name"),
        ("skills", "../../../hooks", {}, "skills.../../../hooks: its name"),
        ("hooks", "greet", {"path": "../hooks/greet"}, "hooks.greet: its path"),
        ("hooks", "greet", {"digest": "folder:00"}, "hooks.greet: its digest"),
        ("hooks", "greet", {"packages": ["x @ https://127.0.0.1:1/x.whl"]}, "hooks.greet: its packages"),
    ],
)
def test_what_a_frozen_file_names_stays_in_its_place(
    gateway: GatewayProcess, tmp_path: Path, kind: str, name: str, change: dict[str, Any], named: str
) -> None:
    """The file may be a stranger's; what it names is fetched into a folder of that name."""
    unnamed, outside = put(tmp_path / "no name!", {**GREET, "HOOK.yaml": "events: [agent:end]\n"}), tmp_path / "outside"
    digest, path = f"folder:{'0' * 64}", f"installed/{name}@{'0' * 12}"
    entry = {"source": str(unnamed), "digest": digest, "path": path, "grants": {}, **change}
    frozen = tmp_path / "frozen.json"
    said = {"hooks": {}, "skills": {}, kind: {name.format(outside=outside): entry}}
    frozen.write_text(json.dumps({"version": 1, **said}))
    done = gateway.cli("hooks", "sync", str(frozen), "--yes")
    assert (done.returncode, str(frozen) in done.stderr, named in done.stderr) == (1, True, True), done.stderr
    assert [*gateway.home.hooks.rglob("*")] == []
    assert not outside.exists()
