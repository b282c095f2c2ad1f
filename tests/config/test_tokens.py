"""Tokens come from the environment, credentials and .env, and stay invisible."""

from pathlib import Path
from typing import Any

import pytest

from gateway.config.fields import Secret
from gateway.config.home import Home
from tests.config.sources import SCHEMA, right, said

CANARY = "123456789:AAE-canary-canary-canary-canary-can"


def test_tokens_are_found_by_their_usual_names(home: Home, tmp_path: Path) -> None:
    (tmp_path / "slack_app_token").write_text("xapp-1\n")
    got: Any = right(
        home,
        "",
        "DISCORD_BOT_TOKEN=discord\n",
        TELEGRAM_BOT_TOKEN="telegram",
        SLACK_BOT_TOKEN="xoxb-1",
        CREDENTIALS_DIRECTORY=str(tmp_path),
    ).settings.platforms
    assert (got.telegram.token, got.discord.token) == (Secret("telegram"), Secret("discord"))
    assert (got.slack.bot_token, got.slack.app_token) == (Secret("xoxb-1"), Secret("xapp-1"))


@pytest.mark.row("T28")
def test_a_secret_in_the_file_is_refused_and_not_repeated(home: Home) -> None:
    for text in (f"platforms: {{telegram: {{token: '{CANARY}'}}}}", f"models: {{x: {{api_key: '{CANARY}'}}}}"):
        (line,) = said(home, text)
        assert "is a secret, and does not belong into this file; write " in line
        assert "canary" not in line


def test_another_variable_can_be_named(home: Home) -> None:
    got: Any = right(home, "platforms: {telegram: {token: '${MY_BOT}'}}", "MY_BOT=abc").settings.platforms
    assert got.telegram.token == Secret("abc")
    assert "needs the variable MY_BOT, which is not set; write MY_BOT=... into .env" in "".join(
        said(home, "platforms: {telegram: {token: '${MY_BOT}', enabled: false}}")
    )


def test_the_environment_of_tools_is_filled_in(home: Home) -> None:
    text = "mcp_servers: {g: {command: npx, env: {TOKEN: '${GH}', MODE: fast}, args: [x]}}"
    got = right(home, text, "GH=ghost-secret")
    assert got.settings.mcp_servers["g"].env == {"TOKEN": Secret("ghost-secret"), "MODE": Secret("fast")}
    assert "ghost-secret" in got.secrets
    assert "fast" not in got.secrets


@pytest.mark.row("T28")
def test_a_secret_is_in_no_text_of_the_configuration(home: Home) -> None:
    got = right(home, "model: {provider: openai, name: m}", f"OPENAI_API_KEY={CANARY}\nOTHER_TOKEN={CANARY}x\n")
    assert got.settings.model.api_key.reveal() == CANARY
    assert "canary" not in repr(got) + str(got) + repr(got.settings) + repr(got.origins) + repr(got.warnings)
    assert got.secrets == {CANARY, CANARY + "x"}
    assert got.environ["OTHER_TOKEN"] == CANARY + "x"


def test_what_only_sounds_like_a_secret_is_none(home: Home) -> None:
    got = right(home, MAX_TOKENS="100000", KEY_TOKEN="123456", PASSWORD_STORE_DIR="/home/x/.store", EDITOR="vi-editor")
    assert got.secrets == frozenset()


@pytest.mark.row("T28")
@pytest.mark.parametrize("variable", [name.variable for name in SCHEMA.own_variables])
def test_a_value_that_is_wrong_is_not_repeated(home: Home, variable: str) -> None:
    assert "canary" not in "".join(said(home, **{variable: CANARY}))
