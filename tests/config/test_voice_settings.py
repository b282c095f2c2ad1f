"""The settings of transcription and speech, and their faults."""

import pytest

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.loading import load_configuration
from gateway.daemon.notices import has_voice_network, needs_word_of_voice
from gateway.errors import ConfigError
from gateway.testing import GatewayProcess
from tests.engine.memory_engine import MemoryEngine

MODELS = "models: {ear: {provider: openai, name: x, base_url: 'http://127.0.0.1:1/v1'}, deaf: {provider: demo}}\n"


def load(tmp_path, text):
    files = GatewayProcess(tmp_path)
    files.home.config.parent.mkdir(parents=True, exist_ok=True)
    files.home.config.write_text(MODELS + text)
    return load_configuration(load_settings_schema(), files.home, files.environ)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("voice: {transcribe: {model: eye}}\n", r":2:\d+: .*`voice.transcribe.model` names what is not there"),
        ("voice: {transcribe: {model: deaf}}\n", r":2:\d+: .*`models.deaf` cannot transcribe"),
        ("voice: {transcribe: {model: ear, command: [cat]}}\n", r":2:\d+: .*either a `model` or a `command`"),
        ("voice: {language: in English}\n", r":2:\d+: .*`voice.language`"),
    ],
)
def test_what_is_wrong_is_named_where_it_stands(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        load(tmp_path, text)


@pytest.mark.parametrize("is_empty", [True, False])
async def test_a_home_from_before_keeps_the_network_for_its_programs_and_is_told(tmp_path, is_empty):
    engine = MemoryEngine()
    for now_empty in (is_empty, False):  # what the first start has found lasts
        assert await has_voice_network(engine, now_empty) is not is_empty
    silent = load(tmp_path, "voice: {transcribe: {command: [cat]}}\n")
    assert needs_word_of_voice(silent, has_network=True)
    assert not needs_word_of_voice(silent, has_network=False)
    said = load(tmp_path, "voice: {transcribe: {command: [cat], network: false}}\n")
    assert not needs_word_of_voice(said, has_network=True)


@pytest.mark.parametrize("how", ["model: ear", "command: [cat]"])
def test_one_of_both_is_enough(tmp_path, how):
    settings = load(tmp_path, f"voice: {{transcribe: {{{how}}}, language: de-AT}}\n").settings
    assert settings.voice.language == "de-AT"
