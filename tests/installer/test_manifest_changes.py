"""An update that asks for more: each key of HOOK.yaml is looked at, also one that is new."""

from pathlib import Path

import pytest

from gateway.daemon.dialects import DIALECTS
from gateway.hooks.manifests.installed import list_missing_grants
from gateway.hooks.manifests.manifest_keys import ManifestKeys
from gateway.installer.fetched_hook import FetchedHook, read_hook
from gateway.installer.manifest_changes import GRANTED, HARMLESS, list_manifest_changes, list_missing_guards
from tests.installer.archives import HANDLER, put

pytestmark = pytest.mark.row("T25")

URL, PROGRAM = "url: http://127.0.0.1:9/told\n", "command: sh -e\n"
# Before, after, and what asks for more; nothing, where it does not.
MORE: dict[str, tuple[str, str, str]] = {
    "events": ("", "events: [agent:end, message:received]\n", "events: message:received"),
    "intercepts": ("", "intercepts: [tool:before]\n", "intercepts: tool:before"),
    "when": (
        "when: {platform: slack}\n",
        "when: {platform: [slack, telegram]}\n",
        "when: platform is slack or telegram",
    ),
    "order": ("", "order: -5\n", "order: -5.0"),
    "timeout": ("timeout: 5s\n", "timeout: 1h\n", "timeout: 3600.0"),
    "on_error": ("on_error: deny\n", "on_error: raise\n", "on_error: raise"),
    "delivery": ("", "delivery: durable\n", "delivery: durable"),
    "isolation": ("", "isolation: none\n", "isolation: none"),
    "env": ("", "env: API_KEY\n", "env: API_KEY"),
    "uses": ("", "uses: send\n", "uses: send"),
    "schedule": ("schedule: every 1h\n", "schedule: every 5m\n", "schedule: every 5m"),
    "webhook": (
        "delivery: durable\n",
        "delivery: durable\nwebhook: {secret_env: WORD, verify: token}\n",
        "webhook: token with WORD",
    ),
    "command": (PROGRAM, "command: [sh, -x]\n", "command: sh -x"),
    "url": (URL, "url: http://127.0.0.1:9/elsewhere\n", "url: http://127.0.0.1:9/elsewhere"),
    "dialect": (f"{URL}dialect: sherma\n", URL, "dialect: gateway"),
    "secret_env": (URL, f"{URL}secret_env: WORD\n", "env: WORD"),
    "reads": ("reads: /srv/a\n", "reads: /srv\n", "reads: /srv"),
    "writes": ("", "writes: /srv\n", "writes: /srv"),
    "net": ("net: [443]\n", "net: [443, 80]\n", "net: TCP to the ports 443, 80"),
    "enabled": ("enabled: false\n", "", "enabled: True"),
    "written_for": ("", "written_for: hermes\n", "written_for: hermes"),
}
NO_MORE: dict[str, tuple[str, str]] = {
    "name": ("", "name: Greets\n"),
    "description": ("", "description: Says hello\n"),
    "version": ("", "version: 2.0\n"),
    "mode": ("", "mode: parallel\n"),
    "keep": ("", "keep: true\n"),
    "max": ("mode: parallel\n", "mode: parallel\nmax: 8\n"),
    "requires": ("", "requires: {bins: sh, platforms: slack}\n"),
    "options": ("", "options: {tone: kind}\n"),
    "protocol": (PROGRAM, f"{PROGRAM}protocol: oneshot\n"),
}


