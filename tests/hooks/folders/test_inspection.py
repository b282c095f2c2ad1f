"""The inspection of a hook's content: its hash, its faults, and the part that is kept for the next start."""

import time
from pathlib import Path

import msgspec
import pytest

from gateway.daemon.dialects import make_folder_source
from gateway.hooks.places.inspection import InspectionCache, check_handler, read_code
from gateway.hooks.places.sources import HookVersion

ROOT = Path(__file__).parents[3]
OURS = sorted(path.parent for name in ("sample_hooks", "hooks_builtin") for path in (ROOT / name).glob("*/HOOK.yaml"))


def plant(tmp_path: Path) -> Path:
    folder = tmp_path / "hooks" / "weather"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HOOK.yaml").write_text("events: [agent:end]\ncommand: [./run.sh]\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def seen(folder: Path) -> HookVersion:
    found = make_folder_source(folder.parent, "home").find(folder.name)
    assert found
    return found


def test_a_study_is_kept_for_the_next_start_while_nothing_is_touched(tmp_path: Path) -> None:
    folder = plant(tmp_path)
    first = InspectionCache(tmp_path)
    made = first.inspect(seen(folder))
    first.save()
    second = InspectionCache(tmp_path)
    assert second.get(seen(folder)) is None, "a file that was just written may be written again in the same instant"
    entry = next(iter(second._known.values()))
    for name in ("HOOK.yaml", "run.sh"):
        assert entry.at - (folder / name).stat().st_ctime_ns < 2_000_000_000
    later = InspectionCache(tmp_path)
    much_later = time.time_ns() + 10**10
    later._known = {key: msgspec.structs.replace(entry, at=much_later) for key, entry in later._known.items()}
    assert later.get(seen(folder)) == made
    (folder / "run.sh").write_text("#!/bin/sh\nexit 2\n")
    assert later.get(seen(folder)) is None
    assert later.inspect(seen(folder)).digest != made.digest


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"v": 99, "entries": {}}', '{"v": 1, "entries": {"x": 5}}'])
def test_an_index_that_cannot_be_read_is_made_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    studies = InspectionCache(tmp_path)
    studies.inspect(seen(plant(tmp_path)))
    studies.save()
    assert len(InspectionCache(tmp_path)._known) == 1


@pytest.mark.parametrize("folder", OURS, ids=lambda folder: folder.name)
def test_our_own_hooks_are_in_order(folder: Path) -> None:
    assert seen(folder).source.inspect(seen(folder)).findings == ()


def test_what_is_no_hook_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert make_folder_source(tmp_path, "home").find("empty") is None
    assert make_folder_source(tmp_path, "home").find("none") is None


def plant_handler(at: Path, handler: str, manifest: str = "events: [agent:end]\n") -> HookVersion:
    at.mkdir(exist_ok=True)
    (at / "HOOK.yaml").write_text(manifest)
    (at / "handler.py").write_text(handler)
    folder = make_folder_source(at.parent, "home").find(at.name)
    assert folder
    return folder


def findings(version: HookVersion) -> list[str]:
    return [str(finding) for finding in version.source.inspect(version).findings]


def test_the_hash_is_over_names_and_contents_alone(tmp_path: Path) -> None:
    first = read_code(plant_handler(tmp_path / "a", "A = 1\n")).digest
    (tmp_path / "a" / "log.txt").write_text("noise")
    assert read_code(plant_handler(tmp_path / "a", "A = 1\n")).digest == first
    assert read_code(plant_handler(tmp_path / "a", "A = 2\n")).digest != first
    assert read_code(plant_handler(tmp_path / "b", "A = 1\n")).digest == first


def test_the_declared_command_counts_as_code(tmp_path: Path) -> None:
    folder = plant_handler(tmp_path / "a", "")
    (tmp_path / "a" / "hook.js").write_text("1")
    first = read_code(folder, ("node", "./hook.js")).digest
    (tmp_path / "a" / "hook.js").write_text("2")
    assert read_code(folder, ("node", "./hook.js")).digest != first


