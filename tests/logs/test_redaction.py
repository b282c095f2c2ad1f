"""Secrets leave every text: known ones in every spelling, unknown ones by their shape; words stay."""

import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapters.shared.folder import load_settings_schema
from gateway.logs.redaction import REPLACEMENT, Redactor


def make_redactor() -> Redactor:
    return Redactor(shapes=load_settings_schema().token_shapes)


BOT = "123456789:AAE-canary-canary-canary-canary-can"


@pytest.mark.row("T28")
@pytest.mark.parametrize(
    "text",
    [
        f"GET https://api.telegram.org/bot{BOT}/getMe",
        f"https://x/?q={BOT.replace(':', '%3A')}",
        "Authorization: Bearer abc123def456",
        "xoxb-12345678-canary",
        "xapp-1-A012-canary",
        "https://hooks.slack.com/services/T0/B0/canarycanary",
        "https://discord.com/api/webhooks/123/canary-canary",
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.GabcdE.canary-canary-canary-canary-1",
        "sk-ant-api03-canary-canary-canary",
        "ghp_canarycanarycanarycanary",
        "https://user:canary@host/path",
        "https://host/?access_token=canarycanary&x=1",
        '{"api_key": "canarycanary"}',
        "{'token': 'canarycanary'}",
        "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_token_is_taken_out(text: str) -> None:
    clean = make_redactor().clean(text)
    assert REPLACEMENT in clean
    assert "canary" not in clean


@pytest.mark.parametrize(
    "text",
    [
        "turn 01HX of agent:main:telegram:dm:123456789 took 350 tokens: 123456",
        "TELEGRAM_BOT_TOKEN is missing; password: required",
        "Bearer authentication is wanted",
        "a risk-assessment-for-everybody at 12:30:45.123456",
        "https://host:8080/path@2",
        "sha256 0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert make_redactor().clean(text) == text


@settings(deadline=None)
@given(st.text(min_size=6, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_a_known_secret_is_found_in_every_spelling(secret: str, before: str, after: str) -> None:
    redactor = Redactor([secret])
    spellings = [secret, quote(secret, safe="", errors="replace"), json.dumps(secret)[1:-1]]
    for spelling in spellings:
        assert spelling not in redactor.clean(f"{before}{spelling}{after}").replace(REPLACEMENT, "\0")


def test_secrets_can_be_learned_and_are_never_forgotten() -> None:
    redactor = Redactor(["old-secret"])
    redactor.learn(["new-secret"])
    assert redactor.clean("old-secret new-secret") == f"{REPLACEMENT} {REPLACEMENT}"


def test_the_longer_of_two_secrets_is_taken_whole() -> None:
    assert Redactor(["secret", "secret-and-more"]).clean("secret-and-more") == REPLACEMENT


def test_a_short_value_would_tear_words_apart_and_is_left() -> None:
    assert Redactor(["a", ""]).clean("a banana") == "a banana"


@pytest.mark.row("T32")
@pytest.mark.parametrize(
    "piece", ["a", "1", "Bearer ", "://", "://a:", "eyJ", "-----BEGIN PRIVATE KEY-----", "token=", "a.", "sk-", "' : '"]
)
def test_no_text_makes_it_slow(piece: str) -> None:
    text = piece * (80_000 // len(piece))
    began = time.thread_time()
    Redactor([BOT]).clean(text)
    assert time.thread_time() - began < 3


@given(st.lists(st.sampled_from(["a word", f"see {BOT}", "s1cret-value", "token=", "token=[secret]", "abcdefgh"])))
def test_data_is_cleaned_text_by_text(texts: list[str]) -> None:
    redactor = Redactor(["s1cret-value"], load_settings_schema().token_shapes)
    cleaned = [redactor.clean(text) for text in texts]
    assert redactor.clean_all({"some": texts, "more": {BOT: [*texts]}, "count": 3}) == {
        "some": cleaned,
        "more": {BOT: cleaned},
        "count": 3,
    }
