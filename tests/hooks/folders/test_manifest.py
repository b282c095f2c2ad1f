"""A manifest is read whole: every mistake has its place and its remedy, and nothing of the folder is run."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import HookError
from gateway.hooks.manifests.manifest import MANIFEST_FILE, MAX_MANIFEST_BYTES, Manifest, ParsedManifest, read_manifest
from gateway.hooks.manifests.manifest_keys import ManifestKeys, ManifestRequires
from gateway.yaml_source.tree import Finding

SAMPLES = Path(__file__).parents[3] / "sample_hooks"


def warnings_in(reading: ParsedManifest) -> list[Finding]:
    return [finding for finding in reading.findings if finding.severity == "warning"]


def read(tmp_path: Path, text: str | bytes, name: str = "weather") -> ParsedManifest:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST_FILE).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_manifest(folder)


def good(tmp_path: Path, text: str) -> Manifest:
    reading = read(tmp_path, text)
    assert not reading.errors, [str(finding) for finding in reading.errors]
    assert reading.manifest
    return reading.manifest


def test_every_key_arrives(tmp_path: Path) -> None:
    manifest = good(
        tmp_path,
        """
name: Weather
description: Tells the weather
version: 1.10
events: [agent:end]
intercepts: ["tool:*"]
when: {platform: [telegram, discord], scope: admin}
order: -100
mode: parallel
max: 2
timeout: 1m30s
on_error: deny
delivery: durable
isolation: none
requires: {bins: [git], env: [API_KEY], python: ["httpx>=0.27"], platforms: [telegram]}
env: [OTHER]
uses: [send, store]
schedule: "0 9 * * 1-5"
options: {threshold: 10, words: [a, b]}
""",
    )
    assert manifest == Manifest(
        folder="weather",
        name="Weather",
        description="Tells the weather",
        version="1.10",
        events=("agent:end", "schedule:weather"),
        intercepts=("tool:*",),
        when={"platform": ["telegram", "discord"], "scope": "admin"},
        order=-100,
        mode="parallel",
        max=2,
        timeout=90,
        on_error="deny",
        says_on_error=True,
        delivery="durable",
        isolation="none",
        requires=ManifestRequires(bins=("git",), env=("API_KEY",), python=("httpx>=0.27",), platforms=("telegram",)),
        env=("OTHER", "API_KEY"),
        uses=("send", "store"),
        schedule="0 9 * * 1-5",
        options={"threshold": 10, "words": ["a", "b"]},
        own_key="intercepts",
    )


def test_little_is_needed(tmp_path: Path) -> None:
    manifest = good(tmp_path, "events: agent:end\n")
    assert (manifest.name, manifest.events, manifest.mode, manifest.enabled) == (
        "weather",
        ("agent:end",),
        "queued",
        True,
    )
    assert (manifest.observe_timeout, manifest.decide_timeout) == (120, 10)


def test_a_remote_hook_has_30_seconds(tmp_path: Path) -> None:
    manifest = good(tmp_path, "events: [agent:end]\nurl: http://127.0.0.1:8000/hooks\n")
    assert (manifest.observe_timeout, manifest.decide_timeout, manifest.wire) == (30, 30, "url")


def test_a_command_may_be_one_line(tmp_path: Path) -> None:
    manifest = good(tmp_path, "events: [agent:end]\ncommand: ./hook.sh --say 'two words'\nprotocol: oneshot\n")
    assert (manifest.command, manifest.protocol) == (("./hook.sh", "--say", "two words"), "oneshot")


def test_a_name_in_both_lists_is_subscribed_once(tmp_path: Path) -> None:
    manifest = good(tmp_path, "events: [tool:before, agent:end]\nintercepts: [tool:before]\n")
    assert manifest.subscriptions == ("tool:before", "agent:end")


def test_everything_wrong_is_told_at_once_with_its_place(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """events: [agent:end, 7, null, {a: b}]
when: {platform: {a: b}}
order: high
mode: queue
timeout: soon
priority: 5
uses: [sned]
env: ["A=1"]
requires: {python: ["httpx>"]}
secret_env: KEY
schedule: "hourly"
url: ftp://x/y
command: ./x
""",
    )
    places = [str(finding.place) for finding in reading.errors]
    for place in ("1:21", "1:24", "1:30", "3:8", "4:7", "5:10", "6:1", "7:8"):
        assert f"weather/HOOK.yaml:{place}" in places, place
    assert reading.manifest is None
    assert all(finding.remedy for finding in reading.findings)
    with pytest.raises(HookError, match=r"(?s)weather cannot be read.*:1:21.*:6:1.*order: <number>"):
        reading.required(tmp_path / "weather")


def test_what_binds_is_checked_further_and_told_together(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """events: [true, 7, "two words", "agent:end"]
when: {platform: {a: b}, chat_type: []}
delivery: durable
env: ["A=1"]
requires: {python: ["httpx>"]}
secret_env: KEY
schedule: "hourly"
url: ftp://x/y
command: "'"
""",
    )
    found = {str(finding.place).partition(":")[2]: finding.what for finding in reading.errors}
    assert set(found) >= {"1:10", "1:16", "1:19", "2:18", "2:37", "4:7", "5:21", "7:11", "8:6", "9:10"}
    assert found["1:10"] == "`true` is true or false, not the name of an event"


@pytest.mark.row("SHE-45")
@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("events: [a:b]\nevents: [c:d]\n", "2:1", "a second time"),
        ("events: &x [a:b]\nintercepts: *x\n", "1:9", "anchor"),
        ("events: [a:b]\nname: !!python/object/apply:os.system [touch x]\n", "2:7", "tag"),
        ("events: [a:b]\n---\nevents: []\n", "2:1", "second document"),
        ("events: [a:b\n", "2:1", "sequence"),
        ("events:\n\t- a:b\n", "2:1", "tab"),
        ("- a:b\n", "1:1", "list"),
        ("", "1:1", "no event"),
        ("name: x\n", "1:1", "no event"),
        ("events: []\n", "1:9", "no event"),
        ("events: {agent:end: true}\n", "1:9", "mapping"),
        ("events: [a:b]\nprotocol: oneshot\n", "2:11", "means nothing without"),
        ("events: [a:b]\ndialect: sherma\n", "2:10", "means nothing without"),
        ("intercepts: [tool:before]\ndelivery: durable\n", "2:11", "observes nothing"),
        ("events: ['command:foo*']\ndelivery: durable\n", "1:10", "durably"),
        ("events: [a:b]\nurl: http://me:secret@host/\n", "2:6", "password"),
        ("events: [a:b]\nurl: 'http://'\n", "2:6", "not a web address"),
        ("events: [a:b]\nurl: nats://me:secret@host/hooks.x\n", "2:6", "password"),
        ("events: [a:b]\nurl: nats://host:4222\n", "2:6", "not an address of a hook on NATS"),
        ("events: [a:b]\nurl: nats://host:4222/hooks.*\n", "2:6", "not a subject"),
        ("events: [a:b]\nurl: nats://host:4222/$JS.API\n", "2:6", "not a subject"),
        ("events: [a:b]\nurl: nats://one:4222,two:x/hooks.x\n", "2:6", "not a HOST:PORT"),
        ("events: [a:b]\nurl: nats://me@host/hooks.x\n", "2:6", "nothing its password"),
        ("events: [a:b]\nurl: nats://host/hooks.x\nsecret_env: WORD\n", "3:13", "`url` names none"),
        ("events: [a:b]\nenv: [sk-1234567890]\n", "2:7", "not the name of an environment variable"),
        ("events: [a:b]\nurl: https://host/\ncommand: ./run\n", "2:6", "both set"),
        ("intercepts: [a:b]\npriority: 1\norder: 1\n", "2:1", "low first in some systems"),
        ("events: [a:b]\nname: \x07\n", "2:7", "not text"),
        ("events: [a:b]\nmax: 0\nmode: parallel\n", "2:6", "range"),
        ("events: [a:b]\ntimeout: 0\n", "2:10", "range"),
    ],
)
def test_a_mistake_has_its_line_and_column(tmp_path: Path, text: str, place: str, what: str) -> None:
    found = [finding for finding in read(tmp_path, text).errors if what in str(finding)]
    assert f"weather/HOOK.yaml:{place}" in [str(finding.place) for finding in found], read(tmp_path, text).findings


@pytest.mark.row("T21")
def test_bombs_and_huge_files_are_refused(tmp_path: Path) -> None:
    bomb = "a: &a [x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
    )
    assert read(tmp_path, bomb).errors
    assert "larger than 64,000 bytes" in read(tmp_path, b"#" * (MAX_MANIFEST_BYTES + 1)).errors[0].what
    assert read(tmp_path, "events: " + "[" * 30_000).errors


def test_names_that_nobody_emits_are_accepted_and_told(tmp_path: Path) -> None:
    reading = read(tmp_path, "events: [agent:strat, my:event, before_message, 'toool:*']\nintercepts: [agent:step]\n")
    assert reading.manifest
    assert reading.manifest.events == ("agent:strat", "my:event", "before_message", "toool:*")
    told = [(finding.what, finding.remedy) for finding in warnings_in(reading)]
    assert ("unknown event `agent:strat`", "did you mean `agent:start`?") in told
    assert ("unknown event `before_message`", "did you mean `message:received`?") in told
    assert ("unknown event `toool:*`", "did you mean `tool:*`?") in told
    assert any("the gateway does not emit `my:event`" in what for what, _ in told)
    assert any("nothing of `agent:step` can be changed" in what for what, _ in told)


def test_an_unknown_key_is_told_with_a_suggestion(tmp_path: Path) -> None:
    reading = read(tmp_path, "events: [agent:end]\nordr: 5\n")
    assert reading.manifest
    assert [(str(found.place), found.remedy) for found in warnings_in(reading)] == [
        ("weather/HOOK.yaml:2:1", "did you mean `order`?")
    ]


def test_a_value_that_stands_as_a_key_is_told_its_key(tmp_path: Path) -> None:
    reading = read(tmp_path, "events: [agent:end]\noneshot: true\ndurable: true\n")
    assert [found.remedy for found in warnings_in(reading)] == [
        "did you mean `protocol: oneshot`?",
        "did you mean `delivery: durable`?",
    ]


def test_a_condition_that_can_never_hold_is_told(tmp_path: Path) -> None:
    (found,) = warnings_in(read(tmp_path, "intercepts: [tool:before]\nwhen: {plattform: telegram}\n"))
    assert "no event of this hook has a field `plattform`" in found.what
    assert found.remedy == "did you mean `platform`?"
    assert not read(tmp_path, "intercepts: ['tool:*', my:own]\nwhen: {whatever: 1, platform: x}\n").errors


def test_yes_no_and_versions_mean_what_they_say(tmp_path: Path) -> None:
    """The traps of YAML 1.1: `no` is a name here, 1.10 a version, and `on` no event."""
    manifest = good(tmp_path, "name: no\nversion: 1.10\nevents: [agent:end]\nwhen: {platform: 'on'}\nenabled: off\n")
    assert (manifest.name, manifest.version, manifest.when, manifest.enabled) == (
        "no",
        "1.10",
        {"platform": "on"},
        False,
    )


def test_a_folder_written_for_hermes_is_read_as_hermes_reads_it(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        "name: old\nversion: 1.0\nauthor: me\nlicense: MIT\nplatforms: [telegram]\npriority: 3\nevents: [agent:end]\n",
    )
    assert reading.manifest
    assert not reading.manifest.own_key
    assert [finding.place.line for finding in warnings_in(reading)] == [5, 6]
    assert "write `order: <number>`" in warnings_in(reading)[1].remedy
    assert good(tmp_path, "events: [agent:end]\norder: 1\n").own_key
    shared = read(tmp_path, "events: [agent:end]\ntimeout: 5\nenabled: true\nplatforms: [telegram]\npriority: 3\n")
    assert shared.manifest
    assert shared.manifest.timeout == 5
    assert [finding.place.line for finding in warnings_in(shared)] == [4, 5]


@pytest.mark.row("T27")
def test_a_guard_is_known_even_when_its_manifest_is_broken_elsewhere(tmp_path: Path) -> None:
    reading = read(tmp_path, "intercepts: [tool:before, 7]\non_error: deny\ntimeout: soon\nwhen: {tool: shell}\n")
    assert reading.manifest is None
    assert reading.guard
    assert reading.guard.intercepts == ("tool:before", "7")
    assert reading.guard.when == {"tool": "shell"}


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in SAMPLES.glob("*/HOOK.yaml")), ids=lambda folder: folder.name
)
def test_the_sample_hooks_are_without_findings(folder: Path) -> None:
    assert not read_manifest(folder).findings


NAMES = st.sampled_from((*ManifestKeys.__struct_fields__, "priority", "author", "nonsense"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["tool:before", "agent:*", "deny", "durable", "oneshot", "http://x/", "30s", "./x", "0 9 * * 1"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_whatever_a_manifest_holds_it_is_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    reading = read(tmp_path_factory.mktemp("m"), yaml.safe_dump(data, allow_unicode=True))
    assert (reading.manifest is None) is bool(reading.errors)
    assert all(finding.place.line or "larger" in finding.what for finding in reading.findings)
    if reading.manifest:
        assert reading.manifest.subscriptions


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_whatever_bytes_stand_there_reading_ends_well(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    reading = read(tmp_path_factory.mktemp("m"), data)
    assert (reading.manifest is None) is bool(reading.errors)


def test_what_a_dialect_has_no_word_for_is_not_subscribed_to_and_told(tmp_path: Path) -> None:
    text = "intercepts: ['llm:*', tools:before]\nevents: [command:new]\nurl: http://127.0.0.1:1/\ndialect: sherma\n"
    reading = read(tmp_path, text)
    assert reading.manifest
    assert reading.manifest.intercepts == ("llm:before", "llm:after", "tools:before")
    assert reading.manifest.events == ()
    told = {str(finding.place): finding.what for finding in warnings_in(reading)}
    assert told["weather/HOOK.yaml:2:10"] == "sherma has no word for command:new: the hook is not told of that"
    assert "llm:chunk" in told["weather/HOOK.yaml:1:14"]
    assert good(tmp_path, text.replace("dialect: sherma\n", "")).intercepts == ("llm:*", "tools:before")
