"""BOOT.md, carried out by the agent when the gateway starts: in the background, and never in the way."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

GOOD = {"user": "boot.md", "answers": [{"text": "All disks are fine."}]}
HANGS = {"user": "boot.md", "answers": [{"text": "never", "delay": 300}]}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        yield gateway


def prepare(gateway: GatewayProcess, *turns: Any, boot: str = "Look at the disks.", **options: Any) -> None:
    hooks = json.dumps({"boot-md": {"options": options}})
    gateway.script(*(turns or (GOOD,)), settings=f"hooks: {hooks}\ngateway: {{shutdown_timeout: 1}}\n")
    gateway.home.boot_md.write_text(boot)


def ledger(gateway: GatewayProcess) -> list[str]:
    return list(gateway.call("hooks.info", {"name": "boot-md"})["kept"].get("runs", []))


def runs(gateway: GatewayProcess) -> list[str]:
    """Return the ledger's entry for each run, without its time."""
    return [re.sub(r"^.{19}  |[0-9.]+ s", "", line) for line in ledger(gateway)]


def wait(gateway: GatewayProcess, count: int) -> list[str]:
    gateway.until(lambda: len(runs(gateway)) >= count)
    return runs(gateway)


@pytest.mark.row("HRM-16", "HRM-17")
def test_the_agent_carries_it_out_in_a_session_of_its_own_and_the_answer_goes_where_it_should(
    gateway: GatewayProcess,
) -> None:
    prepare(gateway, deliver="terminal:ops")
    gateway.start()
    assert wait(gateway, 1) == ["ok,   sent to terminal:ops: All disks are fine."]
    shown = gateway.cli("hooks", "info", "boot-md").stdout
    assert "kept as runs:" in shown
    assert "sent to terminal:ops: All disks are fine." in shown
    assert "boot-md-" in gateway.cli("sessions", "list").stdout


def test_an_answer_of_several_lines_is_shown_in_one(gateway: GatewayProcess) -> None:
    said = {"user": "boot.md", "answers": [{"text": "Two things:\n- disks\n- mail"}]}
    prepare(gateway, said, deliver="terminal:ops")
    gateway.start()
    wait(gateway, 1)
    shown = gateway.cli("hooks", "info", "boot-md").stdout
    assert " sent to terminal:ops: Two things: - disks - mail\n" in shown
    assert "sent to terminal:ops): Two things: - disks - mail  hook=" in gateway.cli("logs").stdout


def test_without_a_home_channel_the_answer_is_kept_and_the_remedy_said(gateway: GatewayProcess) -> None:
    prepare(gateway)
    gateway.start()
    (run,) = wait(gateway, 1)
    assert run.startswith("ok,   told nobody")
    assert "home_channel in config.yaml: All disks are fine." in run


@pytest.mark.row("HRM-22")
@pytest.mark.parametrize("said", ["*no_reply*", "All fine. [SILENT]", "[silent]\nnothing to tell"])
def test_an_answer_of_silence_is_told_nobody(gateway: GatewayProcess, said: str) -> None:
    prepare(gateway, {"user": "boot.md", "answers": [{"text": said}]}, deliver="terminal:ops")
    gateway.start()
    assert wait(gateway, 1) == [f"ok,   silent: {' '.join(said.split())}"]


def test_ten_restarts_in_a_minute_carry_it_out_once(gateway: GatewayProcess) -> None:
    prepare(gateway, deliver="")
    for number in range(10):
        gateway.start()
        wait(gateway, number + 1)
        if number < 9:
            gateway.kill()
    told = runs(gateway)
    assert told[0] == "ok,   told nobody: All disks are fine."
    assert [run[:20] for run in told[1:]] == ["skipped,   it was be"] * 9


def wait_for_run(gateway: GatewayProcess, attempt: int = 1) -> None:
    """Wait until the agent is at work on this attempt. Right after a start it may be at one of the life before."""

    def is_at_work() -> bool:
        last = gateway.call("hooks.info", {"name": "boot-md"})["kept"].get("last", {})
        is_running = gateway.call("status")["turns"]["running"] == 1
        return is_running and (last.get("attempts"), "told" in last) == (attempt, False)

    gateway.until(is_at_work)


def cut_off(gateway: GatewayProcess, attempt: int = 1) -> None:
    """Kill the gateway in the middle of a run."""
    wait_for_run(gateway, attempt)
    gateway.kill()


