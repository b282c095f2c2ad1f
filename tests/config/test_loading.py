"""One configuration from all sources: their order, refused values, and the messages about mistakes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.home import Home
from gateway.config.loading import load_configuration, read_configuration
from gateway.config.permissions import prepare_home
from gateway.errors import ConfigError, ExitCode
from tests.config.sources import SCHEMA, look, right, said

CANARY = "123456789:AAE-canary-canary-canary-canary-can"


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    configuration, findings = read_configuration(SCHEMA, Home(tmp_path / "none"), {})
    assert findings == []
    assert configuration is not None
    assert configuration.settings == SCHEMA.settings()
    assert configuration.settings.model.provider == "demo"
    assert not (tmp_path / "none").exists()


def test_a_file_that_lost_power_emptied_is_named(home: Home) -> None:
    home.config.write_bytes(b"")
    configuration, findings = read_configuration(SCHEMA, home, {})
    assert configuration
    assert configuration.settings == SCHEMA.settings()
    assert [(found.severity, found.what) for found in findings] == [
        ("warning", "it has 0 bytes, so the defaults are in effect")
    ]


@pytest.mark.parametrize("text", ["# nothing\n", "---\n", "~\n", "gateway:\nmodel:\nhooks:\naccess: {users: }\n"])
def test_an_empty_file_or_section_changes_nothing(home: Home, text: str) -> None:
    assert right(home, text).settings == SCHEMA.settings()


def test_each_source_counts_more_than_the_next(home: Home) -> None:
    text = "logs: {level: error, keep: 1, size: 20kB}"
    env = "GATEWAY_LOGS_LEVEL=debug\nGATEWAY_LOGS_KEEP=2\n"
    assert right(home, text, env).settings.logs.keep == 2
    assert right(home, text, env, {}, GATEWAY_LOGS_KEEP="3").settings.logs.keep == 3
    got = right(home, text, env, {"logs.keep": "4"}, GATEWAY_LOGS_KEEP="3")
    assert (got.settings.logs.keep, got.settings.logs.level, got.settings.logs.size) == (4, "debug", 20_000)
    assert {name: str(place) for name, place in got.origins.items()} == {
        "logs.keep": "the command line",
        "logs.level": f"{home.env}:1:1",
        "logs.size": f"{home.config}:1:37",
    }


@pytest.mark.parametrize("name", [*SCHEMA.hermes_variables, *SCHEMA.own_variables], ids=lambda name: name.variable)
def test_every_variable_means_its_setting(home: Home, name: object) -> None:
    """A value that is right for no setting: so each variable shows which one it is read for."""
    path = ".".join(name.path)  # type: ignore[attr-defined]
    configuration, findings = look(home, **{name.variable: "7"})  # type: ignore[attr-defined]
    told = " ".join(map(str, findings))
    assert f"`{path}" in told or (configuration is not None and path in configuration.origins)


def test_lists_are_separated_by_commas(home: Home) -> None:
    got: Any = right(home, TELEGRAM_ALLOWED_USERS="12, 34,,", SLACK_FREE_RESPONSE_CHANNELS="[C1,C2]").settings
    assert got.access.users.telegram == ("12", "34")
    assert got.platforms.slack.free_response_channels == ("C1", "C2")


@pytest.mark.parametrize(("text", "value"), [("1", True), ("0", False), ("true", True), ("No", False), ("on", True)])
def test_flags_of_the_environment_may_be_numbers(home: Home, text: str, value: bool) -> None:
    platforms: Any = right(home, DISCORD_AUTO_THREAD=text).settings.platforms
    assert platforms.discord.auto_thread is value


def test_what_hermes_may_mean_otherwise_is_passed_over_with_a_warning(home: Home) -> None:
    configuration, findings = look(home, DISCORD_AUTO_THREAD="sometimes", SLACK_ALLOW_BOTS="some")
    assert configuration is not None
    assert configuration.settings == SCHEMA.settings()
    assert [(finding.severity, str(finding.place)) for finding in findings] == [
        ("warning", "the variable DISCORD_AUTO_THREAD"),
        ("warning", "the variable SLACK_ALLOW_BOTS"),
    ]


def test_what_is_ours_is_checked_strictly_wherever_it_stands(home: Home) -> None:
    lines = said(home, "logs: {level: loud}", GATEWAY_LOGS_KEEP="many")
    assert sorted(line.split(": error: ")[0] for line in lines) == [
        "config.yaml:1:15",
        "the variable GATEWAY_LOGS_KEEP",
    ]


def test_a_variable_of_ours_that_is_misspelt_is_warned_about(home: Home) -> None:
    assert said(home, GATEWAY_LOG_LEVEL="debug") == [
        "the variable GATEWAY_LOG_LEVEL: warning: GATEWAY_LOG_LEVEL means nothing; did you mean GATEWAY_LOGS_LEVEL?"
    ]


def test_settings_of_earlier_versions_are_passed_over_with_a_warning_at_their_place(home: Home) -> None:
    text = "journal:\n  shards: 16\n  max_size: 1G\n  repeats: 3d\n"
    configuration = right(home, text, GATEWAY_JOURNAL_SHARDS="4", GATEWAY_JOURNAL_REPEATS="3d")
    assert configuration.settings.journal.max_size == 1 << 30
    for where, name in (("config.yaml:2:3", "shards"), ("config.yaml:4:3", "repeats")):
        told = [str(one) for one in configuration.warnings if f"`journal.{name}` does nothing any more" in one.what]
        assert [one.split(": warning: ")[0].rpartition("/")[2] for one in told] == [
            where,
            f"the variable GATEWAY_JOURNAL_{name.upper()}",
        ]
    assert len(configuration.warnings) == 4


def test_all_mistakes_are_told_together(home: Home) -> None:
    home.config.write_text("logs: {levl: debug}\ngateway: {shutdown_timeout: 1h}\nmodell: {}\n")
    with pytest.raises(ConfigError) as refused:
        load_configuration(SCHEMA, home, {})
    assert refused.value.exit == ExitCode.CONFIG
    assert str(refused.value).replace(f"{home.own_folder}/", "").splitlines() == [
        "the configuration is not right",
        "config.yaml:1:8: error: `logs.levl` is not known; did you mean `level`?",
        "config.yaml:2:29: error: `gateway.shutdown_timeout` is out of range; write at most 10m",
        "config.yaml:3:1: error: `modell` is not known; did you mean `model`?",
    ]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("ingress,lane", "`node.roles.2` cannot have this value; did you mean `lanes`?"),
        ("turns", "`node.roles.1` cannot have this value; write `hooks` or `ingress` or `lanes` or `web`"),
        ("", "`node.roles` is empty; give at least 1 entry"),
    ],
)
def test_a_part_of_the_work_that_there_is_not_and_none_at_all_are_refused(home: Home, given: str, what: str) -> None:
    written = [str(one) for one in look(home, f"node: {{roles: [{given}]}}")[1]]
    typed = [str(one) for one in look(home, "", "", {"node.roles": given})[1]]
    assert [typed, [one.partition(" ")[2] for one in written]] == [
        [f"the command line: error: {what}"],
        [f"error: {what}"],
    ]


@pytest.mark.parametrize(
    ("data", "said_of_it"),
    [
        (b"\x7fELF\x02\x01\x01\x00" * 100, "is not text"),
        (b"logs: \xff\xfe", "not UTF-8"),
        (b"a: b\n" * 2_500_000, "larger than 1,000,000 bytes"),
        (b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchor"),
        (b"!!python/object/apply:os.system [id]", "tag"),
        (b"- a list", "a mapping is wanted here"),
        (b"just words", "a mapping is wanted here"),
        (b"logs: [", "brackets"),
    ],
    ids=["binary", "latin", "large", "bomb", "tag", "list", "text", "torn"],
)
def test_a_file_that_is_no_configuration_is_refused(home: Home, data: bytes, said_of_it: str) -> None:
    home.config.write_bytes(data)
    with pytest.raises(ConfigError, match=said_of_it):
        load_configuration(SCHEMA, home, {})


def test_a_directory_in_the_files_place_is_refused(home: Home) -> None:
    home.config.mkdir(mode=0o700)
    with pytest.raises(ConfigError, match=r"config\.yaml: error: cannot be read: Is a directory"):
        load_configuration(SCHEMA, home, {})


@pytest.mark.row("T33")
def test_an_unsafe_file_is_refused(home: Home) -> None:
    home.config.write_text("logs: {level: debug}")
    home.config.chmod(0o666)
    with pytest.raises(ConfigError, match="everybody on this machine can change it"):
        load_configuration(SCHEMA, home, {})


@pytest.mark.row("T24")
def test_nothing_is_read_from_the_working_directory(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("TELEGRAM_BOT_TOKEN=stranger\n")
    (tmp_path / "config.yaml").write_text("logs: {level: debug}\n")
    monkeypatch.chdir(tmp_path)
    assert right(home).settings == SCHEMA.settings()


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="abhlogsmdel:- \n{}[]'\"#", max_size=60), st.text(alphabet="ABGATEWY_LOGS='\"\n ${}", max_size=40)
)
def test_any_sources_give_a_configuration_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, env: str
) -> None:
    home = Home(tmp_path_factory.mktemp("home") / "home")
    prepare_home(home)
    configuration, findings = look(home, text, env)
    assert (configuration is None) == any(finding.severity == "error" for finding in findings)
