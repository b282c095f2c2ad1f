"""`hermes-gateway config`: right or wrong with exit codes, what is in force and why, and no secret anywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess

CANARY = "123456789:AAE-canary-canary-canary-canary-can"


def config(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HERMES_HOME": str(home), **environ}
    command = [sys.executable, "-m", "gateway.cli", "config", *words]
    return subprocess.run(command, env=given, capture_output=True, text=True)


def write(home: Path, text: str, env: str = "") -> None:
    (home / "hermes-gateway").mkdir(mode=0o700, parents=True, exist_ok=True)
    (home / "hermes-gateway/config.yaml").write_text(text)
    (home / ".env").write_text(env)
    (home / ".env").chmod(0o600)


def test_check_says_that_all_is_right(tmp_path: Path) -> None:
    told = config(tmp_path, "check")
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout == (
        f"{tmp_path}/hermes-gateway/config.yaml not found; the defaults are in effect, and they are right\n"
    )
    write(tmp_path, "logs: {level: debug}")
    assert config(tmp_path, "check").stdout == f"{tmp_path}/hermes-gateway/config.yaml is right\n"
    assert list(tmp_path.rglob("*.log")) == []


def test_check_says_all_that_is_wrong(tmp_path: Path) -> None:
    write(tmp_path, "logs: {levl: debug}\ngateway: {shutdown_timeout: soon}\n", "BAD LINE\n")
    told = config(tmp_path, "check")
    assert told.returncode == 78
    assert told.stdout.replace(f"{tmp_path}/", "").replace("hermes-gateway/", "").splitlines() == [
        ".env:1:1: warning: this line cannot be read; write NAME=value",
        "config.yaml:1:8: error: `logs.levl` is not known; did you mean `level`?",
        "config.yaml:2:29: error: `gateway.shutdown_timeout` is text; a duration such as 30s or 5m is wanted here",
    ]
    assert told.stderr == "2 things are wrong; the gateway does not start like this\n"


def test_check_finds_names_of_hooks_and_options_that_nothing_bears(tmp_path: Path) -> None:
    write(
        tmp_path,
        "hooks:\n  depp: {enabled: true}\n  deep: {options: {treshold: 3}}\n  disabled: [audit-lgo, deep]\n"
        "  each: {trust: {on_error: deny}}\nagents: {main: {hooks: [dep]}}\n",
    )
    folder = tmp_path / "hooks/deep"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "HOOK.yaml").write_text("events: [agent:end]\noptions: {threshold: 5}\n")
    (folder / "handler.py").write_text("def handle(event_type, context): ...\n")
    told = config(tmp_path, "check")
    assert told.returncode == 0, told.stderr
    *findings, summary = told.stdout.replace(f"{tmp_path}/hermes-gateway/", "").splitlines()
    assert sorted(findings) == [
        "config.yaml:2:19: warning: hooks.depp: there is no hook depp; did you mean deep?",
        "config.yaml:3:30: warning: hooks.deep.options.treshold is not a setting; did you mean threshold?",
        "config.yaml:4:13: warning: hooks.disabled: there is no hook audit-lgo; did you mean audit-log?",
        "config.yaml:5:28: warning: hooks.trust: there is no hook trust; hooks list --all names those there",
        "config.yaml:6:24: warning: agents.main.hooks: there is no hook dep; did you mean deep?",
    ]
    assert summary == "config.yaml can be used as it is"


def test_check_warns_of_the_secret_of_a_webhook_that_can_be_guessed(tmp_path: Path) -> None:
    write(tmp_path, "webhooks: {builds: {secret_env: BUILDS, verify: github}}\n")
    done = config(tmp_path, "check", BUILDS="abacus77")
    assert done.returncode == 0
    assert "warning: the webhook builds: BUILDS has fewer than 16 characters, and can be guessed" in done.stdout
    assert "can be guessed" not in config(tmp_path, "check", BUILDS="a secret that nobody guesses").stdout


def test_check_looks_at_the_files_of_the_port_and_at_where_a_webhook_answers(tmp_path: Path) -> None:
    hook = "webhooks: {builds: {secret_env: BUILDS, verify: github, template: built, session: 'slakc:C1'}}\n"
    write(tmp_path, f"web: {{tls: {{cert: {tmp_path}/none.pem, key: {tmp_path}/none.key}}}}\n{hook}")
    done = config(tmp_path, "check")
    assert done.returncode == 0
    assert f"web.tls: {tmp_path}/none.pem and {tmp_path}/none.key cannot be used: No such file" in done.stdout
    assert "`webhooks.builds.session` begins with no network: slakc" in done.stdout
    write(tmp_path, hook.replace("slakc", "slack"))
    assert config(tmp_path, "check").stdout == f"{tmp_path}/hermes-gateway/config.yaml is right\n"


def test_check_tells_programs_in_one_object(tmp_path: Path) -> None:
    write(tmp_path, "logs: {levl: debug}")
    told = config(tmp_path, "check", "--json")
    assert told.returncode == 78
    assert json.loads(told.stdout) == {
        "schema_version": 1,
        "ok": False,
        "file": f"{tmp_path}/hermes-gateway/config.yaml",
        "findings": [
            {
                "severity": "error",
                "source": f"{tmp_path}/hermes-gateway/config.yaml",
                "line": 1,
                "column": 8,
                "what": "`logs.levl` is not known",
                "remedy": "did you mean `level`?",
            }
        ],
    }


def test_show_says_what_holds_and_where_it_was_set(tmp_path: Path) -> None:
    write(tmp_path, "logs: {level: debug, size: 20kB}", "GATEWAY_LOGS_KEEP=3\n")
    assert config(tmp_path, "show", "logs").stdout == "level: debug\nformat: auto\nsize: 20kB\nkeep: 3\n"
    assert config(tmp_path, "show", "logs.level").stdout == "debug\n"
    told = config(tmp_path, "show", "logs", "--origin", GATEWAY_LOGS_LEVEL="error")
    assert told.stdout.replace(f"{tmp_path}/", "").splitlines() == [
        "setting      value  set by",
        "logs.level   error  the variable GATEWAY_LOGS_LEVEL",
        "logs.format  auto   default",
        "logs.size    20kB   hermes-gateway/config.yaml:1:28",
        "logs.keep    3      .env:1:1",
    ]
    told = config(tmp_path, "show", "logs", "--origin", "--json")
    assert json.loads(told.stdout)["origins"]["logs.keep"] == f"{tmp_path}/.env:1:1"


@pytest.mark.row("T28")
def test_no_secret_is_ever_shown(tmp_path: Path) -> None:
    write(
        tmp_path,
        "model: {provider: openai, name: m}\nmcp_servers: {x: {command: c, env: {K: '${GH}'}}}\n",
        f"TELEGRAM_BOT_TOKEN={CANARY}\nOPENAI_API_KEY={CANARY}\nGH={CANARY}\nTELEGRAM_PROXY=http://u:{CANARY}@h\n",
    )
    for words in (
        ["show"],
        ["show", "--origin"],
        ["show", "--json"],
        ["show", "--json", "--origin"],
        ["check", "--json"],
    ):
        told = config(tmp_path, *words, SLACK_BOT_TOKEN=CANARY)
        assert told.returncode == 0
        assert "canary" not in told.stdout + told.stderr
    assert "token: '[secret]'" in config(tmp_path, "show", "platforms.telegram").stdout


@pytest.mark.row("T28")
def test_what_stands_in_arguments_and_addresses_is_masked_by_its_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mcp_servers:\n"
        f"  x: {{command: c, args: [--token={CANARY}, --api-key, {CANARY}, T_TOKEN={CANARY}, --verbose, --level=3]}}\n"
        f"  y: {{url: 'https://h/mcp?a=1&api_key={CANARY}&b=2'}}\n"
        f"  z: {{url: 'https://me:{CANARY}@h/mcp'}}\n",
    )
    for words in (["show"], ["show", "--json", "--origin"]):
        told = config(tmp_path, *words).stdout
        assert "canary" not in told
        for kept in (
            "--token=[secret]",
            "--verbose",
            "--level=3",
            "a=1&api_key=[secret]&b=2",
            "https://[secret]@h/mcp",
        ):
            assert kept in told


@pytest.mark.row("T28")
def test_no_secret_in_the_wrong_place_is_repeated(tmp_path: Path) -> None:
    for text in (
        f"platforms: {{telegram: {{token: '{CANARY}'}}}}",
        f"logs: {{level: '{CANARY}'}}",
        f"logs: ['{CANARY}']",
    ):
        write(tmp_path, text)
        for words in (["check"], ["check", "--json"], ["show"]):
            told = config(tmp_path, *words)
            assert told.returncode == 78
            assert "canary" not in told.stdout + told.stderr


def test_show_refuses_what_is_wrong_and_what_is_not_there(tmp_path: Path) -> None:
    told = config(tmp_path, "show", "logs.levl")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "hermes-gateway: unknown setting `logs.levl`\n  known here: level, format, size, keep\n"
    write(tmp_path, "logs: [")
    told = config(tmp_path, "show")
    assert (told.returncode, told.stdout) == (78, "")
    assert told.stderr.startswith("hermes-gateway: the configuration is not right\n  ")


def test_path_says_where(tmp_path: Path) -> None:
    assert config(tmp_path, "path").stdout == f"{tmp_path}/hermes-gateway/config.yaml\n"
    told = json.loads(config(tmp_path, "path", "--json").stdout)
    assert told["schema_version"] == 1
    assert told["env"] == f"{tmp_path}/.env"


def test_schema_is_a_schema(tmp_path: Path) -> None:
    told = json.loads(config(tmp_path, "schema").stdout)
    assert told["$schema"].startswith("https://json-schema.org/")
    assert "logs" in told["properties"]


@pytest.mark.parametrize(("words", "code"), [(["config", "check"], 78), (["doctor"], 1), (["status"], 3)], ids=str)
def test_servers_that_nothing_here_speaks_with_are_told_with_the_line_that_helps(
    tmp_path: Path, words: list[str], code: int
) -> None:
    write(tmp_path, "engine: nats://127.0.0.1:4222\n")
    without = "import sys; sys.modules['nats'] = None; from gateway.cli import main; sys.exit(main())"
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "HERMES_HOME": str(tmp_path)}
    command = [sys.executable, "-c", without, *words]
    told = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert told.returncode == code, told.stderr
    assert "needs the extra `nats`, which whoever runs the gateway installs with: " in told.stdout
    assert "nats-py" in told.stdout


def test_set_writes_the_line_that_counts_and_undo_takes_it_back(tmp_path: Path) -> None:
    text = "sessions:\r\n  idle: 1h  # long\r\n"
    write(tmp_path, "", "A=1\n")
    file = tmp_path / "hermes-gateway/config.yaml"
    file.write_bytes(text.encode())
    told = config(tmp_path, "set", "sessions.idle", "2h")
    assert (told.returncode, told.stderr, told.stdout) == (0, "", f"written to {file}: sessions.idle: 2h\n")
    assert file.read_bytes() == text.replace("1h", "2h").encode()
    told = config(tmp_path, "set", "platforms.telegram.token", CANARY)
    assert CANARY not in told.stdout + told.stderr
    assert (tmp_path / ".env").read_text() == f"A=1\nTELEGRAM_BOT_TOKEN={CANARY}\n"
    assert config(tmp_path, "undo").stdout == f"{tmp_path}/.env is again as it was before the last change\n"
    assert json.loads(config(tmp_path, "unset", "sessions.idle", "--json").stdout)["files"] == [str(file)]
    assert file.read_bytes() == b""


def test_set_refuses_what_the_running_gateway_has_from_its_own_environment(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.environ["GATEWAY_LOGS_KEEP"] = "7"
        gateway.start()
        told = config(gateway.home.root, "set", "logs.keep", "4")
        assert told.returncode == 78
        assert "`logs.keep` is set by the variable GATEWAY_LOGS_KEEP of the running gateway" in told.stderr
        assert "hermes-gateway reload" in config(gateway.home.root, "set", "sessions.idle", "2h").stderr


def test_edit_opens_the_file_in_the_person_s_editor_and_checks_it_then(tmp_path: Path) -> None:
    file, editor = tmp_path / "hermes-gateway/config.yaml", tmp_path / "an editor"
    editor.write_text('#!/bin/sh\necho "$1 {level: debug}" >>"$2"\n')
    editor.chmod(0o700)
    done = config(tmp_path, "edit", EDITOR=f"'{editor}' logs:")
    assert (done.returncode, done.stdout) == (0, f"{file} is right\n"), done.stderr
    assert file.read_text() == "logs: {level: debug}\n"
    wrong = config(tmp_path, "edit", VISUAL=f"'{editor}' logz:", EDITOR="false")
    assert (wrong.returncode, "config.yaml:2:1: error: `logz` is not known" in wrong.stdout) == (78, True), wrong
    for words in ("no-such-editor", "false", "'"):
        left = config(tmp_path, "edit", EDITOR=words)
        assert (left.returncode, "EDITOR=nano hermes-gateway config edit" in left.stderr) == (78, True), left
