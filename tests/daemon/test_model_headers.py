"""What of the environment goes to the endpoint of a model."""

from collections.abc import Mapping

import pytest

from gateway.config.settings import ModelSettings, Provider
from gateway.daemon.agents import model_spec_of

SET = {"OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}


@pytest.mark.parametrize(
    ("provider", "environ", "headers"),
    [
        ("openai", SET, {"OpenAI-Organization": "org-1", "OpenAI-Project": "proj-1"}),
        ("openai", {"OPENAI_ORG_ID": "org-1"}, {"OpenAI-Organization": "org-1"}),
        ("openai", {}, None),
        ("openrouter", SET, None),
        ("ollama", SET, None),
        ("anthropic", SET, None),
    ],
)
def test_organisation_and_project_are_told_to_openai_alone(
    provider: Provider, environ: Mapping[str, str], headers: Mapping[str, str] | None
) -> None:
    assert model_spec_of("m", ModelSettings(provider=provider, name="m"), environ).kwargs.get("headers") == headers
