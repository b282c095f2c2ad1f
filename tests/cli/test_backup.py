"""`hermes-gateway backup`: copies of a journal that is being written, and one put back."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.backup.archive_reader import read_archive
from gateway.backup.restore_plan import write_plan
from gateway.daemon.home_lock import reserve_home
from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "remember", "answers": [{"text": "noted"}]})
        gateway.start()
        yield gateway


def titles(gateway: GatewayProcess, word: str) -> int:
    return len(gateway.call("sessions.search", {"query": word})["hits"])


def test_a_copy_is_made_while_the_gateway_runs_and_verified(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.say("remember the apple")
    made = gateway.cli("backup", "create", str(tmp_path / "copy.db"), "--json")
    assert made.returncode == 0, made.stderr
    facts = json.loads(made.stdout)
    assert facts["records"] > 3
    checked = json.loads(gateway.cli("backup", "verify", str(tmp_path / "copy.db"), "--json").stdout)
    assert checked["records"] == facts["records"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    assert gateway.say("remember the pear")["status"] == "ok"


def test_by_default_it_goes_into_the_home_and_the_journal_itself_is_verified(gateway: GatewayProcess) -> None:
    gateway.say("remember the apple")
    assert gateway.cli("backup", "create").returncode == 0
    (copy,) = gateway.home.backups.iterdir()
    assert "is whole" in gateway.cli("backup", "verify").stdout
    assert gateway.cli("backup", "create", str(copy)).returncode == 1, "a copy is never overwritten"


def test_restore_waits_for_the_end_of_the_gateway(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.say("remember the apple")
    gateway.cli("backup", "create", str(tmp_path / "copy.db"))
    refused = gateway.cli("backup", "restore", str(tmp_path / "copy.db"))
    assert (refused.returncode, "is in use by process" in refused.stderr) == (1, True)
    whole = str(tmp_path / "home.tar.gz")
    gateway.cli("backup", "create", whole)
    gateway.stop()
    with reserve_home(gateway.home.lock, 0):  # all that a gateway holds whose journal NATS servers keep
        refused = gateway.cli("backup", "restore", whole, "--replace")
    assert (refused.returncode, "a gateway serves this home" in refused.stderr) == (1, True), refused.stderr
    assert not gateway.home.replaced.exists()
    assert gateway.cli("backup", "restore", whole, "--replace").returncode == 0


def test_after_a_restore_all_is_as_it_was_and_can_be_searched(gateway: GatewayProcess, tmp_path: Path) -> None:
    """What came after the copy is gone from the index too, and what comes now is found."""
    gateway.say("remember the apple")
    gateway.cli("backup", "create", str(tmp_path / "copy.db"))
    for number in range(5):
        gateway.say(f"remember the pear {number}", f"other{number}")
    assert titles(gateway, "pear") == 5
    gateway.stop()
    restored = gateway.cli("backup", "restore", str(tmp_path / "copy.db"), "--json")
    assert restored.returncode == 0, restored.stderr
    assert Path(json.loads(restored.stdout)["replaced"]).exists()
    gateway.start()
    assert (titles(gateway, "apple"), titles(gateway, "pear")) == (1, 0)
    gateway.say("remember the plum")
    assert titles(gateway, "plum") == 1


def test_a_journal_that_went_back_by_other_hands_is_noticed_too(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.say("remember the apple")
    gateway.cli("backup", "create", str(tmp_path / "copy.db"))
    for number in range(5):
        gateway.say(f"remember the pear {number}", f"other{number}")
    gateway.stop()
    (tmp_path / "copy.db").replace(gateway.home.journal)
    gateway.start()
    gateway.say("remember the plum")
    gateway.until(lambda: (titles(gateway, "plum"), titles(gateway, "pear"), titles(gateway, "apple")) == (1, 0, 1))


def test_what_is_damaged_or_no_journal_is_refused(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.say("remember the apple")
    copy = tmp_path / "copy.db"
    gateway.cli("backup", "create", str(copy))
    gateway.stop()
    before = gateway.home.journal.read_bytes()
    data = bytearray(copy.read_bytes())
    data[5000:9000] = b"\xff" * 4000
    copy.write_bytes(data)
    (tmp_path / "text.db").write_text("no database")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE x(y)").connection.close()
    for name, said in (("copy", "damaged"), ("text", "text.db"), ("other", "not a journal"), ("none", "no backup")):
        done = gateway.cli("backup", "restore", str(tmp_path / f"{name}.db"))
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert gateway.home.journal.read_bytes() == before
    gateway.start()
    assert titles(gateway, "apple") == 1


def test_all_of_a_home_moves_to_another_one(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.home.env.write_text("OPENROUTER_API_KEY=secret\n")
    gateway.home.env.chmod(0o600)
    gateway.add_hook(
        "mine", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(event_type, context): ...\n"}
    )
    gateway.say("remember the apple")
    made = gateway.cli("backup", "create", str(tmp_path / "home.tar.gz"), "--json")
    assert (made.returncode, json.loads(made.stdout)["left_out"].keys()) == (0, {".env"})
    assert "is whole" in gateway.cli("backup", "verify", str(tmp_path / "home.tar.gz")).stdout
    with GatewayProcess(tmp_path / "machine" / "home") as other:
        restored = other.cli("backup", "restore", str(tmp_path / "home.tar.gz"))
        assert (restored.returncode, "OPENROUTER_API_KEY" in restored.stderr) == (0, True), restored.stderr
        other.script({"user": "remember", "answers": [{"text": "noted"}]})
        other.start()
        other.until(lambda: titles(other, "apple") == 1)
        assert [one["name"] for one in other.call("hooks.list")["hooks"] if one["name"] == "mine"] == ["mine"]
        other.stop()
        refused = other.cli("backup", "restore", str(tmp_path / "home.tar.gz"))
        assert (refused.returncode, "is not empty: it has" in refused.stderr) == (1, True)
        replaced = other.cli("backup", "restore", str(tmp_path / "home.tar.gz"), "--replace", "--json")
        kept = Path(json.loads(replaced.stdout)["replaced"])
        assert (kept / "hermes-gateway" / "journal.db").exists()


def test_a_restore_that_was_cut_off_is_finished_by_the_start(gateway: GatewayProcess, tmp_path: Path) -> None:
    gateway.say("remember the apple")
    gateway.cli("backup", "create", str(tmp_path / "home.tar.gz"))
    gateway.say("remember the pear", "other")
    gateway.stop()
    (gateway.home.restore / "new" / "hermes-gateway").mkdir(parents=True)
    read_archive(tmp_path / "home.tar.gz", gateway.home.root.parent / "laid-out")
    write_plan(gateway.home.restore, gateway.home, ["hermes-gateway/journal.db"], ["hermes-gateway/journal.db"])
    (tmp_path / "laid-out" / "hermes-gateway" / "journal.db").rename(
        gateway.home.restore / "new" / "hermes-gateway" / "journal.db"
    )
    gateway.start()
    gateway.until(lambda: (titles(gateway, "apple"), titles(gateway, "pear")) == (1, 0))
    assert list(gateway.home.replaced.rglob("journal.db"))
