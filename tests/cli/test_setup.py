"""`setup` at a terminal: its findings, and the errors while a person types."""

import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.cli.model_probe import fetch_model_names, probe_models
from gateway.cli.service.systemd import find_problem
from gateway.cli.setup.model import ModelChoice, list_missing_keys
from gateway.config.fields import Secret
from gateway.config.settings import ModelSettings, SandboxSettings
from gateway.testing import GatewayProcess
from gateway.testing.networks.wire import ANN, BEN, STRANGER
from gateway.testing.patience import wait_until
from gateway.worker.sandbox import find_support
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.cli.typist import Typist
from tests.http_server import QuietHandler, serving

pytestmark = pytest.mark.process
KEY = "sk-right-key"
CODE = re.compile(r"pairing code is (\w+)")
WRONG = "999999:" + "x" * 35


ANSWER = b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}'


class Offerer(QuietHandler):
    """An endpoint with two models, for callers with the key; the large one has to be loaded first."""

    is_loaded = threading.Event()

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        if self._is_right("/v1/models"):
            self.answer(b'{"data": [{"id": "small-one"}, {"id": "large-one"}]}')

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self._is_right("/v1/chat/completions"):
            return
        if asked["model"] == "large-one":
            self.is_loaded.wait()
        if asked["model"] not in ("small-one", "large-one"):
            self.send_error(404)
        elif asked["model"] == "small-one" and "max_tokens" in asked:
            self.send_response(400)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "use max_completion_tokens"}}')
        else:
            assert max(asked.get("max_tokens", 0), asked.get("max_completion_tokens", 0)) == 16
            self.answer(ANSWER)

    def _is_right(self, path: str) -> bool:
        is_known = self.headers.get("Authorization") == f"Bearer {KEY}"
        if not is_known or self.path != path:
            self.send_error(401 if self.path == path else 404)
        return is_known and self.path == path


@pytest.fixture
def url() -> Iterator[str]:
    Offerer.is_loaded.clear()
    with serving(Offerer) as server:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        Offerer.is_loaded.set()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("")
        yield gateway


def kept(gateway: GatewayProcess) -> list[str]:
    return gateway.home.env.read_text().splitlines() if gateway.home.env.exists() else []


def test_a_key_that_is_there_is_found_tried_and_kept_with_a_model_that_is_there(
    gateway: GatewayProcess, url: str
) -> None:
    gateway.environ |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url}
    with Typist(gateway, "setup", "model") as person:
        person.sees("1  openai: OPENAI_API_KEY is set")
        person.answers("which model answers (Enter:", "\r")
        person.sees("it has 2 models: large-one, small-one")
        person.answers("the model's name:", "small\r")
        person.answers("unknown model", "-one\r")  # what was typed stays
        person.sees("ok it answers")
        person.sees("it is used from the next start on")
        assert person.leaves() == 0
    made = {f"GATEWAY_MODEL_BASE_URL={url}", "GATEWAY_MODEL_PROVIDER=openai", "GATEWAY_MODEL_NAME=small-one"}
    assert {*kept(gateway)} == {*made, f"OPENAI_API_KEY={KEY}"}
    shown = gateway.cli("config", "show", "model.name")
    assert shown.stdout.strip() == "small-one"


def test_a_wrong_key_and_a_wrong_address_are_asked_for_again_and_nothing_is_shown(
    gateway: GatewayProcess, url: str
) -> None:
    with Typist(gateway, "setup", "model") as person:
        person.sees("openrouter, with a key of yours")
        person.answers("which model answers (Enter:", "4\r")
        person.answers("its address", f"{url}\r")
        person.answers("the key (OPENAI_API_KEY; Enter: it needs none):", "sk-wrong\r")
        person.sees("refuses the key (HTTP 401")
        person.answers("its address:", "\x7f" * len("/v1") + "\r")
        person.answers("the key (OPENAI_API_KEY; Enter: it needs none):", f"{KEY}\r")
        person.sees(f"is not where a model answers (HTTP 404: a web page); write base_url: {url}")
        person.answers("its address:", "/v1\r")
        person.answers("the key (OPENAI_API_KEY; Enter: the one of before):", "\r")
        person.answers("the model's name:", "large-one\r")
        person.sees("the model is being loaded")
        Offerer.is_loaded.set()
        person.sees("written to")
        assert person.leaves() == 0
        assert KEY not in person.seen
    assert f"OPENAI_API_KEY={KEY}" in kept(gateway)