GUARD = "intercepts: [tool:before, llm:after]\n"
# Before, after, and what it guards less; nothing, where it does not.
LESS_GUARDED: dict[str, tuple[str, str, list[str]]] = {
    "fewer events": (GUARD, "intercepts: llm:after\n", ["decides no more on tool:before"]),
    "observes": (GUARD, "events: [tool:before, llm:after]\n", ["decides no more on tool:before, llm:after"]),
    "narrower": ("intercepts: tool:*\n", "intercepts: tool:?*\n", ["decides no more on tool:*"]),
    "wider": (GUARD, "intercepts: [tool:*, llm:after]\n", []),
    "off": (GUARD, f"{GUARD}enabled: false\n", ["is switched off: enabled: false"]),
    "was off": (f"{GUARD}enabled: false\n", "intercepts: llm:after\n", []),
    "skipped": (f"{GUARD}on_error: deny\n", GUARD, ["denies nothing where it fails: on_error: skip"]),
    "denies": (GUARD, f"{GUARD}on_error: deny\n", []),
    "only when": (
        f"{GUARD}when: {{platform: [slack, telegram]}}\n",
        f"{GUARD}when: {{platform: slack}}\n",
        ["decides only when platform is slack"],
    ),
    "whenever": (f"{GUARD}when: {{platform: slack}}\n", GUARD, []),
    "hurried": (GUARD, f"{GUARD}timeout: 0.001\n", ["is passed over after 0.001 s: timeout"]),
    "hurried, denies": (f"{GUARD}on_error: deny\n", f"{GUARD}on_error: deny\ntimeout: 1\n", []),
    "hurried elsewhere": (f"{URL}{GUARD}", f"{URL}{GUARD}timeout: 20\n", ["is passed over after 20 s: timeout"]),
    "fails no more": (f"{GUARD}on_error: raise\n", GUARD, ["denies nothing where it fails: on_error: skip"]),
    "lacks a program": (
        GUARD,
        f"{GUARD}requires: {{bins: no-such}}\n",
        ["does not run without no-such: requires.bins"],
    ),
    "lacks a network": (
        f"{GUARD}requires: {{platforms: [slack, telegram]}}\n",
        f"{GUARD}requires: {{platforms: slack}}\n",
        ["does not run without slack: requires.platforms"],
    ),
    "more networks": (
        f"{GUARD}requires: {{platforms: slack}}\n",
        f"{GUARD}requires: {{platforms: [slack, telegram]}}\n",
        [],
    ),
    "lacks it, denies": (f"{GUARD}on_error: deny\n", f"{GUARD}on_error: deny\nrequires: {{bins: no-such}}\n", []),
    "no guard": ("events: [agent:end, tool:before]\n", "events: agent:end\nenabled: false\n", []),
}


@pytest.mark.parametrize(("before", "now", "said"), LESS_GUARDED.values(), ids=LESS_GUARDED)
def test_what_a_guard_lets_pass_is_said(tmp_path: Path, before: str, now: str, said: list[str]) -> None:
    assert list_less(*put_versions(tmp_path, before, now)) == said


def test_what_only_the_code_decides_on_is_said_too(tmp_path: Path) -> None:
    code = 'def handle(event_type, context):\n    return {"decision": "deny"}\n'
    texts = [f"name: greet\nevents: [command:new{more}]\n" for more in (", command:model", "")]
    folders = [
        put(tmp_path / str(at) / "greet", {"HOOK.yaml": text, "handler.py": code}) for at, text in enumerate(texts)
    ]
    assert list_less(*folders) == ["decides no more on command:model"]


def list_less(then: Path, there: Path) -> list[str]:
    before, now = map(read, (then, there))
    return [*list_missing_guards(then, now.manifest, before.manifest.intercepts)]


def read(folder: Path) -> FetchedHook:
    return read_hook(folder, DIALECTS)


def put_versions(tmp_path: Path, *manifests: str) -> list[Path]:
    files = ({"HOOK.yaml": text, "handler.py": HANDLER} for text in manifests)
    return [put(tmp_path / str(at) / "greet", version) for at, version in enumerate(files)]


def list_more(tmp_path: Path, before: str, now: str) -> list[str]:
    texts = [f"{'' if 'events' in said else 'events: agent:end'}\n{said}" for said in (before, now)]
    installed, newer = map(read, put_versions(tmp_path, *texts))
    changes = list_manifest_changes(installed.folder, newer.folder, "greet")
    return [*list_missing_grants(newer.manifest, installed.grants), *changes]


def test_every_key_has_its_line_here() -> None:
    assert {*MORE} | {*NO_MORE} == {*ManifestKeys.__struct_fields__}
    assert {*NO_MORE} == HARMLESS
    assert {*MORE} > GRANTED


@pytest.mark.parametrize(("before", "now", "said"), MORE.values(), ids=MORE)
def test_more_of_it_is_said_and_less_is_not(tmp_path: Path, before: str, now: str, said: str) -> None:
    assert list_more(tmp_path / "more", before, now) == [said]
    assert list_more(tmp_path / "same", now, now) == []


@pytest.mark.parametrize(("before", "now"), NO_MORE.values(), ids=NO_MORE)
def test_what_is_for_people_or_changes_no_right_is_not(tmp_path: Path, before: str, now: str) -> None:
    assert list_more(tmp_path, before, now) == []


LESS = ["when", "timeout", "on_error", "delivery", "isolation", "uses", "env", "reads", "net", "enabled"]


@pytest.mark.parametrize("key", LESS)
def test_the_way_back_asks_for_less(tmp_path: Path, key: str) -> None:
    before, now, _ = MORE[key]
    assert list_more(tmp_path, now, before if key != "on_error" else "") == []
