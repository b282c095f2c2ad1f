"""`hermes-gateway upgrade`, with installed programs and a gateway that runs: it is the new one, or as before."""

import re
from contextlib import suppress
from pathlib import Path

import pytest

from gateway.errors import GatewayError
from gateway.upgrade.plan import find_other_place
from tests.upgrade.conftest import InstalledGateway

pytestmark = [pytest.mark.process, pytest.mark.timeout(600), pytest.mark.thorough]
SUM, ANSWER = "what is 6 * 7", "The result is 42."

# Before what it is killed, in the order of the steps.
CUTS = (
    "subprocess.Popen .env.upgrade/bin/python 1",
    "os.kill 15 1",
    "tempfile.mkdtemp .work- 1",
    "os.rename upgrade/plan.json 2",
    "open started.log 1",
    "os.remove upgrade/plan.json 1",
)


def is_clean(gateway: InstalledGateway) -> bool:
    """Whether nothing is left of any upgrade."""
    return not find_other_place(gateway.program.prefix).exists() and not (gateway.home.upgrade / "plan.json").exists()


def test_the_new_one_takes_over_and_goes_on_with_what_was_said(
    gateway: InstalledGateway, wheels: dict[str, Path]
) -> None:
    gateway.write(1, SUM)
    gateway.wait_for_letters(ANSWER)
    before = gateway.pid
    gateway.home.skills.mkdir()
    (gateway.home.skills / "elsewhere").symlink_to("/opt/skills")
    done = gateway.upgrade(wheels["0.2.0"])
    assert done.returncode == 0, done.stderr
    assert "left out: skills/elsewhere: a link to /opt/skills" in done.stderr
    assert "version  0.1.0 -> 0.2.0" in done.stdout
    assert "hermes-gateway 0.1.0 -> 0.2.0: it runs, and what was up before is up" in done.stdout
    assert (gateway.version, gateway.is_pigeon_up()) == ("0.2.0", True)
    assert gateway.pid not in (0, before)
    gateway.write(2, "what is 6 * 8")
    gateway.wait_for_letters(ANSWER, "The result is 48.")
    assert [path.suffixes for path in gateway.home.backups.iterdir()] == [[".tar", ".gz"]]
    assert is_clean(gateway)


def test_a_cut_at_any_step_is_gone_on_from(gateway: InstalledGateway, wheels: dict[str, Path]) -> None:
    """Each is killed a step further than the one before it, and goes on where that one was."""
    for number, cut in enumerate(CUTS):
        done = gateway.upgrade(wheels["0.2.0"], cut)
        assert done.returncode == -9, (cut, done.stdout, done.stderr)
        gateway.write(number, SUM)
    done = gateway.upgrade(wheels["0.2.0"])
    assert done.returncode == 0, done.stderr
    assert "0.1.0 -> 0.2.0: it runs, and what was up before is up" in done.stdout
    assert (gateway.version, gateway.is_pigeon_up()) == ("0.2.0", True)
    gateway.until(lambda: "".join(gateway.letters()).count(ANSWER) == len(CUTS), 60)
    assert is_clean(gateway)


@pytest.mark.parametrize(("cut", "version"), [("os.rename upgrade/plan.json 2", "0.1.0"), (CUTS[4], "0.2.0")])
def test_a_start_after_a_cut_serves_and_says_what_it_is(
    gateway: InstalledGateway, wheels: dict[str, Path], cut: str, version: str
) -> None:
    assert gateway.upgrade(wheels["0.2.0"], cut).returncode == -9
    assert gateway.pid == 0
    told = gateway.cli("status").stdout
    assert "that from 0.1.0 to 0.2.0 was cut off" in told
    assert re.search(r"next +\S*hermes-gateway upgrade", told)
    gateway.write(1, SUM)
    gateway.start()
    gateway.wait_for_letters(ANSWER)
    assert gateway.version == version
    gateway.until(lambda: is_clean(gateway))
    assert "was cut off" in gateway.home.log.read_text()


