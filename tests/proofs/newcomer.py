"""A new user: the README alone, then `setup`, to an answer and a hook.

A fresh clone, a fresh home, nothing installed: what README.md shows is done, one command after the other, as it stands
there, and has to say what the page says. Nothing else is known. *seconds*: how long the command took, with all that it
installs at first; *since*: how long after the clone was begun. How long somebody reads and types is not in it. The
short run takes what is to be installed from this machine's caches.

Then the same person types `./x setup`, with the usual mistakes: a wrong key, an address without its end, wrong
names of the model and the network, a wrong token. Model and network are on loopback. They write /start late, break the
first hook, and approve a tool's call by a button in the chat. *before*: what the same took before `setup` did all of
this, as a person measured it, reading and typing included.
"""

import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from anyio.from_thread import BlockingPortal, start_blocking_portal

from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.cli.service.systemd import find_problem
from gateway.config.settings import SandboxSettings
from gateway.testing.networks.wire import ANN, Shown
from gateway.testing.patience import wait_until
from gateway.worker.sandbox import find_support
from tests.adapters.telegram_wire import TOKEN, TelegramWire
from tests.cli.typist import Typist
from tests.daemon.obedient import ObedientModel
from tests.docs_blocks import BIN, Shell, commands, is_like
from tests.http_server import serving
from tests.proof_table import Row, Trial

