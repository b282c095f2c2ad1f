"""Strangers' code for Hermes neither falls asleep nor passes as working: deciders, patches, broken guards."""

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.testing import GatewayProcess
from tests.hermes.test_plugins import last_result, wants

pytestmark = pytest.mark.process

STRANGERS = Path(__file__).parent / "strangers"
SCRIPT = (
    {"user": "hello", "answers": [{"text": "hello yourself"}]},
    wants("keep plain", "remember", text="plain"),
)


def furnish(gateway: GatewayProcess, *plugins: str) -> None:
    shutil.copytree(STRANGERS / "hooks", gateway.home.hooks)
    for name in plugins:
        shutil.copytree(STRANGERS / "plugins" / name, gateway.home.plugins / name)
    gateway.home.hermes_config.write_text(json.dumps({"plugins": {"enabled": list(plugins)}}))


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("h") / "home") as gateway:
        gateway.script(*SCRIPT)
        furnish(gateway, "adapter-wrap", "between", "late-guard")
        gateway.start()
        gateway.until(lambda: not [one for one in list_hooks(gateway).values() if one["state"] == "starting"])
        yield gateway


def list_hooks(gateway: GatewayProcess) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in gateway.call("hooks.list")["hooks"] if one["origin"] != "built-in"}


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("/title night", "not at night"),
        ("/title day", "This session is now called: day"),
        ("/title LOUD", "no shouting (True)"),
        ("/undo", "lends says no"),
        ("/retry", "patient says no"),
        ("/help", "swaps says no"),
        ("/sessions", "first says so"),
        ("/approvals", "tidies says no"),
    ],
)
def test_a_handler_decides_whatever_the_shape_of_its_answer(gateway: GatewayProcess, said: str, reply: str) -> None:
    assert gateway.say(said)["reply"] == reply


def test_a_handler_whose_source_returns_nothing_stays_an_observer(gateway: GatewayProcess) -> None:
    found = list_hooks(gateway)
    assert (found["counts-commands"]["intercepts"], found["counts-commands"]["events"]) == ([], ["command:*"])
    assert found["shouts"]["intercepts"] == ["command:*"]
    assert found["night-watch"]["intercepts"] == ["command:title"]


def test_a_decider_that_fails_lets_the_command_go_on_and_needs_attention(gateway: GatewayProcess) -> None:
    assert "tokens read" in gateway.say("/usage")["reply"]
    (said,) = [one for one in gateway.call("status")["attention"] if "crashes" in one]
    assert "command:usage went on without its decision" in said
    assert "KeyError: 'usage'" in said
    assert "hooks.crashes.on_error: deny" in said


def test_what_it_did_not_decide_is_told_until_somebody_has_seen_it(gateway: GatewayProcess) -> None:
    gateway.say("/status")
    gateway.say("/status")
    assert list_hooks(gateway)["stumbles"]["traces"][-1].get("outcome", "ok") == "ok"
    told = "did not decide once, last "
    (said,) = [one for one in gateway.call("status")["attention"] if "stumbles" in one]
    assert told in said
    assert "ConnectionError: nobody is at home" in said
    assert told in gateway.cli("hooks", "list").stdout
    assert told in gateway.cli("hooks", "info", "stumbles").stdout
    gateway.cli("hooks", "reset", "stumbles")
    assert not list_hooks(gateway)["stumbles"]["reason"]
    assert not any("stumbles" in one for one in gateway.call("status")["attention"])


def test_what_it_did_not_decide_stands_also_after_an_edit_and_a_restart(gateway: GatewayProcess) -> None:
    handler = gateway.home.hooks / "stumbles" / "handler.py"
    before = list_hooks(gateway)["stumbles"]["digest"]
    handler.write_text(handler.read_text() + "# edited\n")
    gateway.until(lambda: list_hooks(gateway)["stumbles"]["digest"] not in ("", before))
    gateway.say("/status")
    assert "did not decide once" in list_hooks(gateway)["stumbles"]["reason"]
    handler.write_text(handler.read_text() + "# mended\n")
    gateway.stop()
    gateway.start()
    assert any("stumbles" in one for one in gateway.call("status")["attention"])
    gateway.cli("hooks", "reset", "stumbles")
    assert not any("stumbles" in one for one in gateway.call("status")["attention"])


