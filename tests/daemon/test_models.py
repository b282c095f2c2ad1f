"""Models as the configuration names them: what of the environment they get, and how they wait for the first message."""

import socket
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from gateway.config.settings import ModelSettings, Provider
from gateway.daemon.agents import model_spec_of
from gateway.testing import GatewayProcess

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


def has_logged(gateway: GatewayProcess, words: str) -> bool:
    return words in gateway.cli("logs").stdout


@pytest.mark.process
def test_a_model_is_warm_after_the_start_and_after_a_reload_and_its_endpoint_hears_of_neither(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as endpoint, GatewayProcess(tmp_path / "home") as gateway:
        endpoint.setblocking(False)
        settings = "logs: {{level: debug}}\nmodel: {{provider: openai, name: {}, base_url: 'http://127.0.0.1:{}/v1'}}\n"
        for name in ("first", "second"):
            gateway.configure(settings.format(name, endpoint.getsockname()[1]))
            if gateway.process:
                gateway.call("reload")
            else:
                gateway.start()
            gateway.until(partial(has_logged, gateway, f"{name} is warm"))
        with pytest.raises(BlockingIOError):
            endpoint.accept()
