"""The answering model, with no, some or all settings; and settings that lead nowhere."""

import pytest

from gateway.config.fields import Secret
from gateway.config.home import Home
from tests.config.sources import right, said


def test_a_named_model_takes_the_provider_whose_key_is_there(home: Home) -> None:
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
def test_usual_variables_say_where(home: Home, environ: dict[str, str], provider: str, base_url: str) -> None:
    got = right(home, "model: {name: m}", **environ).settings.model
    assert (got.provider, got.base_url) == (provider, base_url)


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("model: {provider: openai, name: m}", ["OPENAI_API_KEY"]),
        ("model: {provider: openai, name: m, base_url: 'http://127.0.0.1/v1'}", []),
        ("model: {provider: ollama, name: m}", []),
        ("models: {spare: {provider: anthropic, name: m}}", ["ANTHROPIC_API_KEY"]),
    ],
)
def test_a_model_that_costs_is_not_expected_to_answer_without_a_key(home: Home, text: str, warned: list[str]) -> None:
    warnings = [str(finding) for finding in right(home, text).warnings]
    assert len(warnings) == len(warned)
    assert all(f"write {name}=... into .env" in warning for name, warning in zip(warned, warnings, strict=True))


def test_a_key_alone_does_not_spend_money(home: Home) -> None:
    got = right(home, OPENAI_API_KEY="some-key")
    assert got.settings.model.provider == "demo"
    assert "demo model answers: there is OPENAI_API_KEY, but no model is named" in str(got.warnings[0])


def test_a_name_alone_is_not_enough(home: Home) -> None:
    got = right(home, HERMES_MODEL="m")
    assert got.settings.model.provider == "demo"
    assert "nothing says who offers it" in str(got.warnings[0])


def test_what_the_file_says_counts_more_than_the_usual_variables(home: Home) -> None:
    text = "model: {provider: openai, name: m, base_url: 'http://mine/v1'}"
    got = right(home, text, OPENAI_BASE_URL="http://other/v1").settings.model
    assert got.base_url == "http://mine/v1"


def test_further_models_get_their_keys_too(home: Home) -> None:
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
def test_what_leads_nowhere_is_found(home: Home, text: str, finding: str) -> None:
    assert any(line.startswith(f"config.yaml:{finding}") for line in said(home, text)), said(home, text)


@pytest.mark.parametrize(
    ("written", "right_url"),
    [
        ("127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("localhost:11434/v1", "http://localhost:11434/v1"),
        ("192.168.1.20/v1", "http://192.168.1.20/v1"),
        ("'[::1]:8000'", "http://[::1]:8000"),
        ("box.local:1234/v1", "http://box.local:1234/v1"),
        ("vllm:8000/v1", "http://vllm:8000/v1"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("8.8.8.8:443/v1", "https://8.8.8.8:443/v1"),
    ],
)
def test_an_address_without_scheme_is_told_the_url_that_it_is_meant_to_be(
    home: Home, written: str, right_url: str
) -> None:
    (finding,) = said(home, f"model: {{provider: openai, name: x, base_url: {written}}}")
    assert finding.endswith(f"lacks http:// or https://; write {right_url}")


@pytest.mark.parametrize("written", ["me:word@host/v1", "http:/host", "host/v1?key=secret", "1:2:3"])
def test_what_lacks_more_than_a_scheme_is_not_repeated(home: Home, written: str) -> None:
    (finding,) = said(home, f"model: {{provider: openai, name: x, base_url: '{written}'}}")
    assert written not in finding
    assert "write it from its beginning" in finding