def test_deciders_together_have_five_seconds(gateway: GatewayProcess) -> None:
    assert "terminal user owner" in gateway.say("/whoami")["reply"]
    found = list_hooks(gateway)["dawdles"]
    assert "over its" in found["reason"]
    assert found["state"] == "loaded"
    assert 4 < found["p95"] < 8
    assert any("dawdles" in one for one in gateway.call("status")["attention"])


def test_a_decision_is_not_lost_with_what_stands_beside_it(tmp_path: Path) -> None:
    answer = "{'decision': 'deny', 'message': 'not now', 'why': object(), 'odd': {1, 2}}"
    handler = f"def handle(event_type, context):\n    return {answer}\n"
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.add_hook("odd", {"HOOK.yaml": "events: [command:title]\n", "handler.py": handler})
        gateway.start()
        assert gateway.say("/title day")["reply"] == "not now"
        assert "warning: 'why' of the answer is left out" in gateway.cli("hooks", "logs", "odd").stdout


def test_a_slow_decider_takes_no_time_from_the_others(tmp_path: Path) -> None:
    """Each of them alone is in time; one after the other they were not."""
    with GatewayProcess(tmp_path / "home") as gateway:
        for name, answer in (("a", "None"), ("b", "{'decision': 'deny', 'message': 'b says no'}")):
            handler = f"import time\n\ndef handle(event_type, context):\n    time.sleep(3)\n    return {answer} or 0\n"
            gateway.add_hook(name, {"HOOK.yaml": "events: [command:title]\n", "handler.py": handler})
        gateway.start()
        gateway.until(lambda: {one["state"] for one in list_hooks(gateway).values()} == {"loaded"})
        assert gateway.say("/title day")["reply"] == "b says no"
        assert not any(one["reason"] for one in list_hooks(gateway).values())


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("footer", "BasePlatformAdapter"),
        ("adapter-wrap", "GatewayRunner.adapters"),
        ("hidden-patch", "GatewayRunner._deliver"),
    ],
)
def test_what_only_patches_is_without_effect(gateway: GatewayProcess, name: str, what: str) -> None:
    gateway.say("hello")
    found = list_hooks(gateway)[name]
    assert found["state"] == "without effect"
    assert found["reason"].startswith("it patches ")
    assert what in found["reason"]
    assert any(f"without effect: {found['reason']}" in one for one in found["findings"])
    listed = gateway.cli("hooks", "list").stdout
    assert f"without effect: {found['reason']}" in listed
    assert f"{name} is without effect: it patches" in gateway.cli("status").stdout


def test_what_only_registers_what_is_not_offered_is_without_effect(gateway: GatewayProcess) -> None:
    found = list_hooks(gateway)["between"]
    assert (found["state"], found["reason"]) == ("without effect", "ctx.register_middleware is not offered here")
    assert "between is without effect: ctx.register_middleware" in gateway.cli("status").stdout


def test_a_guard_that_is_registered_while_the_plugin_runs_is_asked(gateway: GatewayProcess) -> None:
    gateway.say("hello", "late")
    gateway.say("keep plain", "late")
    assert last_result(gateway, "late") == "nothing is kept here"
    log = gateway.home.hook_logs / "plugin:late-guard.log"
    told = "the hook post_tool_call is registered too late and is not called"
    gateway.until(lambda: told in log.read_text())
    for said in (("hooks", "list"), ("hooks", "info", "late-guard"), ("status",)):
        assert told in gateway.cli(*said).stdout


def test_checks_and_the_doctor_say_so_without_running_anything(gateway: GatewayProcess) -> None:
    assert "without effect: it patches" in gateway.cli("hooks", "check", "footer").stdout
    rows = json.loads(gateway.cli("doctor", "--hermes", "--json").stdout)
    verdicts = {(row["what"], row["name"]): row["verdict"] for row in rows["hermes"]}
    assert verdicts["hook", "footer"] == verdicts["plugin", "adapter-wrap"] == "without effect"
    assert {verdicts["hook", name] for name in ("night-watch", "lends", "patient", "swaps")} == {"works"}


