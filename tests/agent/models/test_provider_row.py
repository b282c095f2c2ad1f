"""A model provider is one row and, with a language of its own, one module: nothing else has to know its name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import gateway
from gateway.config.providers import ENDPOINTS

PACKAGE = Path(gateway.__file__).parent

ACME = """
from gateway.agent.models.script import script
class AcmeModel:
    def __init__(self, **kwargs):
        self.name = "acme-1"
    def stream(self, request):
        return script("acme answers").stream(request)
MODEL = AcmeModel
"""

MAIN = """
import sys
import anyio
from gateway.config import providers
providers.PROVIDERS["acme"] = providers.ProviderInfo(
    language="acme", base_url="https://acme.example", key_variable="ACME_KEY", prices={"acme-1": (2.0, 3.0)}
)
import gateway.agent.models
gateway.agent.models.__path__.append(sys.argv[1])

from gateway.adapters.shared.folder import load_settings_schema
from gateway.agent.model import ModelRequest
from gateway.agent.models.factory import make_model
from gateway.config.home import find_home
from gateway.config.loading import load_configuration
from gateway.daemon.agents import model_spec_of
from gateway.messages.transcript import Entry

environ = {"HERMES_HOME": sys.argv[1], "GATEWAY_MODEL_NAME": "acme-1", "ACME_KEY": "secret"}
found = load_configuration(load_settings_schema(), find_home(environ), environ).settings.model
spec = model_spec_of("main", found, environ)
print(found.provider, found.base_url, spec.api_key, spec.price.input, spec.price.output)

async def main():
    model = make_model(spec, spec.model, {})
    print("".join([chunk.text async for chunk in model.stream(ModelRequest((Entry("user", "hi"),)))]))

anyio.run(main)
"""


@pytest.mark.process
def test_a_made_up_provider_is_found_by_its_key_priced_and_answers(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(ACME)
    done = subprocess.run([sys.executable, "-c", MAIN, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["acme https://acme.example secret 2.0 3.0", "acme answers"]


# What is not a provider: a package of Python's, and the one that Hermes means where it names none.
OTHERS = {("anthropic", "hooks/manifests/manifest.py"), ("openrouter", "config/hermes_model.py")}


def test_a_providers_name_stands_in_its_row_and_in_its_module() -> None:
    """`openai` is the name of a form, too, which setup and Hermes's models fall back to."""
    named = re.compile(rf"""["']({"|".join(set(ENDPOINTS) - {"openai"})})["']""")
    texts = {str(file.relative_to(PACKAGE)): file.read_text() for file in PACKAGE.rglob("*.py")}
    found = {(name, path) for path, text in texts.items() for name in named.findall(text)}
    rows = {(name, "config/providers.py") for name in ENDPOINTS}
    modules = {(offer.language, f"agent/models/{offer.language}.py") for offer in ENDPOINTS.values()}
    assert found - rows - modules == OTHERS
