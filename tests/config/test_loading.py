"""From all sources to one configuration: what counts most, what is refused, and how a mistake is told."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config.guard import prepare
from gateway.config.home import Home
from gateway.config.loading import Configuration, examine, load
from gateway.config.names import ALLOW_ALL, hermes_names, own_names
from gateway.config.secret import Secret
from gateway.config.settings import Settings
from gateway.errors import ConfigError, Exit
from gateway.located import Finding

CANARY = "123456789:AAE-canary-canary-canary-canary-can"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    return home


def right(
    home: Home, text: str = "", env: str = "", chosen: dict[str, str] | None = None, **environ: str
) -> Configuration:
    """The configuration from these sources; there may be warnings, but no errors."""
    configuration, findings = look(home, text, env, chosen, **environ)
    assert configuration is not None, [str(finding) for finding in findings]
    return configuration


def look(
    home: Home, text: str = "", env: str = "", chosen: dict[str, str] | None = None, **environ: str
) -> tuple[Configuration | None, list[Finding]]:
    home.config.write_text(text)
    home.config.chmod(0o600)
    home.env.write_text(env)
    home.env.chmod(0o600)
    return examine(home, environ, chosen or {})


def said(home: Home, text: str = "", env: str = "", **environ: str) -> list[str]:
    """The findings, with short names for the files."""
    _, findings = look(home, text, env, **environ)
    names = ((f"{home.ours}/", ""), (f"{home.root}/", ""))
    lines = [str(finding) for finding in findings]
    for long, short in names:
        lines = [line.replace(long, short) for line in lines]
    return lines


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    configuration, findings = examine(Home(tmp_path / "none"), {})
    assert findings == []
    assert configuration is not None
    assert configuration.settings == Settings()
    assert configuration.settings.model.provider == "demo"
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "~\n", "gateway:\nmodel:\nhooks:\naccess: {users: }\n"])
def test_an_empty_file_or_section_changes_nothing(home: Home, text: str) -> None:
    assert right(home, text).settings == Settings()


def test_each_source_counts_more_than_the_next(home: Home) -> None:
    text, env, chosen = (
        "logs: {level: error, keep: 1, size: 20kB}",
        "GATEWAY_LOGS_LEVEL=debug\nGATEWAY_LOGS_KEEP=2\n",
        {},
    )
    assert right(home, text, env).settings.logs.keep == 2
    assert right(home, text, env, chosen, GATEWAY_LOGS_KEEP="3").settings.logs.keep == 3
    got = right(home, text, env, {"logs.keep": "4"}, GATEWAY_LOGS_KEEP="3")
    assert (got.settings.logs.keep, got.settings.logs.level, got.settings.logs.size) == (4, "debug", 20_000)
    assert {name: str(place) for name, place in got.origins.items()} == {
        "logs.keep": "the command line",
        "logs.level": f"{home.env}:1:1",
        "logs.size": f"{home.config}:1:37",
    }


@pytest.mark.parametrize("name", [*hermes_names(), *own_names()], ids=lambda name: name.variable)
def test_every_variable_means_its_setting(home: Home, name: object) -> None:
    """A value that is right for no setting: so each variable shows which one it is read for."""
    path = ".".join(name.path)  # type: ignore[attr-defined]
    configuration, findings = look(home, **{name.variable: "7"})  # type: ignore[attr-defined]
    told = " ".join(map(str, findings))
    assert f"`{path}" in told or (configuration is not None and path in configuration.origins)


def test_lists_are_separated_by_commas(home: Home) -> None:
    got = right(home, TELEGRAM_ALLOWED_USERS="12, 34,,", SLACK_FREE_RESPONSE_CHANNELS="[C1,C2]").settings
    assert got.access.users.telegram == ("12", "34")
    assert got.platforms.slack.free_response_channels == ("C1", "C2")


@pytest.mark.parametrize(("text", "value"), [("1", True), ("0", False), ("true", True), ("No", False), ("on", True)])
def test_flags_of_the_environment_may_be_numbers(home: Home, text: str, value: bool) -> None:
    assert right(home, DISCORD_AUTO_THREAD=text).settings.platforms.discord.auto_thread is value


def test_what_hermes_may_mean_otherwise_is_passed_over_with_a_warning(home: Home) -> None:
    configuration, findings = look(home, DISCORD_AUTO_THREAD="sometimes", SLACK_ALLOW_BOTS="some")
    assert configuration is not None
    assert configuration.settings == Settings()
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


def test_all_mistakes_are_told_together(home: Home) -> None:
    home.config.write_text("logs: {levl: debug}\ngateway: {shutdown_timeout: 1h}\nmodell: {}\n")
    with pytest.raises(ConfigError) as refused:
        load(home, {})
    assert refused.value.exit == Exit.CONFIG
    assert str(refused.value).replace(f"{home.ours}/", "").splitlines() == [
        "the configuration is not right",
        "config.yaml:1:8: error: `logs.levl` is not known; did you mean `level`?",
        "config.yaml:2:29: error: `gateway.shutdown_timeout` is out of range; write at most 10m",
        "config.yaml:3:1: error: `modell` is not known; did you mean `model`?",
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
        load(home, {})


def test_a_directory_in_the_files_place_is_refused(home: Home) -> None:
    home.config.mkdir(mode=0o700)
    with pytest.raises(ConfigError, match=r"config\.yaml: error: cannot be read: Is a directory"):
        load(home, {})


@pytest.mark.row("T33")
def test_an_unsafe_file_is_refused(home: Home) -> None:
    home.config.write_text("logs: {level: debug}")
    home.config.chmod(0o666)
    with pytest.raises(ConfigError, match="everybody on this machine can change it"):
        load(home, {})


class TestSecrets:
    """Tokens come from the environment, credentials and .env, and are seen by nobody."""

    def test_tokens_are_found_by_their_usual_names(self, home: Home, tmp_path: Path) -> None:
        (tmp_path / "slack_app_token").write_text("xapp-1\n")
        got = right(
            home,
            env="DISCORD_BOT_TOKEN=discord\n",
            TELEGRAM_BOT_TOKEN="telegram",
            SLACK_BOT_TOKEN="xoxb-1",
            CREDENTIALS_DIRECTORY=str(tmp_path),
        ).settings.platforms
        assert (got.telegram.token, got.discord.token) == (Secret("telegram"), Secret("discord"))
        assert (got.slack.bot_token, got.slack.app_token) == (Secret("xoxb-1"), Secret("xapp-1"))

    @pytest.mark.row("T28")
    def test_a_secret_in_the_file_is_refused_and_not_repeated(self, home: Home) -> None:
        for text in (f"platforms: {{telegram: {{token: '{CANARY}'}}}}", f"models: {{x: {{api_key: '{CANARY}'}}}}"):
            (line,) = said(home, text)
            assert "is a secret, and this file is no place for one; write " in line
            assert "canary" not in line

    def test_another_variable_can_be_named(self, home: Home) -> None:
        got = right(home, "platforms: {telegram: {token: '${MY_BOT}'}}", "MY_BOT=abc").settings
        assert got.platforms.telegram.token == Secret("abc")
        assert "needs the variable MY_BOT, which is not set; write MY_BOT=... into .env" in "".join(
            said(home, "platforms: {telegram: {token: '${MY_BOT}', enabled: false}}")
        )

    def test_the_environment_of_tools_is_filled_in(self, home: Home) -> None:
        text = "mcp_servers: {g: {command: npx, env: {TOKEN: '${GH}', MODE: fast}, args: [x]}}"
        got = right(home, text, "GH=ghost-secret")
        assert got.settings.mcp_servers["g"].env == {"TOKEN": Secret("ghost-secret"), "MODE": Secret("fast")}
        assert "ghost-secret" in got.secrets
        assert "fast" not in got.secrets

    @pytest.mark.row("T28")
    def test_a_secret_is_in_no_text_of_the_configuration(self, home: Home) -> None:
        got = right(home, "model: {provider: openai, name: m}", f"OPENAI_API_KEY={CANARY}\nOTHER_TOKEN={CANARY}x\n")
        assert got.settings.model.api_key.reveal() == CANARY
        assert "canary" not in repr(got) + str(got) + repr(got.settings) + repr(got.origins) + repr(got.warnings)
        assert got.secrets == {CANARY, CANARY + "x"}
        assert got.environ["OTHER_TOKEN"] == CANARY + "x"

    def test_what_only_sounds_like_a_secret_is_none(self, home: Home) -> None:
        got = right(
            home, MAX_TOKENS="100000", KEY_TOKEN="123456", PASSWORD_STORE_DIR="/home/x/.store", EDITOR="vi-editor"
        )
        assert got.secrets == frozenset()

    @pytest.mark.row("T28")
    @pytest.mark.parametrize("variable", [name.variable for name in own_names()])
    def test_a_value_that_is_wrong_is_not_repeated(self, home: Home, variable: str) -> None:
        assert "canary" not in "".join(said(home, **{variable: CANARY}))


class TestModels:
    """Who answers, where nothing, something or everything is said about it."""

    def test_a_named_model_takes_the_provider_whose_key_is_there(self, home: Home) -> None:
        got = right(home, HERMES_MODEL="some/model", OPENROUTER_API_KEY="key-of-openrouter").settings.model
        assert (got.provider, got.name, got.base_url) == ("openrouter", "some/model", "https://openrouter.ai/api/v1")
        assert got.api_key == Secret("key-of-openrouter")

    @pytest.mark.parametrize(
        ("environ", "provider", "base_url"),
        [
            ({"OPENAI_API_KEY": "k"}, "openai", "https://api.openai.com/v1"),
            ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://x/v1"}, "openai", "http://x/v1"),
            ({"OPENAI_BASE_URL": "http://x/v1"}, "openai", "http://x/v1"),
            ({"ANTHROPIC_API_KEY": "k"}, "anthropic", "https://api.anthropic.com"),
            ({"OLLAMA_BASE_URL": "http://o/v1"}, "ollama", "http://o/v1"),
            ({"LM_BASE_URL": "http://l/v1"}, "lmstudio", "http://l/v1"),
        ],
    )
    def test_usual_variables_say_where(self, home: Home, environ: dict[str, str], provider: str, base_url: str) -> None:
        got = right(home, "model: {name: m}", **environ).settings.model
        assert (got.provider, got.base_url) == (provider, base_url)

    def test_a_key_alone_does_not_spend_money(self, home: Home) -> None:
        got = right(home, OPENAI_API_KEY="some-key")
        assert got.settings.model.provider == "demo"
        assert "demo model answers: there is OPENAI_API_KEY, but no model is named" in str(got.warnings[0])

    def test_a_name_alone_is_not_enough(self, home: Home) -> None:
        got = right(home, HERMES_MODEL="m")
        assert got.settings.model.provider == "demo"
        assert "nothing says who offers it" in str(got.warnings[0])

    def test_what_the_file_says_counts_more_than_the_usual_variables(self, home: Home) -> None:
        text = "model: {provider: openai, name: m, base_url: 'http://mine/v1'}"
        got = right(home, text, OPENAI_BASE_URL="http://other/v1").settings.model
        assert got.base_url == "http://mine/v1"

    def test_further_models_get_their_keys_too(self, home: Home) -> None:
        text = "models: {fast: {provider: anthropic, name: m}}\nagents: {main: {model: fast}}"
        got = right(home, text, ANTHROPIC_API_KEY="key-of-anthropic").settings
        assert got.models["fast"].api_key == Secret("key-of-anthropic")
        assert got.main.model == "fast"

    @pytest.mark.parametrize(
        ("text", "finding"),
        [
            ("model: {provider: openai}", "1:8: error: `model` names a provider and no model; add `name: ...`"),
            (
                "model: {fallbacks: [b]}\nmodels: {a: {name: x}}",
                "1:20: error: `model.fallbacks` names what is not there; define it, or use one of those there are: `a`",
            ),
            (
                "agents: {x: {model: y}}",
                "1:21: error: `agents.x.model` names what is not there; define it, or use one of those there are: none",
            ),
            ("agents: {x: {agents: [y]}}", "1:22: error: `agents.x.agents` names what is not there"),
            ("agents: {x: {agents: [x]}}", "1:22: error: the agent `x` lists itself"),
            ("routes: [{agent: x, platform: slack}]", "1:9: error: `routes` names what is not there"),
            ("mcp_servers: {x: {args: [a]}}", "1:18: error: an MCP server has either a `command` or a `url`"),
            (
                "model: {provider: openai, name: x, base_url: 'ftp://x'}",
                "1:46: error: `model.base_url` does not have the form",
            ),
        ],
    )
    def test_what_leads_nowhere_is_found(self, home: Home, text: str, finding: str) -> None:
        assert any(line.startswith(f"config.yaml:{finding}") for line in said(home, text)), said(home, text)


class TestHooks:
    """Settings of hooks stand under the hook's name."""

    def test_a_hook_is_set_by_its_name(self, home: Home) -> None:
        text = "hooks: {eager: 3, long-task: {options: {threshold: 5}, enabled: false}, each: {env: {enabled: true}}}"
        got = right(home, text).settings.hooks
        assert got.eager == 3
        assert got.each["long-task"].options == {"threshold": 5}
        assert got.each["long-task"].enabled is False
        assert got.each["env"].enabled is True

    def test_a_misspelt_setting_is_no_hook(self, home: Home) -> None:
        assert said(home, "hooks: {eagr: 3, x: {option: {}}}") == [
            "config.yaml:1:9: error: `hooks.eagr` is not known; did you mean `eager`?",
            "config.yaml:1:22: error: `hooks.each.x.option` is not known; did you mean `options`?",
        ]