def test_an_answer_that_nobody_reads_is_told_of(gateway: GatewayProcess) -> None:
    for said in (("hooks", "check", "mutters"), ("hooks", "list"), ("doctor", "--hermes")):
        assert "it returns something at command:sessions, which no event reads" in gateway.cli(*said).stdout


def read_on_terminal(gateway: GatewayProcess, *words: str, columns: int = 80) -> str:
    keeper, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "gateway.cli", *words]
    environ = {**gateway.environ, "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen(command, env=environ, stdin=end, stdout=end, stderr=subprocess.DEVNULL):
        os.close(end)
        told = b""
        try:
            while part := os.read(keeper, 65_536):
                told += part
        except OSError:  # nobody writes any more
            pass
    os.close(keeper)
    return told.decode().replace("\r\n", "\n")


def test_a_reason_is_read_to_its_end_on_a_narrow_terminal(gateway: GatewayProcess) -> None:
    said = read_on_terminal(gateway, "hooks", "list")
    assert str(list_hooks(gateway)["footer"]["reason"]) in " ".join(said.split())


def test_deny_in_our_configuration_makes_a_decider_a_guard(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT, settings="hooks: {crashes: {on_error: deny}, night-watch: {on_error: deny}}\n")
        furnish(gateway)
        (gateway.home.hooks / "night-watch" / "nightwatch" / "policy.py").write_text("import nothing_like_that\n")
        gateway.start()
        gateway.until(lambda: list_hooks(gateway)["night-watch"]["state"] == "broken")
        said = gateway.say("/usage")["reply"]
        assert "crashes guards this and failed: handler.py:7: KeyError: 'usage'" in said
        assert "hermes-gateway hooks info crashes" in said
        said = gateway.say("/title day")["reply"]
        assert "No module named 'nothing_like_that'" in said
        assert "hermes-gateway hooks disable night-watch" in said


@pytest.mark.parametrize("name", ["needs-more", "rule-book"])
def test_a_broken_guard_says_why_and_what_helps_in_its_refusal(tmp_path: Path, name: str) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        furnish(gateway, name)
        gateway.start()
        gateway.until(lambda: list_hooks(gateway)[name]["state"] == "broken")
        gateway.say("keep plain")
        said = last_result(gateway)
        assert f"{name} guards this and cannot answer" in said
        assert "No module named 'frobnicate_policies'" in said
        assert f"hermes-gateway hooks info plugin:{name}" in said
        told = f"tool:before is denied meanwhile, unless config.yaml says hooks.{name}.on_error: skip"
        assert told in list_hooks(gateway)[name]["reason"]
        gateway.configure(gateway.home.config.read_text() + f"hooks: {{{name}: {{on_error: skip}}}}\n")
        assert gateway.process
        gateway.process.send_signal(signal.SIGHUP)
        gateway.until(lambda: f"hooks.{name}.on_error" not in list_hooks(gateway)[name]["reason"])
        gateway.say("keep plain")
        assert last_result(gateway) == "Remembered: plain"


def test_a_guard_whose_manifest_cannot_be_read_denies_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        furnish(gateway, "needs-more")
        (gateway.home.plugins / "needs-more" / "plugin.yaml").write_text("name: [needs-more\n")
        gateway.start()
        gateway.until(lambda: list_hooks(gateway)["needs-more"]["state"] == "broken")
        gateway.say("keep plain")
        assert "needs-more guards this and cannot answer" in last_result(gateway)


def test_who_can_be_seen_only_to_look_on_disturbs_nobody(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT)
        furnish(gateway, "onlooker")
        gateway.start()
        gateway.until(lambda: list_hooks(gateway)["onlooker"]["state"] == "broken")
        gateway.say("keep plain")
        assert last_result(gateway) == "Remembered: plain"