COLUMNS = ("what", "seconds", "since", "before")
LONGEST = 56
WIDEST = LONGEST
FIVE_MINUTES = 300.0
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What somebody new has to come by on that page, and the word by which its command is known.
LANDMARKS = {
    "a first answer": "chat -m",
    "a hook": "HOOK.yaml",
    "BOOT.md": "BOOT.md",
    "how it is": "status",
    "the end": "stop",
}
BEFORE = {'./x chat -m "what': "24 s", "sleep 1; ./x chat": "43 s"}  # to the first answer, and to the first hook
KEY = "sk-right-key"
WORDS = "Good to be here."
CHECKED = b'{"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}'
SUM = 'DO {"name": "calculate", "args": {"expression": "12 * 3"}}'
HOOK = "intercepts: [tool:before]\nwhen: {tool: calculate}\n"
HANDLER = """from gateway.hooks import Deny, is_yes
def handle(event_type, context):
    if not is_yes(context.ask("May I do this sum?")):
        raise Deny("you said no")
"""
# What a machine says about the way to its registries; nothing else of ours is there.
OF_THE_MACHINE = ("PIP_", "UV_", "SSL_", "REQUESTS_", "CURL_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class Step(NamedTuple):
    """A command of the page, and what it is shown to say."""

    command: str
    shown: str

    @property
    def name(self) -> str:
        name = " ".join(self.command.replace("\\\n", " ").split()).replace("|", "¦")
        return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."


def prove(trial: Trial) -> Iterator[Row]:
    clone, person = trial.folder / "hermes-gateway", trial.folder / "person"
    person.mkdir()
    begun = time.monotonic()
    subprocess.run(["git", "clone", "-q", trial.tree.as_uri(), clone], check=True)
    yield Row(("git clone", *seconds(begun, begun), ""))
    steps = [*read_steps(clone / "README.md")]
    shell = Shell(person, clone, FIVE_MINUTES, NO_COLOR="1", **surroundings(trial.is_short))
    try:
        for step in steps:
            trial.tell(step.name)
            at = time.monotonic()
            said, code = shell.run(step.command, step.shown)
            before = next((took for word, took in BEFORE.items() if step.command.startswith(word)), "")
            yield Row((step.name, *seconds(at, begun), before), tuple(find_faults(step, said, code)))
    finally:
        shell.close()
    yield Row(("all of the README", *seconds(begun, begun), ""), tuple(find_missing(steps, time.monotonic() - begun)))
    yield from set_up(Newcomer(clone, person / "setup", surroundings(trial.is_short)))


def seconds(at: float, begun: float) -> tuple[str, str]:
    now = time.monotonic()
    return f"{now - at:.1f}", f"{now - begun:.1f}"


class Newcomer(NamedTuple):
    """Somebody with a clone, a home, and a terminal."""

    clone: Path
    home: Path
    surroundings: Mapping[str, str]

    @property
    def environ(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "HERMES_HOME": str(self.home), "LANG": "C.UTF-8", "GATEWAY_WEB_ENABLED": "false"}
        return {**self.surroundings, **own}

    def run(self, *words: str) -> str:
        """Return all that `./x` says to these words."""
        done = subprocess.run([self.clone / "x", *words], env=self.environ, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


class StrictModel(ObedientModel):
    """One model, for callers with the key, at one address."""

    words = WORDS

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        if self._is_right("/v1/models"):
            self.answer(b'{"data": [{"id": "small-one"}, {"id": "large-one"}]}')

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
        body = self.rfile.read(int(self.headers["content-length"]))
        if not self._is_right("/v1/chat/completions"):
            return
        if json.loads(body).get("stream"):
            self.rfile = io.BytesIO(body)
            super().do_POST()
        else:
            self.answer(CHECKED)

    def _is_right(self, path: str) -> bool:
        is_known = self.headers.get("Authorization") == f"Bearer {KEY}"
        if not is_known or self.path != path:
            self.send_error(401 if self.path == path else 404)
        return is_known and self.path == path


@dataclass(frozen=True)
class Chat:
    """The newcomer's chat with the bot, on loopback."""

    wire: TelegramWire
    portal: BlockingPortal

    def write(self, text: str) -> None:
        self.portal.call(self.wire.write, text)

    def wait_for(self, text: str) -> Shown:
        """Return the bot's message with this text, when it is there."""
        wait_until(lambda: self._find(text) is not None, FIVE_MINUTES, f"{text!r} in the chat")
        found = self._find(text)
        assert found
        return found

    def _find(self, text: str) -> Shown | None:
        return next((one for one in self.wire.shown if text in one.text and not one.is_draft), None)

    def press(self, message: Shown, label: str) -> None:
        self.portal.call(self.wire.press, message, label)


def set_up(newcomer: Newcomer) -> Iterator[Row]:
    newcomer.home.mkdir()
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        wire = TelegramWire()
        stack.enter_context(portal.wrap_async_context_manager(wire.serving()))
        server = stack.enter_context(serving(StrictModel))
        urls = {name: value for name, value in wire.environ.items() if name.endswith("URL")}
        newcomer = newcomer._replace(surroundings={**newcomer.surroundings, **urls})
        chat, begun = Chat(wire, portal), time.monotonic()
        wire.forbid(ANN)
        with Typist(newcomer, "setup", program=[newcomer.clone / "x"]) as person:
            type_answers(person, f"http://127.0.0.1:{server.server_address[1]}")
            person.answers("Run it now, in this terminal?", "\r")
            person.sees(WORDS)
            yield Row(("./x setup: the model's first words here", *seconds(begun, begun), "5.5 min"))
            person.sees("write /start to @gate_bot")
            at = time.monotonic()
            wire.forbidden.clear()
            chat.write("/start")
            chat.wait_for(WORDS)
            yield Row(("... and on Telegram, after /start", *seconds(at, begun), ""))
            yield from try_hook(newcomer, chat, begun)
            person.sees("The gateway runs in this terminal, until Ctrl-C")
            person.type("\x03")
            code = person.leaves()
            yield Row(("Ctrl-C", *seconds(begun, begun), ""), (f"`./x setup` ended with {code}",) if code else ())


def type_answers(person: Typist, address: str) -> None:
    """Answer the questions of `setup`, each second one wrongly at first."""
    person.answers("which model answers (Enter:", "9\r")
    person.sees("a number from 1 to")
    person.type("\x7f4\r")
    person.answers("its address", f"{address}\r")
    person.answers("the key (OPENAI_API_KEY; Enter: it needs none):", "sk-wrong\r")
    person.sees(f"write base_url: {address}/v1")
    person.answers("its address:", "/v1\r")
    person.answers("the key (OPENAI_API_KEY;", f"{KEY}\r")
    person.answers("the model's name:", "small\r")
    person.answers("unknown model", "-one\r")
    person.sees("ok it answers")
    person.answers("(Enter: no more):", "Telegramm\r")
    person.answers("it is none of these", "\x7f\r")
    person.answers("the bot's token", "hello\r")
    person.sees("a right one: 123456789:AAF")
    person.type("\x7f" * 5 + "999999:" + "x" * 35 + "\r")
    person.sees("Telegram does not know the bot's token")
    person.answers("the bot's token", f"{TOKEN}\r")
    person.answers("the users who may write", f"{ANN}\r")
    person.answers("the chat for reports", "\r")
    person.answers("is this you?", "\r")
    if ShellSandbox(SandboxSettings(), find_support()).is_held:
        person.answers("In the sandbox?", "\r")
    person.answers("(Enter: no more):", "\r")
    if not find_problem():
        person.answers("now and at each boot?", "\r")
    person.answers("Write a hook hello", "\r")


def try_hook(newcomer: Newcomer, chat: Chat, begun: float) -> Iterator[Row]:
    """Write a hook whose event is misspelled, mend it, and approve a call."""
    at, folder = time.monotonic(), newcomer.home / "hooks" / "ask-first"
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text(HANDLER)
    (folder / "HOOK.yaml").write_text(HOOK.replace("tool:before", "tool:befor"))
    said = newcomer.run("hooks", "check", "ask-first")
    is_named = "did you mean `tool:before`?" in said
    faults = () if is_named else (f"a misspelled event is not named: {' '.join(said.split())[:300]}",)
    yield Row(("./x hooks check: a misspelled event", *seconds(at, begun), ""), faults)
    at = time.monotonic()
    (folder / "HOOK.yaml").write_text(HOOK)
    # the misspelled version is loaded, too
    wait_until(lambda: "tool:before\n" in newcomer.run("hooks", "info", "ask-first"), FIVE_MINUTES, "the mended hook")
    yield Row(("a hook, mended and live", *seconds(at, begun), ""))
    at = time.monotonic()
    chat.write(SUM)
    asked = chat.wait_for("May I do this sum?")
    chat.press(asked, "Yes")
    wait_until(lambda: sum(WORDS in one.text for one in chat.wire.shown) > 1, FIVE_MINUTES, "the answer")
    yield Row(("an approval on Telegram, and the answer", *seconds(at, begun), ""))


def read_steps(readme: Path) -> Iterator[Step]:
    for block in BLOCK.findall(readme.read_text("utf-8")):
        yield from (Step(command, shown) for command, shown in commands(block))


def surroundings(is_short: bool) -> dict[str, str]:
    """Python and git are on the PATH, and nothing that this checkout has installed."""
    ours = {str(BIN), str(BIN.resolve())}
    path = [f"{sys.base_prefix}/bin", *(one for one in os.environ["PATH"].split(":") if one not in ours)]
    kept = {name: value for name, value in os.environ.items() if name.upper().startswith(OF_THE_MACHINE)}
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    if is_short:
        kept = {"UV_CACHE_DIR": str(caches / "uv"), "PIP_CACHE_DIR": str(caches / "pip"), **kept}
    else:
        kept = {name: value for name, value in kept.items() if not name.endswith("_CACHE_DIR")}
    return {"PATH": ":".join(path), **kept}


def find_faults(step: Step, said: str, code: int) -> Iterator[str]:
    if step.shown.strip() and not is_like(step.shown, said):
        yield f"`{step.name}` is shown to say other than it says: {' '.join(said.split())[:300]}"
    elif not step.shown.strip() and code:
        yield f"`{step.name}` ends with {code}: {' '.join(said.split())[:300]}"


def find_missing(steps: list[Step], took: float) -> Iterator[str]:
    for what, word in LANDMARKS.items():
        if not any(word in step.command for step in steps):
            yield f"README.md does not lead to {what}"
    if took > FIVE_MINUTES:
        yield f"it took {took:.0f} s, and five minutes were promised"