class TestAccess:
    """By default nobody; and only ids count."""

    @pytest.mark.row("T16")
    def test_nobody_may_speak_by_default(self) -> None:
        access = Settings().access
        assert access.everybody == ()
        assert not any(
            getattr(ids, network) for ids in (access.users, access.admins, access.owners) for network in ("all",)
        )

    @pytest.mark.row("T16")
    @pytest.mark.parametrize(
        ("network", "good", "bad"),
        [
            ("telegram", ["12345"], ["@alice", "alice", "-5", "12 34", "*", "٣"]),
            ("discord", ["123456789012345678"], ["alice", "alice#1234", "1234", "<@123456789012345678>"]),
            ("slack", ["U012ABCDEF", "W012ABCDEF"], ["alice", "u012abcdef", "@U012ABCDEF"]),
        ],
    )
    def test_names_are_refused_in_our_file(self, home: Home, network: str, good: list[str], bad: list[str]) -> None:
        right(home, f"access: {{users: {{{network}: {good}}}}}")
        for name in bad:
            (line,) = said(home, f"access: {{users: {{{network}: ['{good[0]}', '{name}']}}}}")
            assert f"error: entry 2 of `access.users.{network}` is no id; write the id that never changes" in line

    @pytest.mark.row("T16")
    def test_names_in_hermess_variables_let_nobody_in(self, home: Home) -> None:
        got = right(home, env="TELEGRAM_ALLOWED_USERS=@alice,77\n")
        assert got.settings.access.users.telegram == ("77",)
        assert [finding.severity for finding in got.warnings] == ["warning"]

    def test_ids_for_all_networks_count_on_each(self, home: Home) -> None:
        got = right(
            home, "access: {users: {telegram: [1]}}", GATEWAY_ALLOWED_USERS="2,U012ABCDEF"
        ).settings.access.users
        assert got.telegram == ("1", "2", "U012ABCDEF")
        assert got.slack == ("2", "U012ABCDEF")

    @pytest.mark.parametrize("variable", ALLOW_ALL)
    def test_opening_a_network_is_done_and_warned_about(self, home: Home, variable: str) -> None:
        got = right(home, **{variable: "true"})
        assert got.settings.access.everybody == tuple(ALLOW_ALL[variable])
        assert "may speak to the gateway" in str(got.warnings[0])
        assert right(home, **{variable: "false"}).settings.access.everybody == ()
        assert right(home, **{variable: "perhaps"}).settings.access.everybody == ()


