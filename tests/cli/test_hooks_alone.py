"""The verbs of `hooks` without a gateway: those that need none work, the others say that it is down."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

pytestmark = pytest.mark.process

ONE = ("info", "enable", "disable", "reload", "reset", "trust")


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["stats"],
        *([verb, "greet"] for verb in ONE),
        ["fire", "greet", "agent:end"],
        ["dead-letters", "list"],
        ["dead-letters", "retry", "greet"],
    ],
    ids=" ".join,
)
def test_what_needs_the_gateway_says_that_it_is_down(gateway: GatewayProcess, words: list[str]) -> None:
    done = gateway.cli("hooks", *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert "no gateway is running for this home" in done.stderr
    assert "start it with: hermes-gateway run" in done.stderr


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("python", ["--event", "agent:end"]),
        ("python", ["--intercept", "tool:before", "--event", "command:*"]),
        ("python", ["--intercept", "my:event"]),
        ("python", ["--event", "schedule:greet"]),
        ("python", ["--event", "webhook:greet"]),
        ("sh", ["--intercept", "tool:before"]),
        ("sh", ["--event", "agent:start"]),
        pytest.param("node", ["--intercept", "llm:after"], marks=pytest.mark.machine),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_new_makes_a_hook_that_is_fine_and_works_at_once(gateway: GatewayProcess, lang: str, words: list[str]) -> None:
    if lang == "node" and not shutil.which("node"):
        pytest.skip("there is no node on this machine")
    made = gateway.cli("hooks", "new", "greet", "--lang", lang, *words)
    folder = gateway.home.hooks / "greet"
    assert (made.returncode, made.stdout) == (0, f"{folder}\n")
    assert "hermes-gateway hooks test greet" in made.stderr
    assert {"HOOK.yaml", "sample.json", "test_greet.py"} < {path.name for path in folder.iterdir()}
    assert not any(path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO) for path in folder.iterdir())
    checked = gateway.cli("hooks", "check", "greet")
    assert checked.returncode == 0
    assert checked.stdout == "greet: fine\n" or "my:event" in checked.stdout
    tried = gateway.cli("hooks", "test", "greet", "--json")
    trials = json.loads(tried.stdout)["trials"]
    assert trials
    assert all(trial["ok"] for trial in trials), trials
    assert "tried without it" in tried.stderr


@pytest.mark.timeout(60)
def test_the_tests_that_new_writes_pass_together(gateway: GatewayProcess) -> None:
    for lang in ("python", "sh"):
        gateway.cli("hooks", "new", f"greet-{lang}", "--lang", lang, "--intercept", "message:received")
    command, where = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], gateway.home.hooks
    done = subprocess.run(command, cwd=where, env={**os.environ, **gateway.environ}, capture_output=True, text=True)
    assert "4 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["Greeter"], "is not a valid hook name"),
        (["./Greeter"], "is not a valid hook name"),
        (["./nowhere/greet"], "nowhere not found"),
        (["greet", "--event", "tool:befor"], "did you mean 'tool:before'?"),
        (["greet", "--intercept", "agent:step"], "observe it: --event agent:step"),
    ],
)
def test_new_refuses_what_could_not_work(gateway: GatewayProcess, words: list[str], complaint: str) -> None:
    done = gateway.cli("hooks", "new", *words)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert not gateway.home.hooks.exists()


def test_list_says_how_one_is_switched_on_without_a_gateway(gateway: GatewayProcess) -> None:
    said = gateway.cli("hooks", "list", "--all")
    (line,) = re.findall(r"into config.yaml (hooks: {enabled: \[NAME\]})", said.stderr)
    gateway.configure(line.replace("NAME", "echo"))
    assert re.search("^echo +on", gateway.cli("hooks", "list", "--all").stdout, re.MULTILINE)


def test_new_never_touches_what_is_there(gateway: GatewayProcess) -> None:
    gateway.cli("hooks", "new", "greet")
    (gateway.home.hooks / "greet" / "handler.py").write_text("mine = 1\n")
    done = gateway.cli("hooks", "new", "greet")
    assert done.returncode == 1
    assert "is there already" in done.stderr
    assert (gateway.home.hooks / "greet" / "handler.py").read_text() == "mine = 1\n"


def test_check_finds_all_that_is_wrong_and_runs_nothing(gateway: GatewayProcess, tmp_path: Path) -> None:
    trace = tmp_path / "it-ran"
    gateway.add_hook("fine", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": f"open({str(trace)!r}, 'w')\n"})
    gateway.add_hook("typo", {"HOOK.yaml": "events: [agent:ned]\nwhne: {}\n", "handler.py": "def handle(a, b):\n"})
    done = gateway.cli("hooks", "check")
    assert done.returncode == 1
    shown = done.stdout.splitlines()
    assert any(line.startswith("  typo/HOOK.yaml:1:10: warning: ") and "agent:end" in line for line in shown)
    assert any(line.startswith("  typo/HOOK.yaml:2:1: warning: ") and "when" in line for line in shown)
    assert any(line.startswith("  typo/handler.py:1:") and ": error: " in line for line in shown)
    assert not trace.exists()
    assert json.loads(gateway.cli("hooks", "check", "--json").stdout)["ok"] is False


def test_check_looks_at_plugins_too_and_at_commands_that_are_not_here(gateway: GatewayProcess) -> None:
    handler = "def handle(event_type, context):\n    pass\n"
    manifest = "events: ['command:compress']\ntimeout: 5\nflavour: sweet\n"
    gateway.add_hook("squeezes", {"HOOK.yaml": manifest, "handler.py": handler})
    folder = gateway.home.plugins / "half"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("name: half\n")
    (folder / "__init__.py").write_text("def register(ctx:\n")
    gateway.add_hook("hungry", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": f"import no_such_thing\n{handler}"})
    done = gateway.cli("hooks", "check")
    assert (
        "missing here: hungry/handler.py:1:1: the package no_such_thing is missing; run: hermes-gateway" in done.stdout
    )
    assert done.returncode == 1
    assert "half:\n  half/__init__.py:1:" in done.stdout
    assert "command:compress never happens: there is no /compress here" in done.stdout
    assert "`flavour` is not known; nothing reads it here\n" in done.stdout


def test_check_names_what_a_hook_misses_at_a_desk(gateway: GatewayProcess) -> None:
    passes = "def handle(event_type, context):\n    pass\n"
    reads = "def handle(event_type, context):\n    print(context['tool'], context['message_id'])\n"
    for name, manifest, handler in (
        ("greets", "events: ['message:*']\n", passes),
        ("guards", "intercepts: ['tool:*']\nwhen: {tool: shell, platform: [telegram], scope: user}\n", reads),
        ("ends", "intercepts: [agent:end]\n", passes),
        ("fits", "events: [tool:before]\nwhen: {platform: desk}\n", passes),
    ):
        gateway.add_hook(name, {"HOOK.yaml": manifest, "handler.py": handler})
    done = gateway.cli("hooks", "check", "--desk", "ends", "greets", "guards", "fits", "--json")
    assert (done.returncode, json.loads(done.stdout)["desk"]) == (
        0,
        {
            "greets": ["`message:*` never occurs, only tool:before, tool:after, agent:start, agent:end do"],
            "ends": ["`agent:end` decides nothing, only tool:before does"],
            "guards": [
                "`when.platform` is never met: it is `desk`",
                "`message_id` is empty, and the handler reads it",
            ],
        },
    )
    shown = gateway.cli("hooks", "check", "--desk", "greets", "fits").stdout
    assert "  at a desk: `message:*` never occurs" in shown
    assert "fits: fine" in shown


def test_check_takes_a_path_and_tells_what_is_missing_here(gateway: GatewayProcess, tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "greet"
    folder.mkdir(parents=True, mode=0o700)
    requires = "requires: {bins: [no-such-program], env: [NO_SUCH_KEY]}"
    (folder / "HOOK.yaml").write_text(f"events: [agent:end]\n{requires}\nreads: [/etc, ~/no-such-folder]\n")
    (folder / "handler.py").write_text("def handle(event_type, context):\n    pass\n")
    done = gateway.cli("hooks", "check", str(folder))
    assert done.returncode == 0
    assert "missing here: the program no-such-program" in done.stdout
    assert "missing here: the environment variable NO_SUCH_KEY" in done.stdout
    assert "missing here: ~/no-such-folder, in `reads`: what is not there when a hook starts" in done.stdout
    assert "/etc, in" not in done.stdout
    assert gateway.cli("hooks", "check", "nothing-of-that-name").returncode == 1


def test_test_tries_a_folder_wherever_it_lies(gateway: GatewayProcess, tmp_path: Path) -> None:
    folder = tmp_path / "repository" / "greet"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "HOOK.yaml").write_text("intercepts: [message:received]\nuses: [send]\n")
    (folder / "handler.py").write_text(
        "def handle(event_type, context):\n    context['text'] = 'hi'\n    context.gateway.send('terminal:a', 'hi')\n"
    )
    (trial,) = json.loads(gateway.cli("hooks", "test", str(folder), "--json").stdout)["trials"]
    assert (trial["ok"], trial["changed"]) == (True, {"text": "hi"})
    assert trial["asked"] == [{"verb": "send", "to": "terminal:a", "text": "hi"}]


def test_test_warns_of_an_event_that_nobody_emits(gateway: GatewayProcess) -> None:
    gateway.add_hook(
        "late", {"HOOK.yaml": "events: [agent:ende, agent:end]\n", "handler.py": "def handle(a, b): ...\n"}
    )
    first, second = json.loads(gateway.cli("hooks", "test", "late", "--json").stdout)["trials"]
    assert [told for told in first["remarks"] if told.endswith("unknown event `agent:ende`; did you mean `agent:end`?")]
    assert not second["remarks"]


def test_test_says_why_a_hook_does_not_start(gateway: GatewayProcess) -> None:
    gateway.add_hook(
        "greet",
        {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(a, b): ...\n\n\nraise ValueError('no')\n"},
    )
    done = gateway.cli("hooks", "test", "greet")
    assert done.returncode == 1
    assert "ValueError: no" in done.stderr
    assert "Traceback" not in done.stderr.splitlines()[0]


def test_logs_of_a_hook_are_there_without_the_gateway(gateway: GatewayProcess) -> None:
    gateway.home.hook_logs.mkdir(parents=True)
    (gateway.home.hook_logs / "greet.log").write_text("one\ntwo\nthree\n")
    assert gateway.cli("hooks", "logs", "greet", "-n", "2").stdout == "two\nthree\n"
    done = gateway.cli("hooks", "logs", "../gateway")
    assert "is not the name of a hook" in done.stderr


@pytest.mark.parametrize("package", ["hermes_cli", "hermes_plugins", "hermes-cli>=1", "tools[x]", "hermes-agent==0.19"])
def test_deps_installs_no_namesake_of_hermes(gateway: GatewayProcess, package: str) -> None:
    gateway.add_hook("greet", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(a, b):\n    pass\n"})
    done = gateway.cli("hooks", "deps", "greet", package)
    assert done.returncode == 1
    assert "is a module of Hermes's own" in done.stderr or "is not installed for a hook" in done.stderr
    assert "installing" not in done.stderr


def test_deps_that_cannot_be_installed_change_nothing(gateway: GatewayProcess) -> None:
    manifest = "events: [agent:end]\nrequires: {python: ['no-such-package-of-ours==99']}\n"
    gateway.add_hook("greet", {"HOOK.yaml": manifest, "handler.py": "def handle(a, b):\n    pass\n"})
    environ = {"PIP_NO_INDEX": "1", "UV_NO_INDEX": "1", "UV_OFFLINE": "1"}
    with gateway.spawn("hooks", "deps", "greet", environ=environ) as done:
        _, told = done.communicate()
    assert done.returncode == 1
    assert "could not be installed; what there was is unchanged" in told
    assert not (gateway.home.hook_state / "packages" / "greet").exists()


@pytest.mark.row("T29")
def test_the_name_of_a_folder_cannot_act_on_the_terminal(gateway: GatewayProcess) -> None:
    gateway.add_hook("red\x1b[31m", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(a, b): ...\n"})
    shown = gateway.cli("hooks", "check").stdout
    assert r"red\x1b[31m:" in shown
    assert "\x1b" not in shown


def test_a_hook_that_comes_with_the_gateway_is_found_beside_a_configuration_of_hermes(gateway: GatewayProcess) -> None:
    gateway.home.hermes_config.write_text("model: {default: other}\n")
    tried = gateway.cli("hooks", "test", "audit-log", "--event", "agent:end", "--json")
    assert [trial["event"] for trial in json.loads(tried.stdout)["trials"]] == ["agent:end"], tried.stderr


def test_without_a_gateway_all_hooks_are_listed_as_they_would_be(gateway: GatewayProcess) -> None:
    gateway.add_hook("greet", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": "def handle(name, context): ...\n"})
    gateway.add_hook("needy", {"HOOK.yaml": "events: [agent:end]\nrequires: {bins: [no-such-program]}\n"})
    done = gateway.cli("hooks", "list", "--all")
    assert (done.returncode, "greet" in done.stdout, "boot-md" in done.stdout) == (0, True, True)
    assert "no gateway is running: this is how they would be" in done.stderr
    found = json.loads(gateway.cli("hooks", "list", "--all", "--json").stdout)
    states = {one["name"]: (one["state"], one["reason"]) for one in found["hooks"]}
    assert (found["running"], states["greet"]) == (False, ("would run", ""))
    assert states["needy"][0] == "broken"


def test_what_all_that_are_on_lack_is_one_list_and_one_command(gateway: GatewayProcess) -> None:
    handler = "import no_such_module_of_ours\n\n\ndef handle(a, b):\n    pass\n"
    gateway.add_hook(
        "asks",
        {
            "HOOK.yaml": "events: [agent:end]\nrequires: {python: ['no-such-package-of-ours==99']}\n",
            "handler.py": "def handle(a, b): ...\n",
        },
    )
    gateway.add_hook("imports", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": handler})
    gateway.add_hook("is-off", {"HOOK.yaml": "events: [agent:end]\n", "handler.py": handler})
    gateway.configure("hooks: {is-off: {enabled: false}}\n")
    seen = gateway.cli("hooks", "deps", "--all")
    assert seen.stdout.splitlines() == ["asks  no-such-package-of-ours==99", "imports  no_such_module_of_ours"]
    assert seen.returncode == 1
    assert "--yes" in seen.stderr
    environ = {"PIP_NO_INDEX": "1", "UV_NO_INDEX": "1", "UV_OFFLINE": "1"}
    with gateway.spawn("hooks", "deps", "--all", "--yes", environ=environ) as done:
        _, told = done.communicate()
    assert done.returncode == 1
    assert [f"{name}: no" in told for name in ("asks", "imports", "is-off")] == [True, True, False]
    assert gateway.cli("hooks", "deps").returncode == 2
