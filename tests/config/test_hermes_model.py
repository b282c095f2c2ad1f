"""A model that Hermes's configuration names is pointed to, with the very line that uses it here."""

from pathlib import Path

import pytest

from gateway.config.hermes_model import find_hermes_model, point_to_hermes_model
from gateway.yaml_source.parser import read_yaml


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("model: anthropic/claude-opus-4.6\n", "model: {provider: openrouter, name: anthropic/claude-opus-4.6}"),
        (
            "model:\n  default: anthropic/claude-opus-4.6\n  provider: auto\n  base_url: https://openrouter.ai/api/v1\n",
            "model: {provider: openrouter, name: anthropic/claude-opus-4.6}",
        ),
        ("model: {default: gpt-5, provider: openai}\n", "model: {provider: openai, name: gpt-5}"),
        (
            "model: {default: qwen3, provider: custom, base_url: 'http://127.0.0.1:8080/v1'}\n",
            "model: {provider: openai, name: qwen3, base_url: http://127.0.0.1:8080/v1}",
        ),
    ],
)
def test_it_is_pointed_to(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    (finding,) = point_to_hermes_model(path, tmp_path / "ours.yaml")
    assert finding.remedy == f"to use it here, write into {tmp_path}/ours.yaml: {line}"
    assert finding.severity == "warning"
    (tmp_path / "ours.yaml").write_text(line)
    assert not read_yaml(tmp_path / "ours.yaml", 1000).findings
    found = find_hermes_model(path)
    assert found
    assert set(found.variables) <= {"GATEWAY_MODEL_PROVIDER", "GATEWAY_MODEL_NAME", "GATEWAY_MODEL_BASE_URL"}


@pytest.mark.parametrize(
    "text", ["", "model:\n", "model: {provider: nous}\n", "model: qwen3\n", "hooks: {}\n", "- x\n", "]["]
)
def test_where_nothing_can_be_said_nothing_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert point_to_hermes_model(path, tmp_path / "ours.yaml") == []
    assert point_to_hermes_model(tmp_path / "absent.yaml", tmp_path / "ours.yaml") == []