class TestPlatforms:
    """A network that is switched on must be usable."""

    def test_a_network_without_its_token_is_an_error_where_it_was_switched_on(self, home: Home) -> None:
        (line,) = said(home, "platforms: {telegram: {enabled: true}}")
        assert line.startswith("config.yaml:1:33: error: telegram cannot be used: TELEGRAM_BOT_TOKEN is not set; ")

    def test_half_a_pair_of_tokens_is_a_warning(self, home: Home) -> None:
        got = right(home, SLACK_BOT_TOKEN="xoxb-1")
        assert "slack cannot be used: SLACK_APP_TOKEN is not set" in str(got.warnings[0])
        assert right(home, "platforms: {slack: {enabled: false}}", SLACK_BOT_TOKEN="xoxb-1").warnings == ()

    def test_what_is_not_offered_is_said(self, home: Home) -> None:
        got = right(home, TELEGRAM_WEBHOOK_URL="https://x")
        assert "webhooks are not offered" in str(got.warnings[0])


@pytest.mark.row("T24")
def test_nothing_is_read_from_the_working_directory(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("TELEGRAM_BOT_TOKEN=stranger\n")
    (tmp_path / "config.yaml").write_text("logs: {level: debug}\n")
    monkeypatch.chdir(tmp_path)
    assert right(home).settings == Settings()


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="abhlogsmdel:- \n{}[]'\"#", max_size=60), st.text(alphabet="ABGATEWY_LOGS='\"\n ${}", max_size=40)
)
def test_any_sources_give_a_configuration_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, text: str, env: str
) -> None:
    home = Home(tmp_path_factory.mktemp("home") / "home")
    prepare(home)
    configuration, findings = look(home, text, env)
    assert (configuration is None) == any(finding.severity == "error" for finding in findings)
