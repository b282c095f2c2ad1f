"""Which values are secret: known by value, from wherever they come; what plainly is none stays readable."""

from pathlib import Path

import pytest

from gateway.config.home import Home
from gateway.config.secrets import is_public_value
from tests.config.sources import right

PASSWORD = "hunter2-hunter2"


@pytest.mark.row("T28")
@pytest.mark.parametrize("name", ["HOOK_PW", "THE_WORD", "BLUETOOTH_PIN_OF_BOB"])
def test_what_stands_in_the_env_file_is_secret_under_any_name(home: Home, name: str) -> None:
    assert right(home, "", f"{name}={PASSWORD}\n").secrets == {PASSWORD}


@pytest.mark.parametrize(
    "text",
    [
        "short",
        "123456789012",
        "/home/ann/.store",
        "~/certificates/x.pem",
        "https://api.example.org/v1",
        "en_US.UTF-8",
        "C.UTF-8",
        "Europe/Berlin",
        "America/Argentina/Ushuaia",
        "production",
        "critical",
    ],
)
def test_what_plainly_is_no_secret_stays_readable(home: Home, text: str) -> None:
    assert is_public_value(text)
    assert right(home, "", f"SOMETHING={text}\n").secrets == frozenset()


@pytest.mark.parametrize("text", [PASSWORD, "postgres://ann:pw@db/x", "12345678a", "correct horse battery"])
def test_what_may_be_a_secret_is_one(text: str) -> None:
    assert not is_public_value(text)


def test_a_setting_that_is_no_secret_stays_readable(home: Home) -> None:
    text = "TELEGRAM_ALLOWED_USERS=100200300,100200301\nHERMES_MODEL=some-long-model-name\nGATEWAY_LOGS_LEVEL=warning\n"
    got = right(home, "model: {provider: ollama}", text)
    assert got.settings.model.name == "some-long-model-name"
    assert got.secrets == frozenset()


@pytest.mark.row("T28")
def test_a_credential_is_secret_whatever_it_looks_like(home: Home, tmp_path: Path) -> None:
    (tmp_path / "plain_word").write_text("production\n")
    assert right(home, "", CREDENTIALS_DIRECTORY=str(tmp_path)).secrets == {"production"}


@pytest.mark.row("T28")
def test_the_secret_of_a_webhook_is_one_whatever_it_looks_like(home: Home) -> None:
    got = right(home, "webhooks: {builds: {secret_env: BUILDS, verify: token}}", BUILDS="production")
    assert got.secrets == {"production"}


@pytest.mark.row("T28")
def test_a_secret_setting_is_secret_whatever_it_looks_like(home: Home) -> None:
    got = right(home, "model: {provider: openai, name: m}", OPENAI_API_KEY="123456789")
    assert got.secrets == {"123456789"}


@pytest.mark.row("T28")
def test_what_a_tool_server_is_given_by_name_is_secret(home: Home) -> None:
    text = "mcp_servers: {g: {command: npx, env: {WORD: '${W}', MODE: '${M}'}, args: [x]}}"
    assert right(home, text, W=PASSWORD, M="production").secrets == {PASSWORD}


def test_the_variables_of_this_process_are_secret_by_their_name_alone(home: Home) -> None:
    assert right(home, "", EDITOR="vi-editor-of-mine", SOME_TOKEN=PASSWORD).secrets == {PASSWORD}
