"""`hermes-gateway uninstall`: the gateway ends, the program goes, and the home only when its path was typed."""

import subprocess

import pytest

from gateway.worker.process_marks import mark_of
from tests.upgrade.conftest import InstalledGateway

pytestmark = [pytest.mark.process, pytest.mark.timeout(600), pytest.mark.thorough]


def uninstall(gateway: InstalledGateway, *words: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    command = [str(gateway.program.path), "uninstall", *words]
    return subprocess.run(command, env=gateway.environ, input=typed, capture_output=True, text=True, check=False)


def test_nothing_goes_without_a_yes_and_the_home_only_by_its_name(gateway: InstalledGateway) -> None:
    unsure = uninstall(gateway)
    assert (unsure.returncode, "add --yes" in unsure.stderr) == (1, True)
    for typed, said in (("", "was not typed"), ("~\n", "that is not its path")):
        done = uninstall(gateway, "--purge", "--yes", typed=typed)
        assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert (gateway.pid != 0, gateway.program.path.exists()) == (True, True)

    done = uninstall(gateway, "--purge", "--yes", typed=f"{gateway.home.root}\n")
    assert done.returncode == 0, done.stderr
    assert (gateway.pid, gateway.program.path.exists(), gateway.home.own_folder.exists()) == (0, False, False)
    assert "stays in" in done.stdout, "what Hermes has too"
    assert (gateway.home.hooks / "watch").is_dir()


def test_the_program_goes_and_says_where_the_home_lies(gateway: InstalledGateway) -> None:
    done = uninstall(gateway, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"its home stays: {gateway.home.root}" in done.stdout
    assert (gateway.pid, gateway.program.path.exists(), gateway.home.journal.exists()) == (0, False, True)


def test_a_command_of_the_gateway_itself_ends_nothing(gateway: InstalledGateway) -> None:
    gateway.environ["HERMES_GATEWAY_MARK"] = mark_of(gateway.home.lock)
    for words in (("uninstall", "--yes"), ("upgrade", "--yes")):
        done = gateway.cli(*words)
        assert (done.returncode, "a terminal of your own" in done.stderr) == (1, True), done.stderr
    assert gateway.pid != 0
