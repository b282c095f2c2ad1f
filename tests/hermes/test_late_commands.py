"""A plugin's command typed right after a start: answered when the plugin is up, or told why it is not."""

import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]

SLOW = Path(__file__).parent / "homes" / "slow" / "plugins"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script({"user": "hello", "answers": [{"text": "hi"}]})
        yield gateway


def start(gateway: GatewayProcess, *names: str) -> None:
    for name in names:
        shutil.copytree(SLOW / name, gateway.home.plugins / name)
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(names)}}))
    gateway.start()


def test_whoever_is_too_early_is_answered_when_the_plugin_is_up(gateway: GatewayProcess) -> None:
    start(gateway, "slow-oracle", "many-words")
    assert gateway.call("hooks.info", {"name": "slow-oracle"})["state"] == "starting"
    assert gateway.say("/beta two", session="other")["reply"] == "beta: two"
    assert gateway.say("/oracle tonight?")["reply"] == "yes, tonight?"
    assert "asks the oracle" in gateway.say("/help")["reply"]


def test_a_plugin_that_is_broken_says_so_in_the_answer(gateway: GatewayProcess) -> None:
    start(gateway, "fails-late")
    said = gateway.say("/never")["reply"]
    assert said.startswith("fails-late is not up: ")
    assert "the licence server does not answer" in said
    assert said.endswith("hermes-gateway hooks info fails-late")


def test_nobody_waits_for_longer_than_ten_seconds(gateway: GatewayProcess) -> None:
    shutil.copytree(SLOW, gateway.home.plugins)
    for name in ("slow-oracle", "many-words"):
        code = gateway.home.plugins / name / "__init__.py"
        code.write_text(code.read_text().replace("time.sleep(", "time.sleep(25 + "))
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": ["slow-oracle", "many-words"]}}))
    gateway.start()
    begun = time.monotonic()
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(gateway.say, ("/oracle tonight?", "/beta two"), ("main", "other"))
    assert 9 < time.monotonic() - begun < 24  # they are up after 25
    assert first["reply"].startswith("slow-oracle is not up: it is starting")
    assert second["reply"].startswith("many-words is not up: it is starting")


def test_a_word_that_is_nobodys_is_told_at_once_when_all_is_up(gateway: GatewayProcess) -> None:
    start(gateway, "many-words")
    gateway.until(lambda: gateway.call("hooks.info", {"name": "many-words"})["state"] == "loaded")
    begun = time.monotonic()
    assert gateway.say("/nothing")["reply"].startswith("There is no command /nothing")
    assert time.monotonic() - begun < 9  # a word that may come is waited for for ten
