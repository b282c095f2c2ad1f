"""The gateway copies its home by itself: at the set interval, so many, and it reports a failure."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.backup.archive_reader import read_archive
from gateway.backup.restore import restore_archive
from gateway.config.home import Home
from gateway.engine.sqlite.backup import verify_journal
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process
TURN = {"user": "apple", "answers": [{"text": "noted"}]}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def status(gateway: GatewayProcess) -> dict[str, Any]:
    return dict(gateway.call("status"))


def copies(gateway: GatewayProcess) -> list[Path]:
    return sorted(gateway.home.backups.glob("[!.]*"))  # one that is being made has no name yet


def test_so_many_are_kept_and_those_of_the_person_stay(gateway: GatewayProcess) -> None:
    gateway.script(TURN, settings="backup: {every: 1s, keep: 2}\n")
    gateway.home.backups.mkdir()
    (gateway.home.backups / "mine.tar.gz").write_text("mine")
    gateway.start()
    gateway.say("apple")
    first = status(gateway)["backup"]["last"]
    gateway.until(lambda: status(gateway)["backup"]["last"] > first + 2)
    gateway.until(lambda: status(gateway)["backup"]["kept"] == 2)
    found = status(gateway)["backup"]
    assert (found["every"], found["keep"], found["trouble"]) == (1.0, 2, "")
    printed = gateway.cli("status").stdout
    assert "every 1 s; the last " in printed
    gateway.stop()
    assert gateway.home.backups / "mine.tar.gz" in copies(gateway)
    newest = copies(gateway)[-2]
    other = Home(gateway.home.root.parent / "other")
    restore_archive(newest, other, replace=False)
    assert verify_journal(other.journal).records > 3


def test_by_default_it_makes_none_and_a_reload_switches_it_on(gateway: GatewayProcess) -> None:
    gateway.script(TURN)
    gateway.start()
    assert status(gateway)["backup"] == {"every": 0.0, "keep": 7, "kept": 0, "last": 0.0, "file": "", "trouble": ""}
    assert not gateway.home.backups.exists()
    gateway.script(TURN, settings="backup: {every: 1h, keep: 3}\n")
    reloaded = gateway.cli("reload")
    assert "from the next start" not in reloaded.stdout, reloaded.stdout
    gateway.until(lambda: status(gateway)["backup"]["kept"] == 1)


def test_one_that_is_not_due_is_not_made_after_a_restart(gateway: GatewayProcess) -> None:
    gateway.script(TURN, settings="backup: {every: 1h}\n")
    gateway.start()
    gateway.until(lambda: status(gateway)["backup"]["kept"] == 1)
    made = copies(gateway)
    gateway.stop()
    gateway.start()
    gateway.say("apple")
    assert copies(gateway) == made
    gateway.stop()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(time.time() - 3700))
    made[0].rename(gateway.home.backups / f"auto-{stamp}.tar.gz")
    gateway.start()
    gateway.until(lambda: status(gateway)["backup"]["kept"] == 2)


def test_one_that_failed_needs_attention_until_the_next_is_made(gateway: GatewayProcess) -> None:
    gateway.script(TURN, settings="backup: {every: 1s}\n")
    gateway.home.backups.write_text("a file where the folder should be")
    gateway.start()
    gateway.until(lambda: any("no backup was made" in line for line in status(gateway)["attention"]))
    assert f"File exists: {gateway.home.backups}" in status(gateway)["backup"]["trouble"]
    assert gateway.say("apple")["reply"] == "noted"
    gateway.home.backups.unlink()
    gateway.until(lambda: status(gateway)["backup"]["kept"] > 0 and not status(gateway)["attention"])


def test_killed_at_any_time_it_leaves_no_half_copy(gateway: GatewayProcess) -> None:
    gateway.script(TURN, settings="backup: {every: 1s, keep: 50}\n")
    big = gateway.home.memory / "big.jsonl"
    big.parent.mkdir(parents=True)
    with big.open("wb") as file:
        file.writelines(bytes([number % 251]) * 1000 for number in range(20_000))
    for pause in (0.0, 0.2, 0.5):
        gateway.start()
        gateway.until(lambda: any(gateway.home.backups.glob(".work-*")))
        time.sleep(pause)
        gateway.stop(signal.SIGTERM) if pause == 0.5 else gateway.kill()
    gateway.start()
    made = status(gateway)["backup"]["last"]
    gateway.until(lambda: status(gateway)["backup"]["last"] > made, 60)
    gateway.stop()
    found = [path for path in copies(gateway) if path.name.startswith("auto-")]
    assert found
    assert all(read_archive(path).digests for path in found)