def test_where_a_hook_does_not_run_any_more_all_is_as_before(
    gateway: InstalledGateway, wheels: dict[str, Path]
) -> None:
    gateway.write(1, SUM)
    gateway.wait_for_letters(ANSWER)
    for cut in ("open started.log 1", "os.rename restore/new 1"):  # in place; on the way back
        done = gateway.upgrade(wheels["0.3.0"], cut)
        assert done.returncode == -9, (done.stdout, done.stderr)
        gateway.start()
        assert gateway.version == "0.1.0", "a start has gone back"
        assert is_clean(gateway)
    done = gateway.upgrade(wheels["0.3.0"])
    assert done.returncode == 1
    assert "0.3.0 did not work: it has ended with 1" in done.stderr
    assert "these hooks do not run any more: watch" in done.stderr
    assert "0.1.0 is in place again, with the home as it was, and runs" in done.stderr
    gateway.write(2, "what is 6 * 8")
    gateway.wait_for_letters(ANSWER, "The result is 48.")
    assert gateway.version == "0.1.0"
    assert is_clean(gateway)


# It is never done with an event under the old program, so that it is owed it when the new one starts.
SLOW_HOOK = """import os
import time
from importlib.metadata import version
from pathlib import Path


def handle(event_type, context):
    with Path(os.environ["HERMES_HOME"], "told").open("a") as file:
        file.write(version("hermes-gateway") + " ")
    time.sleep(600)
"""


def test_no_hook_is_told_of_anything_before_all_were_looked_at(
    gateway: InstalledGateway, wheels: dict[str, Path]
) -> None:
    gateway.stop()
    gateway.add_hook("tells", {"HOOK.yaml": "events: [agent:end]\ndelivery: durable\n", "handler.py": SLOW_HOOK})
    gateway.environ["GATEWAY_SHUTDOWN_TIMEOUT"] = "2"
    gateway.start()
    gateway.until(gateway.is_pigeon_up)
    told = gateway.home.root / "told"
    gateway.write(1, SUM)
    gateway.until(told.exists, 60)
    done = gateway.upgrade(wheels["0.3.0"])
    assert "these hooks do not run any more: watch" in done.stderr
    gateway.until(lambda: told.read_text().split() == ["0.1.0", "0.1.0"], 60)


def test_a_network_that_does_not_come_up_is_a_reason_to_go_back_while_nothing_was_done(
    gateway: InstalledGateway, wheels: dict[str, Path]
) -> None:
    done = gateway.upgrade(wheels["0.4.0"])
    assert done.returncode == 1
    assert "0.4.0 did not work: pigeon is not connected" in done.stderr
    assert (gateway.version, gateway.is_pigeon_up()) == ("0.1.0", True)


def test_what_was_at_work_already_stays(gateway: InstalledGateway, wheels: dict[str, Path]) -> None:
    upgrading = gateway.spawn("upgrade", "--yes", "--from", str(wheels["0.4.0"]))
    gateway.until(lambda: is_new(gateway, "0.4.0"), 120)
    assert gateway.say(SUM)["reply"] == ANSWER
    _, said = upgrading.communicate()
    assert upgrading.returncode == 1
    assert "0.4.0 stays, though not all is well: pigeon is not connected" in said
    assert "the home as it was before: " in said
    assert gateway.version == "0.4.0"
    assert is_clean(gateway)


def is_new(gateway: InstalledGateway, version: str) -> bool:
    with suppress(GatewayError, OSError):
        status = gateway.call("status")
        return bool(status["version"] == version and status["state"] == "ready")
    return False


def test_what_cannot_be_changes_nothing(gateway: InstalledGateway, wheels: dict[str, Path], tmp_path: Path) -> None:
    before = gateway.pid
    broken = gateway.upgrade(wheels["0.5.0"])
    assert (broken.returncode, "RuntimeError: broken" in broken.stderr) == (1, True)
    missing = gateway.upgrade(tmp_path / "nothing.whl")
    assert (missing.returncode, "nothing.whl not found" in missing.stderr) == (1, True)
    nobody = gateway.cli("upgrade", "--from", str(wheels["0.2.0"]))
    assert (nobody.returncode, "read the above, then add --yes" in nobody.stderr) == (1, True)
    assert (gateway.pid, gateway.version) == (before, "0.1.0")
    assert is_clean(gateway)
    assert not gateway.home.backups.exists()
