"""Answers of a hook without an effect are reported alike by `hooks check` and `hooks test`, and in both logs."""

import json
import signal
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process


class Vain(NamedTuple):
    """A hook that does something in vain; what `hooks check` says of it, and what is said when it is called."""

    manifest: str
    handler: str
    checked: str
    said: str


IMPORTS = "from gateway.hooks import Deny, Retry, on\n\n\n"
HANDLE = IMPORTS + "def handle(event_type, context):\n    "
HOOKS = {
    "denies": Vain(
        "events: [agent:start]\n",
        HANDLE + "raise Deny('no')\n",
        "denies/handler.py:5:5: warning: Deny has no effect: the hook only observes; to decide, write `intercepts: [",
        "answered Deny at agent:start, which it only observes; for that, name agent:start under `intercepts`",
    ),
    "retries": Vain(
        "intercepts: [agent:start]\n",
        HANDLE + "return Retry('again')\n",
        "retries/handler.py:5:5: warning: Retry has no effect at agent:start; what counts there: deny, end",
        "answered Retry at agent:start, which has no effect there: it honours deny, end",
    ),
    "returns": Vain(
        "intercepts: [agent:end]\n",
        HANDLE + "return {'response': 'other'}\n",
        "returns/handler.py:5:5: warning: cannot change 'response' at agent:end; that is left as it was; what can be",
        "cannot change 'response' at agent:end; that is left as it was",
    ),
    "writes": Vain(
        "intercepts: [agent:end]\n",
        HANDLE + "context['message'] = 'other'\n",
        "writes/handler.py:5:5: warning: cannot change 'message' at agent:end; that is left as it was; what can be",
        "cannot change 'message' at agent:end; that is left as it was",
    ),
    "watches": Vain(
        "events: [agent:end]\norder: 1\n",
        HANDLE + "context['response_full'] = 'other'\n",
        "",
        "changed 'response_full' at agent:end, which it only observes; for that, name agent:end under `intercepts`",
    ),
    "sends": Vain(
        "events: [agent:end]\n",
        HANDLE + "context.gateway.send('terminal:main', 'hi')\n",
        "sends/handler.py:5:5: warning: the hook may not send; add `uses: [send]` to its HOOK.yaml",
        "sends may not send: add `uses: [send]` to its HOOK.yaml",
    ),
    "means-nothing": Vain(
        "intercepts: [agent:start]\non_error: skip\n",
        HANDLE + "return 42\n",
        "",
        "a hook answers None, a mapping, End, Deny or Retry, not int",
    ),
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("vain") / "home") as gateway:
        gateway.configure("{}\n")
        for name, vain in HOOKS.items():
            gateway.add_hook(name, {"HOOK.yaml": vain.manifest, "handler.py": vain.handler})
        gateway.start()
        gateway.say("hello")
        yield gateway


@pytest.mark.parametrize("name", HOOKS)
def test_a_vain_answer_is_told_by_each_who_knows(gateway: GatewayProcess, name: str) -> None:
    vain = HOOKS[name]
    assert vain.checked in gateway.cli("hooks", "check", name).stdout
    assert vain.said in gateway.cli("hooks", "test", name).stdout
    fired = gateway.cli("hooks", "fire", name, vain.manifest.partition("[")[2].partition("]")[0])
    assert vain.said in fired.stdout
    gateway.until(lambda: vain.said in gateway.cli("hooks", "logs", name).stdout)
    gateway.until(lambda: vain.said in gateway.home.log.read_text())


def test_a_vain_answer_is_told_once_a_minute(gateway: GatewayProcess) -> None:
    for _ in range(3):
        gateway.say("hello")
    for name in ("returns", "writes"):
        shown = gateway.cli("hooks", "logs", name).stdout
        assert shown.count(HOOKS[name].said) <= 2, shown  # a minute may have passed since the first