def test_a_syntax_error_has_its_line_and_column(tmp_path: Path) -> None:
    assert findings(plant_handler(tmp_path / "a", "def handle(e, c):\n    return (1\n")) == [
        "a/handler.py:2:12: error: '(' was never closed; correct this line"
    ]
    assert "outside function" in findings(plant_handler(tmp_path / "b", "return 1\n"))[0]
    assert findings(plant_handler(tmp_path / "c", "x = '\\d'\n\n\ndef handle(e, c): ...\n")) == []
    assert "null bytes" in findings(plant_handler(tmp_path / "d", "a\0b"))[0]
    assert findings(plant_handler(tmp_path / "e", "-" * 40_000 + "1"))


@pytest.mark.row("T22")
def test_checking_runs_nothing(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    folder = plant_handler(tmp_path / "a", f"open({str(canary)!r}, 'w')\n\n\ndef handle(e, c): ...\n")
    assert findings(folder) == []
    assert not canary.exists()


def test_a_folder_without_a_handler_says_so(tmp_path: Path) -> None:
    folder = plant_handler(tmp_path / "a", "")
    (tmp_path / "a" / "handler.py").unlink()
    folder = make_folder_source(tmp_path, "home").find("a") or folder
    assert "has no handler.py" in findings(folder)[0]


@pytest.mark.row("T21")
def test_a_program_must_be_in_the_folder_and_executable(tmp_path: Path) -> None:
    manifest = "events: [agent:end]\ncommand: [./run.sh]\n"
    folder = plant_handler(tmp_path / "a", "", manifest)
    assert "a/run.sh: error: is not in the folder" in findings(folder)[0]
    (tmp_path / "a" / "run.sh").write_text("#!/bin/sh\n")
    assert f"chmod +x {tmp_path / 'a' / 'run.sh'}" in findings(folder)[0]
    (tmp_path / "a" / "run.sh").chmod(0o755)
    assert findings(folder) == []
    outside = plant_handler(tmp_path / "b", "", "events: [agent:end]\ncommand: [../a/run.sh]\n")
    assert "is not in the folder" in findings(outside)[0]


def handler_findings(source: str) -> list[str]:
    return [str(finding) for finding in check_handler("a/handler.py", source.encode())]


@pytest.mark.parametrize(
    "source",
    [
        "def handle(event_type, context): ...",
        "async def handle(event_type, context, more=None): ...",
        "def handle(*args): ...",
        "def handle(event_type, /, context, *, note=1): ...",
        "@decorated\ndef handle(): ...",
        "handle = print",
        "from elsewhere import handle",
        "from elsewhere import work as handle",
        "from elsewhere import *",
        "from gateway.hooks import on\n\n\n@on('tool:before')\ndef guard(context): ...",
        "import gateway.hooks as h\n\n\n@h.on('tool:before')\ndef guard(context): ...",
        "if True:\n    def handle(event_type, context): ...",
        "try:\n    from fast import handle\nexcept ImportError:\n    def handle(e, c): ...",
        "globals()['han' + 'dle'] = print",
        "def handle(): ...\n\n\ndef handle(event_type, context): ...",
        "x = " + "-" * 5000 + "1\nhandle = x",
    ],
)
def test_what_can_be_called_is_fine(source: str) -> None:
    assert handler_findings(source) == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def handle(context): ...", "a/handler.py:1:1: error: `handle` takes 1 argument,"),
        ("\ndef handle(): ...", "a/handler.py:2:1: error: `handle` takes no arguments,"),
        ("def handle(a, b, c): ...", "a/handler.py:1:1: error: `handle` takes 3 arguments,"),
        ("def handle(a, b, *, c): ...", "a/handler.py:1:1: error: `handle` takes 3 arguments,"),
        (
            "def handler(event_type, context): ...",
            "a/handler.py: error: the hook has no handler to call; write def handle(",
        ),
        ("", "a/handler.py: error: the hook has no handler to call;"),
    ],
)
def test_what_cannot_be_called_is_told_with_its_place(source: str, said: str) -> None:
    (found,) = handler_findings(source)
    assert found.startswith(said)
