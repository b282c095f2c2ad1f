"""Code is known by its content, checked without being run, and read for what a Hermes folder cannot declare."""

from pathlib import Path

import pytest

from gateway.hooks.folders.code import check_code, infer_hermes_manifest, read_code
from gateway.hooks.folders.manifest import Manifest
from gateway.hooks.folders.manifest_reader import read_manifest
from gateway.hooks.folders.sources import FoundHook, Source, find_hook_folder


def plant(at: Path, handler: str, manifest: str = "events: [agent:end]\n") -> FoundHook:
    at.mkdir(exist_ok=True)
    (at / "HOOK.yaml").write_text(manifest)
    (at / "handler.py").write_text(handler)
    folder = find_hook_folder(Source(at.parent, "home"), at.name)
    assert folder
    return folder


def findings(folder: FoundHook) -> list[str]:
    manifest = read_manifest(folder.path).required(folder.path)
    return [str(finding) for finding in check_code(folder, manifest, read_code(folder, manifest.command))]


def test_the_hash_is_over_names_and_contents_alone(tmp_path: Path) -> None:
    first = read_code(plant(tmp_path / "a", "A = 1\n")).digest
    (tmp_path / "a" / "log.txt").write_text("noise")
    assert read_code(plant(tmp_path / "a", "A = 1\n")).digest == first
    assert read_code(plant(tmp_path / "a", "A = 2\n")).digest != first
    assert read_code(plant(tmp_path / "b", "A = 1\n")).digest == first


def test_the_declared_command_counts_as_code(tmp_path: Path) -> None:
    folder = plant(tmp_path / "a", "")
    (tmp_path / "a" / "hook.js").write_text("1")
    first = read_code(folder, ("node", "./hook.js")).digest
    (tmp_path / "a" / "hook.js").write_text("2")
    assert read_code(folder, ("node", "./hook.js")).digest != first


def test_a_syntax_error_has_its_line_and_column(tmp_path: Path) -> None:
    assert findings(plant(tmp_path / "a", "def handle(e, c):\n    return (1\n")) == [
        "a/handler.py:2:12: error: '(' was never closed; correct this line"
    ]
    assert "outside function" in findings(plant(tmp_path / "b", "return 1\n"))[0]
    assert findings(plant(tmp_path / "c", "x = '\\d'\n\n\ndef handle(e, c): ...\n")) == []
    assert "null bytes" in findings(plant(tmp_path / "d", "a\0b"))[0]
    assert findings(plant(tmp_path / "e", "-" * 40_000 + "1"))


@pytest.mark.row("T22")
def test_checking_runs_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    folder = plant(tmp_path / "a", f"open({str(canary)!r}, 'w')\n\n\ndef handle(e, c): ...\n")
    assert findings(folder) == []
    assert not canary.exists()


def test_a_folder_without_a_handler_says_so(tmp_path: Path) -> None:
    folder = plant(tmp_path / "a", "")
    (tmp_path / "a" / "handler.py").unlink()
    folder = find_hook_folder(Source(tmp_path, "home"), "a") or folder
    assert "has no handler.py" in findings(folder)[0]


@pytest.mark.row("T21")
def test_a_program_must_be_in_the_folder_and_executable(tmp_path: Path) -> None:
    manifest = "events: [agent:end]\ncommand: [./run.sh]\n"
    folder = plant(tmp_path / "a", "", manifest)
    assert "a/run.sh: error: is not in the folder" in findings(folder)[0]
    (tmp_path / "a" / "run.sh").write_text("#!/bin/sh\n")
    assert f"chmod +x {tmp_path / 'a' / 'run.sh'}" in findings(folder)[0]
    (tmp_path / "a" / "run.sh").chmod(0o755)
    assert findings(folder) == []
    outside = plant(tmp_path / "b", "", "events: [agent:end]\ncommand: [../a/run.sh]\n")
    assert "is not in the folder" in findings(outside)[0]


def hermes(source: str, *events: str) -> Manifest:
    return infer_hermes_manifest(
        Manifest(folder="x", name="x", events=events, hermes=True), {"handler.py": source.encode()}
    )


@pytest.mark.row("T26")
def test_what_a_hermes_handler_reads_of_the_environment_is_declared_by_its_source() -> None:
    found = hermes("import os\nA = os.environ['TOKEN']\nb = os.getenv(\"OTHER_KEY\", '')\nc = 'lower'\n")
    assert found.env == ("TOKEN", "OTHER_KEY")
    assert found.found == ("TOKEN", "OTHER_KEY")
    assert hermes("A = 'TOKEN'\n").env == ()


def test_a_hermes_handler_that_sends_may_send() -> None:
    assert hermes("from tools.send_message_tool import send_message_tool\n").uses == ("send",)


def test_a_hermes_handler_that_decides_about_commands_intercepts_them() -> None:
    found = hermes("def handle(e, c): return {'decision': 'deny'}\n", "command:*", "agent:end")
    assert (found.events, found.intercepts) == (("agent:end",), ("command:*",))
    assert hermes("def handle(e, c): pass\n", "command:*").events == ("command:*",)
