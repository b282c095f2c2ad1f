"""`hermes-gateway chat`: talk to the running gateway from a terminal, or say one thing from a script."""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from gateway.cli.output import escape_text, print_note, show_json
from gateway.config.home import Home
from gateway.control_socket.client import ControlClient, result_from
from gateway.errors import ExitCode, GatewayError, NotRunning

HELLO = "You are talking to the gateway of {home}. /help lists the commands; Ctrl-D leaves.\n"
STILL_WORKING = "(no answer yet; it is worked on)"
SILENCE = 10.0  # seconds after which a person wants to see that something goes on
GATEWAY_LEFT = "The gateway went away; what you said is kept, and answered when it is back."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--message", metavar="TEXT", help="say this one thing, print the reply, and leave")
    parser.add_argument("-s", "--session", metavar="NAME", default="main", help="the session to talk in (main)")
    parser.add_argument("--json", action="store_true", help="with -m: print one object instead of the text")


def run(args: argparse.Namespace, home: Home) -> int:
    if args.message is not None and not args.message.strip():
        print_note("hermes-gateway chat: there is nothing in --message to say")
        return int(ExitCode.USAGE)
    if args.message is not None:
        return send_message(home.socket, args.message, args.session, as_json=args.json)
    if not sys.stdin.isatty():
        return send_lines(home.socket, sys.stdin, args.session)
    return run_interactive(home, args.session)


def send_message(socket: Path, text: str, session: str, *, as_json: bool) -> int:
    """One message; its reply on stdout, and the exit code says whether it was answered."""
    with ControlClient(socket, timeout=None) as client, show_progress():
        try:
            answer = client.call("chat.say", {"text": text, "session": session})
        except NotRunning:
            raise NotRunning(f"{GATEWAY_LEFT}\nthe answer will stand in: hermes-gateway sessions list") from None
    if as_json:
        show_json(answer)
    elif answer["reply"]:
        print(escape_text(answer["reply"]) if sys.stdout.isatty() else answer["reply"])
    else:
        print_note(f"({answer['status']}, without a reply)")
    return int(ExitCode.FAILED if answer["status"] == "failed" else ExitCode.OK)


@contextmanager
def show_progress() -> Iterator[None]:
    """A line on a terminal when there is nothing else to see for long; it goes when the answer comes."""
    if not sys.stderr.isatty():
        yield
        return
    is_shown = threading.Event()

    def show() -> None:
        print(STILL_WORKING, end="", file=sys.stderr, flush=True)
        is_shown.set()

    timer = threading.Timer(SILENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if is_shown.is_set():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def send_lines(socket: Path, lines: Iterable[str], session: str) -> int:
    """Each line of a pipe is a message; the replies come out in order."""
    return max(
        (send_message(socket, line.strip(), session, as_json=False) for line in lines if line.strip()), default=0
    )


class ChatScreen:
    """What the person sees while an answer comes in: its text as it grows, then whatever was not streamed.

    Only whole lines are printed: the line editor draws its prompt where the last line ends, and over what is there.
    The line that still grows is `line`, for the prompt to show above itself.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._said_at: float | None = None
        self.line = ""

    @property
    def present(self) -> str:
        """What stands above the prompt: the line that grows, or a sign of life where nothing has come for long."""
        if self.line or self._said_at is None or time.monotonic() - self._said_at < SILENCE:
            return self.line
        return STILL_WORKING

    def wait_for_answer(self) -> None:
        self._said_at = time.monotonic()

    def show_notification(self, method: str, params: Any) -> None:
        self._said_at = None if method == "reply" else time.monotonic()
        if method == "delta":
            self._shown += params["text"]
            *whole, self.line = (self.line + params["text"]).split("\n")
            for line in whole:
                print(escape_text(line), flush=True)
        elif method == "reply":
            self._finish(params["text"])

    def result(self, answer: dict[str, Any]) -> None:
        self._said_at = None
        if answer["status"] == "command":
            self._finish(answer["reply"])
        elif self._shown:
            self._finish(self._shown)

    def _finish(self, text: str) -> None:
        rest = [self.line] if text == self._shown or self.line else []
        rest += [text] if text != self._shown else []
        self._shown = self.line = ""
        print(*map(escape_text, rest), "", sep="\n", flush=True)


class ChatConnection:
    """A conversation over one connection: the person types on, while a thread shows what comes back."""

    def __init__(self, client: ControlClient, session: str, screen: ChatScreen, changed: Callable[[], None]) -> None:
        self._client = client
        self._session = session
        self._screen = screen
        self._changed = changed
        self.gone = threading.Event()

    def say(self, text: str) -> None:
        self._screen.wait_for_answer()
        self._client.start("chat.say", {"text": text, "session": self._session})

    def listen(self) -> None:
        with suppress(OSError, ValueError):  # we hung up, or the gateway did
            for message in self._client.messages():
                if "method" in message:
                    self._screen.show_notification(message["method"], message["params"])
                else:
                    self._show_result(message)
                self._changed()
        self.gone.set()
        self._changed()

    def _show_result(self, message: dict[str, Any]) -> None:
        try:
            self._screen.result(result_from(message))
        except GatewayError as error:
            print_note(f"! {error}\n")


def run_interactive(home: Home, session: str) -> int:
    """A person at a terminal: a line with history; typing goes on while an answer streams."""
    # The line editor is heavy, and wanted here alone.
    from prompt_toolkit import PromptSession  # noqa: PLC0415
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415
    from prompt_toolkit.patch_stdout import patch_stdout  # noqa: PLC0415

    from gateway.cli.keyboard import Keyboard  # noqa: PLC0415

    screen = ChatScreen()

    def question() -> str:
        return f"{escape_text(above)}\n> " if (above := screen.present) else "> "

    def redraw() -> None:
        """Nobody has to press a key to see what came, or to learn that the gateway has gone."""
        if prompt.app.is_running and talk.gone.is_set() and prompt.app.loop:
            prompt.app.loop.call_soon_threadsafe(partial(prompt.app.exit, exception=EOFError))
        else:
            prompt.app.invalidate()

    history = FileHistory(str(home.own_folder / "chat_history"))
    prompt: PromptSession[str] = PromptSession(question, history=history, refresh_interval=1, input=Keyboard(sys.stdin))
    # Raw also between two lines: a Ctrl-D that is typed just then would be the terminal's, and lost.
    with ControlClient(home.socket, timeout=None) as client, patch_stdout(raw=True), prompt.input.raw_mode():
        talk = ChatConnection(client, session, screen, redraw)
        threading.Thread(target=talk.listen, daemon=True).start()
        print(HELLO.format(home=home.root))
        while not talk.gone.is_set():
            try:
                text = prompt.prompt()
            except KeyboardInterrupt:
                text = "/stop"
            except EOFError:
                break
            if text.strip() and not talk.gone.is_set():
                talk.say(text.strip())
        if not talk.gone.is_set():
            return int(ExitCode.OK)
        print(GATEWAY_LEFT, file=sys.stderr)
        return int(ExitCode.NOT_RUNNING)
