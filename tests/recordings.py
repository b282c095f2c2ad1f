"""The recordings of terminals: a person types each `docs/pictures/NAME.session`, and `NAME.svg` beside it shows it.

A session reads as its terminal does: a line with `$ ` is a command, one with `> ` is typed, `^D` is that key, and any
other line is waited for. The program and the gateway are real; the gateway has the hook of README.md, and a stand-in
answers in the place of Ollama. Each picture names the digest of its session, as a diagram does that of its text.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from gateway.testing import GatewayProcess
from tests.cli.typist import Typist
from tests.diagrams import FOLDER, digest_of, find_old
from tests.docs_blocks import read_hook
from tests.http_server import QuietHandler, serving
from tests.proof_table import ROOT
from tests.terminal_picture import as_svg

KIND = ".session"
KEYS = ("> ", "^D")
QUIET = 0.5  # seconds, after which the program has drawn its prompt again
HOOK = "ask-first"
OLLAMA_PORT, MODELS = 11434, ("gemma3:4b", "qwen3:8b")
ANSWER = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}


class StandIn(QuietHandler):
    """A server with two models, as Ollama has them."""

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        self.answer(json.dumps({"data": [{"id": name} for name in MODELS]}).encode())

    def do_POST(self) -> None:  # noqa: N802 - http.server calls it so
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(json.dumps(ANSWER).encode())


def split_session(session: str) -> Iterator[tuple[str, list[str]]]:
    """Split a session into its commands, each with the lines below it."""
    for part in ("\n" + session.strip()).split("\n$ ")[1:]:
        command, *lines = part.splitlines()
        yield command, lines


def record(session: str, gateway: GatewayProcess) -> Iterator[tuple[str, str]]:
    """Type a session; return each command with the screen behind it."""
    for command, lines in split_session(session):
        with Typist(gateway, command, program=("bash", "-c")) as person:
            for line in lines:
                if not line.startswith(KEYS):
                    person.sees(line)
                    person.reads_on(QUIET)
                else:
                    person.type("\x04" if line == "^D" else line.removeprefix("> ") + "\r")
            if status := person.leaves():
                raise SystemExit(f"$ {command}\nended with {status}:\n{person.screen.text}")
            yield command, person.screen.text.replace(str(gateway.home.root.parent), "~").rstrip("\n> ")


def draw(sessions: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Record each of these sessions; return its name and its SVG."""
    for name, session in sessions.items():
        with tempfile.TemporaryDirectory() as place, GatewayProcess(Path(place) / ".hermes") as gateway:
            gateway.environ["PATH"] = f"{Path(sys.executable).parent}:{gateway.environ['PATH']}"
            gateway.configure("")
            gateway.add_hook(HOOK, read_hook(ROOT / "README.md", HOOK))
            gateway.start()
            with serving(StandIn, OLLAMA_PORT):
                drawn = as_svg([*record(session, gateway)])
        start, rest = drawn.split("\n", 1)
        yield name, f"{start}\n<!-- {digest_of(session)} -->\n{rest}"


def main() -> None:
    for name, drawn in draw(find_old(FOLDER, KIND)):
        (FOLDER / f"{name}.svg").write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