def test_a_crash_in_the_middle_is_told_of_and_does_not_get_around_the_interval(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS)
    gateway.start()
    cut_off(gateway)
    for _ in range(3):
        gateway.start()
        assert wait(gateway, 1) == ["cut off,   the gateway ended in the middle of it (attempt 1 of 3)"]
        gateway.until(lambda: "BOOT.md is begun anew in" in gateway.home.log.read_text())
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 0)
        gateway.kill()
    assert "at the run before, the gateway ended in the middle of it" in gateway.home.log.read_text()


def test_a_run_that_was_cut_off_is_made_up_for_without_another_start(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS, min_interval=2, deliver="")
    gateway.start()
    cut_off(gateway)
    prepare(gateway, {"user": "boot.md", "answers": [{"text": "Done."}]}, min_interval=2, deliver="")
    gateway.start()
    told = wait(gateway, 2)
    assert [run[:7] for run in told] == ["cut off", "ok,   t"]
    began = [time.mktime(time.strptime(line[:19], "%Y-%m-%d %H:%M:%S")) for line in ledger(gateway)]
    assert began[1] - began[0] >= 1  # whole seconds, of an interval of two


def test_it_is_given_up_after_so_many_attempts_until_the_next_start(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS, min_interval=0, attempts=2)
    for attempt in (1, 2):
        gateway.start()
        cut_off(gateway, attempt)
    gateway.start()
    assert [run[:8] for run in wait(gateway, 3)] == ["cut off,", "cut off,", "given up"]
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 0)
    gateway.kill()
    gateway.start()
    cut_off(gateway)


def test_a_stop_in_the_middle_is_made_up_for_like_a_crash(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS, min_interval=0)
    gateway.start()
    wait_for_run(gateway)
    gateway.stop()
    gateway.start()
    assert wait(gateway, 1) == ["cut off,   the gateway ended in the middle of it (attempt 1 of 3)"]
    wait_for_run(gateway, 2)


@pytest.mark.row("HRM-21")
def test_a_model_that_hangs_delays_neither_readiness_nor_the_stop(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS)
    gateway.start()
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
    with Stopwatch() as watch:
        code, _, _ = gateway.stop()
    assert code == 0
    assert watch.seconds < 30


def test_a_model_that_hangs_is_given_up_after_the_time_limit(gateway: GatewayProcess) -> None:
    prepare(gateway, HANGS, time_limit=0.2)
    gateway.start()
    assert wait(gateway, 1) == ["timeout,   it was not done within "]


def test_a_model_that_is_not_there_is_a_run_that_failed(gateway: GatewayProcess) -> None:
    gateway.configure("model: {provider: openai, name: x, base_url: 'http://127.0.0.1:9/v1', retries: 0}\n")
    gateway.home.boot_md.write_text("Look at the disks.")
    gateway.start()
    (run,) = wait(gateway, 1)
    assert run.startswith("failed")


def test_an_edit_while_it_runs_counts_for_the_next_start(gateway: GatewayProcess) -> None:
    slow = {"user": "boot.md", "answers": [{"text": "Done.", "delay": "300ms"}]}
    prepare(gateway, slow, policy="once-per-change", min_interval=0, deliver="")
    gateway.start()
    gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1 or bool(ledger(gateway)))
    gateway.home.boot_md.write_text("Look at the weather.")
    for count, begin in ((1, "ok"), (2, "ok"), (3, "skipped")):
        assert wait(gateway, count)[-1].startswith(begin)
        if count < 3:
            gateway.stop()
            gateway.start()


def test_two_gateways_of_one_home_carry_it_out_once(gateway: GatewayProcess) -> None:
    prepare(gateway, deliver="")
    gateway.start()
    wait(gateway, 1)
    second = gateway.spawn("run")
    second.communicate()
    assert second.returncode != 0
    assert len(runs(gateway)) == 1


@pytest.mark.row("HRM-23")
def test_nothing_happens_without_the_file_or_with_a_blank_one(gateway: GatewayProcess) -> None:
    prepare(gateway, boot="  \n\n")
    gateway.start()
    gateway.until(lambda: gateway.call("hooks.info", {"name": "boot-md"})["calls"] == 1)
    assert runs(gateway) == []


def test_a_dry_run_shows_what_would_be_done_and_does_nothing(gateway: GatewayProcess) -> None:
    prepare(gateway, boot="")
    gateway.start()
    gateway.home.boot_md.write_text("Look at the disks.")
    shown = gateway.cli("hooks", "test", "boot-md").stdout
    assert '"verb": "submit"' in shown
    assert "Look at the disks." in shown
    assert runs(gateway) == []