def test_marks_that_the_manifest_lacks_are_told(gateway: GatewayProcess) -> None:
    marked = IMPORTS + "@on('agent:start')\ndef one(context): ...\n\n\n@on('agent:ende')\ndef other(context): ...\n"
    gateway.add_hook("marked", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": marked})
    checked = gateway.cli("hooks", "check", "marked").stdout
    assert "marked/handler.py:4:5: warning: @on('agent:start') is called for nothing: HOOK.yaml does not" in checked
    assert "marked/handler.py:8:5: warning: @on('agent:ende') is called" in checked
    assert "did you mean `agent:end`?" in checked
    gateway.until(lambda: gateway.cli("hooks", "info", "marked").returncode == 0)
    tried = gateway.cli("hooks", "test", "marked").stdout
    assert "a function is marked with @on('agent:start'), which HOOK.yaml does not name, so it is not called" in tried


def test_what_it_would_not_be_told_of_is_said(gateway: GatewayProcess) -> None:
    unknown = gateway.cli("hooks", "test", "watches", "--event", "agent:ende").stdout
    assert "does not subscribe to agent:ende, so the gateway never tells it of one; did you mean agent:end?" in unknown
    manifest = "events: [agent:end]\nwhen: {platform: [telegram, slack]}\n"
    handler = HANDLE + "print('heard', context['platform'])\n"
    folder = gateway.add_hook("choosy", {"HOOK.yaml": manifest, "handler.py": handler})
    assert "heard telegram" in gateway.cli("hooks", "test", str(folder)).stdout
    other = gateway.cli("hooks", "test", str(folder), "--payload", '{"platform": "discord"}').stdout
    assert """is not told of this agent:end: its `when` wants {"platform": ["telegram", "slack"]}""" in other


def test_a_name_that_is_not_ours_is_answered_with_the_one_that_was_meant(gateway: GatewayProcess) -> None:
    denny = "from gateway.hooks import Denny\n\n\ndef handle(event_type, context): ...\n"
    folder = gateway.add_hook("denny", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": denny})
    checked = gateway.cli("hooks", "check", str(folder)).stdout
    assert "denny/handler.py:1:27: warning: gateway.hooks has no `Denny`: importing it fails; did you mean" in checked
    done = gateway.cli("hooks", "test", str(folder))
    assert "did you mean `from gateway.hooks import Deny`?" in done.stderr
    (folder / "handler.py").write_text("from gateway.daemon import run\n\n\ndef handle(event_type, context): ...\n")
    checked = gateway.cli("hooks", "check", str(folder)).stdout
    assert "gateway.daemon.run is the gateway's own and not there for hooks; import from gateway.hooks alone" in checked


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("{platform: telegramm}", "3:18: warning: `when.platform` is never met: `telegramm` is unknown here"),
        ("{chat_type: [dm, grop]}", "3:19: warning: `when.chat_type` is never met: `grop` is unknown here"),
        ("{role: onwer}", "3:14: warning: `when.role` is never met: `onwer` is unknown here; did you mean"),
        ("{tool: shel}", "3:14: warning: `when.tool` is never met: `shel` is unknown here; did you mean `sh"),
    ],
)
def test_a_condition_that_nothing_meets_is_told(gateway: GatewayProcess, when: str, said: str) -> None:
    name = "when-" + when.split(":")[0].strip("{").replace("_", "-")
    manifest = f"events: [tool:before]\norder: 1\nwhen: {when}\n"
    gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": HANDLE + "pass\n"})
    assert f"{name}/HOOK.yaml:{said}" in gateway.cli("hooks", "check", name).stdout
    gateway.until(lambda: said in gateway.cli("hooks", "info", name).stdout)


BABBLE = {
    "a line": "while read -r line; do echo rubbish; done",
    "no line": "printf rubbish; sleep 100",
}


@pytest.mark.parametrize("babble", BABBLE)
def test_a_program_that_writes_rubbish_is_told_at_once(gateway: GatewayProcess, babble: str) -> None:
    name = "babbles-" + babble.replace(" ", "-")
    manifest = "events: [command:status]\ncommand: [sh, run.sh]\n"
    folder = gateway.add_hook(name, {"HOOK.yaml": manifest, "run.sh": f"{BABBLE[babble]}\n"})
    done = gateway.cli("hooks", "test", str(folder), "--json")
    (trial,) = json.loads(done.stdout)["trials"]
    assert "it wrote no message" in trial["error"]
    assert "it begins with 'rubbish'" in trial["error"]
    assert trial["seconds"] < 100  # its time limit is 120
    gateway.until(lambda: gateway.cli("hooks", "info", name).returncode == 0)
    gateway.cli("hooks", "fire", name, "command:status")
    gateway.until(lambda: "it begins with 'rubbish'" in gateway.cli("hooks", "logs", name).stdout)


