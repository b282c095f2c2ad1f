"""A front end by others, as its registry has it: `llm`, which gets nothing but an address and a key."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.testing import GatewayProcess
from tests.environments import install
from tests.web.test_chat_completions import (
    AGENT,
    SCRIPT,
    SEEING,
    SETTINGS,
    make_key,
    seen,
    state_of,
    told,
    url_of,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(600), pytest.mark.thorough]

Llm = Callable[..., "subprocess.CompletedProcess[str]"]
MODEL = """
- model_id: {agent}
  model_name: {agent}
  api_base: {url}/v1
  api_key_name: gate
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path_factory.mktemp("v1") / "home") as gateway:
        gateway.script(*SCRIPT, settings=SETTINGS)
        gateway.add_hook("sees", SEEING)
        gateway.start()
        gateway.until(lambda: state_of(gateway, "sees") == "loaded")
        yield gateway


@pytest.fixture(scope="module")
def llm(gateway: GatewayProcess, tmp_path_factory: pytest.TempPathFactory) -> Llm:
    place = tmp_path_factory.mktemp("llm")
    program = install("llm", Path(__file__).parent).with_name("llm")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(place), "LLM_USER_PATH": str(place)}
    (place / "extra-openai-models.yaml").write_text(MODEL.format(agent=AGENT, url=url_of(gateway)))

    def run(*args: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
        command = [str(program), *args]
        return subprocess.run(command, input=typed, env=environ, capture_output=True, text=True, check=False)

    assert run("keys", "set", "gate", "--value", make_key(gateway, "llm")).returncode == 0
    return run


def test_it_streams_an_answer_and_goes_on_with_it(gateway: GatewayProcess, llm: Llm) -> None:
    first = llm("-m", AGENT, "-s", "You are brief.", "hello from the front end")
    assert (first.stdout, first.returncode) == ("Good day.\n", 0), first.stderr
    assert llm("-c", "hello again").stdout == "Good day.\n"
    messages = seen(gateway, "llm:before", "hello again")["messages"]
    assert [one["content"] for one in messages][-3:] == ["hello from the front end", "Good day.", "hello again"]
    assert llm("-m", AGENT, "--no-stream", "hello, whole").stdout == "Good day.\n"


def test_it_chats(gateway: GatewayProcess, llm: Llm) -> None:
    chat = llm("chat", "-m", AGENT, typed="hello one\nhello two\nexit\n")
    assert chat.stdout.count("Good day.") == 2, chat.stderr
    assert [one["text"] for one in told(gateway, "message:received")][-2:] == ["hello one", "hello two"]


def test_it_shows_what_is_refused(llm: Llm) -> None:
    wrong = llm("-m", AGENT, "--key", "hgw_wrong", "hello")
    assert (wrong.returncode, "unknown API key" in wrong.stderr) == (1, True)
