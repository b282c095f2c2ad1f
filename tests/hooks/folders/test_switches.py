"""Decisions by command are kept, whole, readable by their owner alone."""

from pathlib import Path

import anyio
import pytest

from gateway.hooks import HookRegistry
from gateway.hooks.places.switches import HookSwitches, write_atomically
from gateway.records.follower import JournalFollower
from tests.engine.memory_engine import MemoryEngine
from tests.hooks.folders.test_reach import lock
from tests.hooks.folders.workshop import Home, hook_of
from tests.spine import until


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


@pytest.mark.process
async def test_what_one_gateway_switches_others_follow_also_of_an_installed_hook(home: Home) -> None:
    """That is switched by the name of its store."""
    home.plant("keeps", "intercepts: ['my:*']\n", "def handle(event_type, context): pass\n")
    lock(home, "keeps")
    file = home.root / "hooks.lock"
    file.write_text(file.read_text().replace('"grants"', '"stored_as": "keeps@0123", "grants"'))
    engine = MemoryEngine()
    async with (
        home.serving(HookRegistry(), engine) as one,
        home.serving(HookRegistry(), engine) as other,
        anyio.create_task_group() as tasks,
    ):
        assert other.shared_switches
        follower = JournalFollower(engine, other.shared_switches.last)
        await follower.load()
        await tasks.start(follower.run)
        await one.switch("keeps", False)
        await until(lambda: hook_of(other, "keeps").process.state == "disabled")
        tasks.cancel_scope.cancel()
