"""A hook that is written in a repository of one's own: what `hooks new PATH` writes works as a stranger uses it."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

LIMIT = 240.0  # seconds, on a busy machine
TYPES_FROM = (22, 18)  # the version of Node that runs TypeScript as it is


def node_version() -> tuple[int, ...]:
    if not shutil.which("node"):
        return ()
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in told.strip().removeprefix("v").split("."))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    place = tmp_path / "repository"
    place.mkdir()
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    return place


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """Make the environment of a person who has installed us, with an empty home."""
    home = {"HOME": str(tmp_path), "HERMES_HOME": str(tmp_path / "home")}
    home["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, **GatewayProcess(tmp_path / "home").environ, **home}


def do(where: Path, environ: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=where, env=environ, capture_output=True, text=True)


def steps_of(workflow: Path) -> list[dict[str, Any]]:
    """Return the workflow's commands, except the installation, which is done."""
    steps = yaml.safe_load(workflow.read_text())["jobs"]["test"]["steps"]
    return [step for step in steps if "run" in step and step["name"] != "install"]


@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.parametrize("lang", ["python", "sh", pytest.param("typescript", marks=pytest.mark.machine)])
def test_what_new_writes_into_a_repository_passes_its_own_workflow(
    lang: str, repository: Path, environ: Mapping[str, str]
) -> None:
    if lang == "typescript" and node_version() < TYPES_FROM:
        pytest.skip("the node of this machine runs no TypeScript")
    words = ("./greet", "--lang", lang, "--intercept", "message:received")
    made = do(repository, environ, "hermes-gateway", "hooks", "new", *words)
    folder = repository / "greet"
    assert (made.returncode, made.stdout) == (0, f"{folder}\n"), made.stderr
    assert not Path(environ["HERMES_HOME"]).exists()
    manifest = (folder / "HOOK.yaml").read_text()
    assert manifest.startswith("# yaml-language-server: $schema=HOOK.schema.json\n")
    schema = json.loads((folder / "HOOK.schema.json").read_text())
    Draft202012Validator(schema).validate(yaml.safe_load(manifest))
    workflow = yaml.safe_load((repository / ".github/workflows/greet.yml").read_text())
    where = repository / workflow["jobs"]["test"]["defaults"]["run"]["working-directory"]
    steps = {step.get("name"): step for step in workflow["jobs"]["test"]["steps"]}
    assert steps["install"]["run"] == "pip install 'hermes-gateway @ WHERE' pytest"  # for the author to fill in
    for step in steps_of(repository / ".github/workflows/greet.yml"):
        done = do(where, environ, "sh", "-ec", step["run"])
        assert done.returncode == 0, (step, done.stdout, done.stderr)
    assert "2 passed" in done.stdout
    assert (lang != "sh") or (folder / "hook.sh").stat().st_mode & stat.S_IXOTH


@pytest.mark.timeout(2 * LIMIT)
def test_a_type_checker_finds_a_new_hook_right_and_knows_its_event(
    repository: Path, environ: Mapping[str, str], tmp_path: Path
) -> None:
    do(repository, environ, "hermes-gateway", "hooks", "new", "./greet", "--intercept", "message:received")
    handler = repository / "greet" / "handler.py"
    handler.write_text(handler.read_text() + '    context["text"] = 3\n    context["txt"]\n')
    command = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "types"), str(handler))
    lines = do(repository, environ, *command).stdout.splitlines()
    assert [line.split(":")[1] for line in lines if ": error:" in line] == ["14", "15"], lines


def test_outside_of_a_repository_new_says_what_it_leaves_out(tmp_path: Path, environ: Mapping[str, str]) -> None:
    made = do(tmp_path, environ, "hermes-gateway", "hooks", "new", "./greet")
    assert (made.returncode, "it is in no git repository" in made.stderr) == (0, True)
    assert (tmp_path / "greet" / "README.md").is_file()
    assert not [*tmp_path.rglob(".github")]


def test_new_goes_beside_what_is_there_and_touches_nothing_of_it(repository: Path, environ: Mapping[str, str]) -> None:
    (repository / "README.md").write_text("mine")
    (repository / "hook").mkdir()
    (repository / "hook" / "notes.txt").write_text("mine too")
    made = do(repository, environ, "hermes-gateway", "hooks", "new", "./hook", "--json")
    told = json.loads(made.stdout)
    assert {"README.md", "../.github/workflows/hook.yml"} < set(told["files"])
    assert [(Path(told["path"]) / file).is_file() for file in told["files"]] == [True] * len(told["files"])
    assert {"notes.txt", "handler.py", "README.md"} < {path.name for path in (repository / "hook").iterdir()}
    (repository / "hook" / "handler.py").write_text("mine = 3\n")
    again = do(repository, environ, "hermes-gateway", "hooks", "new", "./hook")
    assert (again.returncode, "is there already" in again.stderr) == (1, True)
    assert (repository / "hook" / "handler.py").read_text() == "mine = 3\n"
    whole = do(repository, environ, "hermes-gateway", "hooks", "new", ".")
    assert (whole.returncode, "README.md is there already" in whole.stderr) == (1, True)
    assert sorted(path.name for path in repository.iterdir()) == [".git", ".github", "README.md", "hook"]
