"""A plugin's command typed right after a start: answered when the plugin is up, or told why it is not."""

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.waits import Stopwatch

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

SLOW = Path(__file__).parent / "homes" / "slow" / "plugins"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi"}]})
        yield gateway


def start(gateway: GatewayProcess, *names: str) -> None:
    """Some of them come up when there is an answer, which is a file."""
    for name in names:
        shutil.copytree(SLOW / name, gateway.home.plugins / name)
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(names)}}))
    gateway.start()


def answer(gateway: GatewayProcess) -> None:
    (gateway.home.root / "answers").touch()


def test_whoever_is_too_early_is_answered_when_the_plugin_is_up(gateway: GatewayProcess) -> None:
    start(gateway, "slow-oracle", "many-words")
    assert gateway.call("hooks.info", {"name": "slow-oracle"})["state"] == "starting"
    with ThreadPoolExecutor() as pool:
        said = pool.map(gateway.say, ("/beta two", "/oracle tonight?"), ("other", "main"))
        answer(gateway)
        assert [one["reply"] for one in said] == ["beta: two", "yes, tonight?"]
    assert "asks the oracle" in gateway.say("/help")["reply"]


def test_a_plugin_that_is_broken_says_so_in_the_answer(gateway: GatewayProcess) -> None:
    start(gateway, "fails-late")
    said = gateway.say("/never")["reply"]
    assert said.startswith("fails-late is not up: ")
    assert "the licence server does not answer" in said
    assert said.endswith("hermes-gateway hooks info fails-late")


def test_nobody_waits_for_longer_than_ten_seconds(gateway: GatewayProcess) -> None:
    start(gateway, "slow-oracle", "many-words")
    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(gateway.say, ("/oracle tonight?", "/beta two"), ("main", "other"))
    assert time.monotonic() - begun > 9
    assert first["reply"].startswith("slow-oracle is not up: it is starting")
    assert second["reply"].startswith("many-words is not up: it is starting")


def test_a_word_that_is_nobodys_is_told_at_once_when_all_is_up(gateway: GatewayProcess) -> None:
    start(gateway, "many-words")
    answer(gateway)
    gateway.until(lambda: gateway.call("hooks.info", {"name": "many-words"})["state"] == "loaded")
    with Stopwatch() as watch:
        assert gateway.say("/nothing")["reply"].startswith("Unknown command here: /nothing")
    assert watch.seconds < 9, "a word that may come is waited for for ten"