def test_a_program_that_is_silent_is_told_what_is_wanted(gateway: GatewayProcess) -> None:
    manifest = "events: [agent:end]\ntimeout: 1\ncommand: [sleep, '100']\n"
    folder = gateway.add_hook("silent", {"HOOK.yaml": manifest})
    shown = gateway.cli("hooks", "test", str(folder)).stdout
    assert "silent was over its 1 s and wrote nothing; it has to answer each line with one, and flush it" in shown
    assert "what reads its input to the end is `protocol: oneshot`" in shown


def test_who_steers_the_gateway_leaves_a_line_in_its_log(gateway: GatewayProcess) -> None:
    gateway.cli("hooks", "disable", "watches")
    gateway.cli("hooks", "enable", "watches")
    gateway.cli("pairing", "revoke", "telegram", "1")
    gateway.until(lambda: "by command: hooks.enable watches" in gateway.home.log.read_text())
    said = gateway.home.log.read_text()
    assert "by command: hooks.disable watches" in said
    assert "pairing.revoke" not in said  # there was nobody to be shown out


def test_a_configuration_that_was_not_read_again_is_told_of(gateway: GatewayProcess) -> None:
    told = f"{gateway.home.config} has changed since it was read; to have it read again: hermes-gateway reload"
    assert told not in gateway.cli("status").stdout.replace("\n", " ")
    gateway.home.config.write_text("logs: {level: debug}\n")
    notices = json.loads(gateway.cli("status", "--json").stdout)["notices"]
    assert any(notice.startswith(told) for notice in notices), notices
    assert gateway.process
    gateway.process.send_signal(signal.SIGHUP)
    gateway.until(lambda: not json.loads(gateway.cli("status", "--json").stdout)["notices"])


def test_what_is_on_disk_is_compared_with_what_is_in_force(gateway: GatewayProcess) -> None:
    home, before = gateway.home, gateway.home.config.read_text()

    def notices() -> list[str]:
        return list(gateway.call("status")["notices"])

    home.config.touch()
    home.config.write_text(f"# only said otherwise\n{before}")
    home.env.write_text("")
    home.env.chmod(0o600)
    assert notices() == []
    home.env.write_text("TELEGRAM_BOT_TOKEN=1:sesame\nMY_WORD=sesame\n")
    (notice,) = notices()
    assert notice.startswith(f"{home.env} has changed since it was read; to have it read again: hermes-gateway reload")
    assert notice.endswith("(not in force: platforms.telegram.token, MY_WORD, TELEGRAM_BOT_TOKEN)")
    assert "sesame" not in notice
    home.env.write_text("")
    assert notices() == []
    home.config.write_text("access: {rate: many}\n")
    unusable = (
        f"{home.config} has changed since it was read, and cannot be used; to see why: hermes-gateway config check"
    )
    assert notices() == [unusable]
    home.config.unlink()
    home.config.write_text(before)
    home.config.chmod(0o600)
    assert notices() == []


def test_a_hook_that_is_dropped_in_is_one_line_in_the_log(gateway: GatewayProcess) -> None:
    files = {"HOOK.yaml": "events: [agent:end, agent:start]\n", "handler.py": HANDLE + "pass\n"}
    folder = gateway.add_hook("fresh", files)
    gateway.until(lambda: "fresh is new: " in gateway.home.log.read_text())
    lines = [line for line in gateway.home.log.read_text().splitlines() if "fresh is new: " in line]
    assert len(lines) == 1
    assert "agent:end, agent:start" in lines[0]
    (folder / "handler.py").write_text(HANDLE + "return None\n")
    gateway.until(lambda: "fresh has changed: " in gateway.home.log.read_text())