@pytest.mark.parametrize(
    ("path", "key", "remedy"),
    [
        ("", "", "write base_url: {}, and a key"),
        ("", "sk-wrong", "write base_url: {}, and a key that is right"),
        ("/v1sk-bad", KEY, "write base_url: {}"),
        ("/else/where", "", "write base_url: {}, and a key"),
    ],
)
def test_no_404_is_an_answer(url: str, path: str, key: str, remedy: str) -> None:
    asked = ModelSettings(
        provider="openai", name="small-one", base_url=url.removesuffix("/v1") + path, api_key=Secret(key)
    )
    names, listed = fetch_model_names(asked)
    assert names == []
    (called,) = probe_models([asked], {})
    assert [fault and fault.remedy for fault in (listed, called)] == [remedy.format(url)] * 2


@pytest.mark.parametrize(
    ("answer", "is_fault"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", True),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", True),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 100_000, True),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"data": ', True),
        (b'HTTP/1.0 200 OK\r\n\r\n{"data": null}', False),  # it answers, and has no list
    ],
)
def test_whatever_else_listens_where_models_are_looked_for_is_no_model(answer: bytes, is_fault: bool) -> None:
    class Other(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
            self.wfile.write(answer)

    with serving(Other) as server:
        asked = ModelSettings(provider="openai", base_url=f"http://127.0.0.1:{server.server_address[1]}/v1")
        names, fault = fetch_model_names(asked)
    assert (names, fault is not None) == ([], is_fault)


def test_a_server_on_this_machine_hides_no_provider() -> None:
    found = [
        ModelChoice("openai", "llama.cpp", base_url="http://127.0.0.1:8080/v1"),
        ModelChoice("anthropic", "", key="k"),
    ]
    assert [choice.provider for choice in list_missing_keys(found)] == ["openrouter", "openai"]


@pytest.mark.parametrize(
    ("flags", "said", "code"),
    [
        (("--provider", "openai", "--name", "small-one", "--key", KEY), "written to", 0),
        (("--provider", "openai", "--name", "other", "--key", KEY), "there is: large-one, small-one", 78),
        (("--provider", "openai", "--key", KEY), "there is: large-one, small-one", 78),
        (("--provider", "openai", "--name", "small-one", "--key", "sk-wrong"), "refuses the key", 78),
        (("--provider", "openai", "--name", "small-one", "--key", "two words"), "what was given", 78),
        (("--provider", "openai", "--name", "other", "--key", KEY, "--no-check"), "written to", 0),
        ((), "no terminal can ask you", 78),
    ],
)
def test_by_flags_it_does_the_same_and_writes_nothing_that_is_not_good(
    gateway: GatewayProcess, url: str, flags: tuple[str, ...], said: str, code: int
) -> None:
    given = ("--base-url", url) if flags else ()
    done = gateway.cli("setup", "model", *flags, *given)
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr
    assert bool(kept(gateway)) is (code == 0)


def test_the_usual_address_comes_back_when_another_was_set_before(gateway: GatewayProcess, url: str) -> None:
    gateway.cli("setup", "model", "--provider", "openai", "--name", "small-one", "--key", KEY, "--base-url", url)
    gateway.cli("setup", "model", "--provider", "openrouter", "--name", "a/b", "--key", "sk-or", "--no-check")
    assert gateway.cli("config", "show", "model.base_url").stdout.strip() == "https://openrouter.ai/api/v1"


def test_each_step_can_be_left_and_the_next_one_goes_on(gateway: GatewayProcess, url: str) -> None:
    gateway.environ |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": url}
    with Typist(gateway, "setup") as person:
        person.sees("1 of 5  The model: demo answers now")
        person.answers("which model answers (Enter:", "\x03")
        person.sees("left as it was; to continue later: hermes-gateway setup model")
        person.sees("2 of 5  Chat networks: none yet")
        person.answers("(Enter: no more):", "telegramm")
        person.answers("it is none of these", "\x7f\r")
        person.answers("the bot's token", "hello")
        person.finds("a right one: 123456789:AAF")
        shown = person.screen.text
        assert shown.rindex("the bot's token") < shown.rindex("does not look like one"), shown
        person.type("\x03")
        person.sees("left as it was; to continue later: hermes-gateway setup telegram")
        person.sees("3 of 5  A service")
        if not find_problem():
            person.answers("[y/N]:", "\r")
        person.sees("hermes-gateway run")
        person.answers("Write a hook hello", "y\r")
        person.answers("Run it now, in this terminal?", "n\r")
        person.sees("start it with: hermes-gateway run")
        person.sees("that is all")
        assert person.leaves() == 0
    assert kept(gateway) == []
    assert (gateway.home.hooks / "hello" / "HOOK.yaml").exists()
    with Typist(gateway, "setup") as person:
        person.answers("which model answers (Enter:", "\r")
        person.answers("the model's name:", "small-one\r")
        person.sees("2 of 5")  # what was done stays, whatever becomes of the rest
    with Typist(gateway, "setup") as person:
        person.sees("1 of 5  The model: small-one answers now")
        person.sees("small-one, as it is now")
        person.answers("which model answers (Enter:", "\r")
        person.sees("small-one answers; to change that: hermes-gateway setup model")


def test_without_a_word_and_without_anybody_it_says_which_there_are(gateway: GatewayProcess) -> None:
    done = gateway.cli("setup")
    assert done.returncode == 2
    assert re.findall(r"^    (model|service|message|telegram) ", done.stderr, re.MULTILINE) == [
        *["model", "service", "message", "telegram"]
    ], done.stderr


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


async def test_a_network_is_asked_about_its_token_at_once_and_says_hello(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    gateway.environ |= {name: value for name, value in wire.environ.items() if name.endswith("URL")}

    def talk() -> int:
        with Typist(gateway, "setup", "telegram", "--shell", "ask") as person:
            person.answers("the bot's token", f"{WRONG}\r")
            person.sees("Telegram does not know the bot's token")
            person.answers("the bot's token", f"{TOKEN}\r")
            person.sees("@gate_bot")
            person.answers("the users who may write", f"{ANN}\r")
            person.answers("the chat for reports", "maybe\r")
            person.answers("it does not look like one", "\x7f" * 5 + f"{ANN}\r")
            person.answers("is this you?", "\r")
            person.sees("said hello in the home channel")
            return person.leaves()

    assert await to_thread.run_sync(talk) == 0
    assert [one.chat for one in wire.shown] == [ANN]
    assert {f"TELEGRAM_BOT_TOKEN={TOKEN}", f"GATEWAY_ACCESS_OWNERS_TELEGRAM={ANN}"} <= {*kept(gateway)}


@pytest.mark.parametrize("is_running", [False, True])  # somebody has tried it before they set it up, or not
async def test_the_conversation_ends_with_a_message_in_the_chat_network(
    wire: TelegramWire, gateway: GatewayProcess, is_running: bool
) -> None:
    gateway.environ |= {name: value for name, value in wire.environ.items() if name.endswith("URL")}

    def talk() -> int:
        with Typist(gateway, "setup") as person:
            person.answers("which model answers (Enter:", "\r")
            person.sees("the demo model answers")  # nothing was found that needs no key
            person.answers("(Enter: no more):", "telegram\r")
            person.answers("the bot's token", f"{TOKEN}\r")
            person.answers("the users who may write", f"{ANN},{BEN},{STRANGER}\r")
            person.answers("the chat for reports", "\r")
            person.answers("is you?", f"{ANN}\r")
            person.answers("approves too", "1,77")
            person.answers("1, 77 may not speak", "\x7f" * 4 + f"{BEN}\r")
            if ShellSandbox(SandboxSettings(), find_support()).is_held:
                person.answers("In the sandbox?", "\r")
            person.answers("(Enter: no more):", "\r")
            if not find_problem():
                person.answers("[y/N]:", "\r")
            person.answers("Write a hook hello", "\r")
            person.sees("5 of 5  First words: the model says hello here, by telegram")
            person.answers("Restart it now?" if is_running else "Run it now, in this terminal?", "\r")
            person.sees("I am the demo model")
            person.sees(f"telegram: the bot has written to {ANN}")
            if not is_running:
                person.answers("The gateway runs in this terminal, until Ctrl-C", "\x03")
            person.sees("that is all")
            return person.leaves()

    if is_running:
        await to_thread.run_sync(gateway.start)
    assert await to_thread.run_sync(talk) == 0
    assert [(one.chat, "You own me" in one.text, "demo model" in one.text) for one in wire.shown] == [(ANN, True, True)]
    assert {f"GATEWAY_ACCESS_OWNERS_TELEGRAM={ANN}", f"GATEWAY_ACCESS_ADMINS_TELEGRAM={BEN}"} <= {*kept(gateway)}


async def test_where_no_bot_may_begin_its_link_is_given_and_the_message_comes_later(
    wire: TelegramWire, gateway: GatewayProcess
) -> None:
    gateway.environ |= {name: value for name, value in wire.environ.items() if name.endswith("URL")}
    flags = ("--token", TOKEN, "--allow", f"{ANN},{BEN}", "--owner", ANN, "--admins", BEN)

    def run(*words: str) -> tuple[int, str]:
        done = gateway.cli("setup", *words)
        return done.returncode, done.stdout + done.stderr

    assert (await to_thread.run_sync(run, "message"))[0] == 78  # there is no bot yet
    assert (await to_thread.run_sync(run, "telegram", *flags))[0] == 0
    assert f"GATEWAY_ACCESS_ADMINS_TELEGRAM={BEN}" in kept(gateway)
    assert (await to_thread.run_sync(run, "message"))[0] == 3  # nobody is there to have it started
    wire.forbid(ANN)
    await to_thread.run_sync(gateway.start)
    code, said = await to_thread.run_sync(run, "message", "--to", "telegram")
    assert (code, "write /start to @gate_bot at https://t.me/gate_bot" in said) == (1, True), said
    wire.forbidden.clear()
    code, said = await to_thread.run_sync(run, "message")
    assert (code, f"ok  telegram: the bot has written to {ANN}\n" in said) == (0, True), said
    assert [one.chat for one in wire.shown] == [ANN]


async def test_the_first_words_wait_until_their_owner_has_written(wire: TelegramWire, gateway: GatewayProcess) -> None:
    """A bot may not begin on Telegram; and one that knows no owner pairs the person at the terminal."""
    gateway.environ |= wire.environ
    gateway.configure(wire.own(ANN))
    wire.forbid(ANN)
    await to_thread.run_sync(gateway.start)
    with Typist(gateway, "setup", "message") as person:
        await to_thread.run_sync(person.sees, "telegram: write /start to @gate_bot at https://t.me/gate_bot")
        wire.forbidden.clear()
        await wire.write("/start")
        await to_thread.run_sync(person.sees, f"telegram: the bot has written to {ANN}")
        assert await to_thread.run_sync(person.leaves) == 0
    assert [one.text for one in wire.shown if "You own me" in one.text] != []
    gateway.configure("")
    with Typist(gateway, "setup", "message") as person:
        await to_thread.run_sync(
            person.sees, "write /start to @gate_bot at https://t.me/gate_bot; it answers with a code"
        )
        await wire.write("/start", by=STRANGER)
        await to_thread.run_sync(person.answers, "the code (Enter: later):", "ABCDEF\r")
        codes = await to_thread.run_sync(wait_until, lambda: CODE.findall("".join(one.text for one in wire.shown)))
        await to_thread.run_sync(person.answers, "the code (Enter: later):", f"{codes[0]}\r")
        await to_thread.run_sync(person.sees, f"telegram: the bot has written to {STRANGER}")


def test_ids_of_approvers_are_ids(gateway: GatewayProcess) -> None:
    done = gateway.cli("setup", "Telegram", "--token", TOKEN, "--admins", "ben", "--no-check")
    assert (done.returncode, "who approves on telegram" in done.stderr) == (78, True), done.stderr
    assert kept(gateway) == []


@pytest.mark.parametrize("kind", [DiscordWire, SlackWire])
async def test_a_bot_writes_to_its_owner_on_the_other_networks_too(
    gateway: GatewayProcess, kind: type[DiscordWire] | type[SlackWire]
) -> None:
    wire = kind()
    async with wire.serving():
        gateway.environ |= {**wire.environ, f"GATEWAY_ACCESS_OWNERS_{wire.network.upper()}": wire.known_as(ANN)}
        await to_thread.run_sync(gateway.start)
        done = await to_thread.run_sync(gateway.cli, "setup", "message")
        assert done.returncode == 0, done.stderr
        assert ["You own me" in one.text for one in wire.shown] == [True]
