"""The schemas for editors accept and refuse the same files as the gateway, by an independent validator."""

import json
import re
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from gateway.config.home import Home
from gateway.config.loading import read_configuration
from gateway.config.permissions import prepare_home
from gateway.hooks.manifests.manifest import read_manifest
from tests.config.sources import SCHEMA
from tests.config.test_reference import FULL

ROOT = Path(__file__).parent.parent
MANIFESTS = sorted(ROOT.glob("sample_hooks/*/HOOK.yaml")) + sorted(ROOT.glob("hooks_builtin/*/HOOK.yaml"))
SHOWN = [
    block
    for page in sorted(ROOT.glob("docs/*.md"))
    for block in re.findall(r"(?s)```yaml\n(# HOOK.yaml\n.*?)```", page.read_text())
]


class EditorLoader(yaml.SafeLoader):
    """YAML as editors read it: `off` and `no` are words, and a date is a text."""


EditorLoader.yaml_implicit_resolvers = {
    sign: [
        (tag, pattern) for tag, pattern in found if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
    ]
    for sign, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
EditorLoader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:true|false)$"), list("tf"))


def schema(name: str) -> Draft202012Validator:
    """The file as it is shipped."""
    written = json.loads((ROOT / "gateway" / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(written)
    return Draft202012Validator(written)


HOOK, CONFIG = schema("HOOK"), schema("config")


def find_errors(validator: Draft202012Validator, text: str) -> list[str]:
    found = validator.iter_errors(yaml.load(text, EditorLoader))
    return [f"{error.json_path}: {error.message[:200]}" for error in found]


def manifest_errors(tmp_path: Path, text: str) -> list[str]:
    """What the gateway says of it."""
    folder = tmp_path / "hook"
    folder.mkdir(exist_ok=True)
    (folder / "HOOK.yaml").write_text(text)
    return [str(finding) for finding in read_manifest(folder).findings]


def test_every_manifest_that_we_show_is_right() -> None:
    texts = {str(path): path.read_text("utf-8") for path in MANIFESTS} | {text: text for text in SHOWN}
    assert len(texts) > 30
    assert {name: wrong for name, text in texts.items() if (wrong := find_errors(HOOK, text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "events: agent:end",
        "events: [agent:end, my:own, 'tool:*']\nversion: 1.0\nauthor: {name: me}\n",
        "intercepts: [tool:before]\nwhen: {tool: [shell, read_file]}\ntimeout: 500ms\non_error: deny\norder: -1.5\n",
        "schedule: every 15m\nuses: [send, store]\nenv: API_KEY\nnet: [443]\nreads: [~/notes]\nwrites: /srv\n",
        "webhook: {secret_env: SECRET, verify: github}\noptions:\nrequires:\n",
        "url: https://host/hook\nsecret_env: SECRET\nevents: [agent:end]\ndialect: sherma\n",
        "url: nats://me@one:4222,two:4222/hooks.x\nsecret_env: SECRET\nevents: [agent:end]\n",
        "command: [node, hook.js]\nprotocol: oneshot\nevents: [agent:end]\nrequires: {bins: node, python: [httpx]}\n",
    ],
)
def test_a_manifest_that_the_gateway_takes_is_right(tmp_path: Path, text: str) -> None:
    assert not [found for found in manifest_errors(tmp_path, text) if "the gateway does not emit" not in found]
    assert find_errors(HOOK, text) == []


@pytest.mark.parametrize(
    "text",
    [
        "name: nobody calls it",
        "- agent:end",
        "events: [agent end]",
        "events: {agent: end}",
        "events: [agent:end]\nevnts: [tool:before]",
        "events: [agent:end]\nuses: [fly]",
        "events: [agent:end]\ntimeout: soon",
        "events: [agent:end]\ntimeout: [1]",
        "events: [agent:end]\norder: first",
        "events: [agent:end]\nmode: parallel\nmax: 100",
        "events: [agent:end]\non_error: stop",
        "events: [agent:end]\nreads: [notes]",
        "events: [agent:end]\nnet: [70000]",
        "events: [agent:end]\nenv: [A-KEY]",
        "events: [agent:end]\nenabled: maybe",
        "events: [agent:end]\nprotocol: oneshot",
        "events: [agent:end]\nsecret_env: KEY",
        "events: [agent:end]\nurl: host/hook",
        "events: [agent:end]\nurl: https://host/hook\nnet: false",
        "events: [agent:end]\nurl: https://host/hook\ncommand: [node, hook.js]",
        "events: [agent:end]\nrequires: {binaries: [git]}",
        "webhook: {verify: github}",
        "webhook: {secret_env: KEY, verify: nobody}",
    ],
)
def test_a_manifest_that_the_gateway_finds_fault_with_is_wrong(tmp_path: Path, text: str) -> None:
    assert manifest_errors(tmp_path, text)
    assert find_errors(HOOK, text)


def config_errors(tmp_path: Path, text: str) -> list[str]:
    home = Home(tmp_path / "home")
    prepare_home(home)
    home.config.write_text(text)
    return [str(finding) for finding in read_configuration(SCHEMA, home, {})[1] if finding.severity == "error"]


@pytest.mark.parametrize("text", [FULL, "logs:\nplatforms: {telegram: }\ntools: {shell: off}\n"])
def test_a_configuration_that_the_gateway_takes_is_right(tmp_path: Path, text: str) -> None:
    assert config_errors(tmp_path, text) == []
    assert find_errors(CONFIG, text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("logs: {levl: debug}", "$.logs"),
        ("logs: {level: loud}", "$.logs.level"),
        ("gateway: {shutdown_timeout: [1]}", "$.gateway.shutdown_timeout"),
        ("gateway: {shutdown_timeout: -5}", "$.gateway.shutdown_timeout"),
        ("access: {rate: many}", "$.access.rate"),
        ("routes: [{platform: x}]", "$.routes[0]"),
        ("hooks: {shout: {on_error: stop}}", "$.hooks.shout.on_error"),
    ],
)
def test_a_configuration_that_the_gateway_refuses_is_wrong(tmp_path: Path, text: str, place: str) -> None:
    assert config_errors(tmp_path, text)
    assert [found.partition(": ")[0] for found in find_errors(CONFIG, text)] == [place]
