"""A journal that lost its newest records says so, also where the note of its end went with them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process
WORD = "chrysanthemum"


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[GatewayProcess]:
    """It has answered one message, which its search has read."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": WORD, "text": "I hear you."}, settings="web: {enabled: false}\n")
        gateway.start()
        gateway.say(WORD)
        gateway.until(lambda: finds(gateway))
        gateway.kill()
        yield gateway


def finds(gateway: GatewayProcess) -> bool:
    return bool(gateway.call("sessions.search", {"query": WORD})["hits"])


def remove(gateway: GatewayProcess, *names: str) -> None:
    for name in names:
        gateway.home.journal.with_name(name).unlink()


def list_losses(gateway: GatewayProcess) -> list[str]:
    gateway.start()
    return [line for line in gateway.call("status")["attention"] if "lost its newest records" in line]


def test_without_log_and_note_the_search_knows_what_is_missing(killed: GatewayProcess) -> None:
    remove(killed, "journal.db-wal", "journal.db-end")
    assert list_losses(killed)
    assert finds(killed), "the index has the only copy of what was said"


def test_a_whole_journal_without_its_note_has_lost_nothing(killed: GatewayProcess) -> None:
    remove(killed, "journal.db-end")
    assert list_losses(killed) == []
    assert finds(killed)


def test_doctor_calls_no_journal_fine_that_lost_something(killed: GatewayProcess) -> None:
    remove(killed, "journal.db-wal")
    assert list_losses(killed)
    shown = killed.cli("doctor").stdout
    assert shown.count("lost its newest records") == 1
    assert "journal: fine" not in shown
    assert f"remove {killed.home.journal}.lost" in shown
