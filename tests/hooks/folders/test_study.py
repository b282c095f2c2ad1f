"""What contents say is kept from start to start, as long as nothing was touched; and a folder can be checked alone."""

import time
from pathlib import Path

import pytest

from gateway.hooks.folders.inspection import InspectionCache, check_folder
from gateway.hooks.folders.sources import FoundHook, Source, find_hook_folder
from gateway.hooks.folders.switches import HookSwitches, write_atomically

SAMPLES = sorted((Path(__file__).parents[3] / "sample_hooks").iterdir())


def plant(tmp_path: Path) -> Path:
    folder = tmp_path / "hooks" / "weather"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HOOK.yaml").write_text("events: [agent:end]\ncommand: [./run.sh]\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    return folder


def seen(folder: Path) -> FoundHook:
    found = find_hook_folder(Source(folder.parent, "home"), folder.name)
    assert found
    return found


def test_a_study_is_kept_for_the_next_start_while_nothing_is_touched(tmp_path: Path) -> None:
    folder = plant(tmp_path)
    first = InspectionCache(tmp_path)
    made = first.of(seen(folder))
    first.save()
    second = InspectionCache(tmp_path)
    assert second.known(seen(folder)) is None, "a file that was just written may be written again in the same instant"
    entry = next(iter(second._known.values()))
    for name in ("HOOK.yaml", "run.sh"):
        assert entry.at - (folder / name).stat().st_ctime_ns < 2_000_000_000
    later = InspectionCache(tmp_path)
    later._known = {key: type(entry)(files=entry.files, programs=entry.programs, at=time.time_ns() + 10**10, study=made)
                    for key, entry in later._known.items()}  # fmt: skip
    assert later.known(seen(folder)) == made
    (folder / "run.sh").write_text("#!/bin/sh\nexit 2\n")
    assert later.known(seen(folder)) is None
    assert later.of(seen(folder)).digest != made.digest


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"v": 99, "entries": {}}', '{"v": 1, "entries": {"x": 5}}'])
def test_an_index_that_cannot_be_read_is_made_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    studies = InspectionCache(tmp_path)
    studies.of(seen(plant(tmp_path)))
    studies.save()
    assert len(InspectionCache(tmp_path)._known) == 1


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda folder: folder.name)
def test_the_sample_hooks_are_in_order(folder: Path) -> None:
    assert check_folder(folder) == []


def test_what_is_no_hook_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "is no hook's folder" in str(check_folder(tmp_path / "empty")[0])
    assert "is no folder" in str(check_folder(tmp_path / "none")[0])


def test_decisions_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    switches = HookSwitches(tmp_path / "state")
    assert switches.is_enabled("weather") is None
    switches.enable("weather", False)
    switches.trust("weather", "abc")
    again = HookSwitches(tmp_path / "state")
    assert again.is_enabled("weather") is False
    assert again.is_trusted("weather", "abc")
    assert not again.is_trusted("weather", "abd")
    assert [oct(path.stat().st_mode & 0o777) for path in (tmp_path / "state").iterdir()] == ["0o600"]
    assert oct((tmp_path / "state").stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("text", ["", "nonsense", '{"v": 1, "later": true}'])
def test_decisions_that_cannot_be_read_are_kept_beside(tmp_path: Path, text: str) -> None:
    (tmp_path / "hooks.json").write_text(text)
    switches = HookSwitches(tmp_path)
    switches.enable("weather", True)
    assert HookSwitches(tmp_path).is_enabled("weather") is True
    assert (tmp_path / "hooks.unreadable.json").read_text() == text


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.json", b"old")
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "b", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b"]
    assert (tmp_path / "a.json").read_bytes() == b"old"
