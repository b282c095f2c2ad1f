"""Settings of hooks are under the hook's name; a network that is switched on must be usable."""

from gateway.config.home import Home
from tests.config.sources import right, said


def test_a_hook_is_set_by_its_name(home: Home) -> None:
    text = "hooks: {eager: 3, long-task: {options: {threshold: 5}, enabled: false}, each: {env: {enabled: true}}}"
    got = right(home, text).settings.hooks
    assert got.eager == 3
    assert got.each["long-task"].options == {"threshold": 5}
    assert got.each["long-task"].enabled is False
    assert got.each["env"].enabled is True


def test_a_misspelt_setting_is_no_hook(home: Home) -> None:
    assert said(home, "hooks: {eagr: 3, x: {option: {}}}") == [
        "config.yaml:1:9: error: `hooks.eagr` is not known; did you mean `eager`?",
        "config.yaml:1:22: error: `hooks.each.x.option` is not known; did you mean `options`?",
    ]


def test_a_network_without_its_token_is_an_error_where_it_was_switched_on(home: Home) -> None:
    (line,) = said(home, "platforms: {telegram: {enabled: true}}")
    assert line.startswith("config.yaml:1:33: error: telegram cannot be used: TELEGRAM_BOT_TOKEN is not set; ")


def test_half_a_pair_of_tokens_is_a_warning(home: Home) -> None:
    got = right(home, SLACK_BOT_TOKEN="xoxb-1")
    assert "slack cannot be used: SLACK_APP_TOKEN is not set" in str(got.warnings[0])
    assert right(home, "platforms: {slack: {enabled: false}}", SLACK_BOT_TOKEN="xoxb-1").warnings == ()


def test_what_is_not_offered_is_said(home: Home) -> None:
    got = right(home, TELEGRAM_WEBHOOK_URL="https://x")
    assert "webhooks are not offered" in str(got.warnings[0])
