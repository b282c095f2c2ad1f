"""The chat of a person at a terminal: a line with history, and the answers above it."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

import msgspec
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.patch_stdout import patch_stdout

from gateway.cli.chat_screen import GATEWAY_LEFT, ChatScreen
from gateway.cli.output import escape_text, fold_for, print_note, print_text
from gateway.config.home import Home
from gateway.control.client import ControlClient, call_gateway, result_from
from gateway.errors import ExitCode, GatewayError
from gateway.logs.text import to_one_line

HELLO = "You are talking to the gateway of {home}. /help lists the commands; Ctrl-D leaves.\n"
COMPLETION_PATIENCE = 2.0
MOVE = 0.2  # seconds from one look of a sign that moves to the next


class Keyboard(Vt100Input):
    """The terminal's input, which stays raw while a line is printed above the prompt.

    The editor would return the terminal to its own line discipline meanwhile, which takes a Ctrl-D for itself.
    """

    def cooked_mode(self) -> AbstractContextManager[None]:
        return nullcontext()


class CommandMenu(Completer):
    """The completion of commands on Tab after a slash; plugins may add some at any time."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002
        typed = document.text_before_cursor
        if not typed.startswith("/") or " " in typed:
            return
        with suppress(GatewayError, OSError):  # the chat itself reports that the gateway has gone
            for one in call_gateway(self._home.socket, "chat.commands", COMPLETION_PATIENCE)["commands"]:
                if f"/{one['name']}".startswith(typed):
                    shown = to_one_line(f"/{one['name']} {one['usage']}".rstrip())
                    about = to_one_line(one["summary"])
                    yield Completion(f"/{one['name']}", -len(typed), display=shown, display_meta=about)


class ChatConnection(msgspec.Struct, eq=False):
    """A chat over one connection: the person can go on typing while a thread shows the answers."""

    _client: ControlClient
    _session: str
    _screen: ChatScreen
    _changed: Callable[[], None]
    _shows: int = 0  # the request whose answer nobody waits for
    gone: threading.Event = msgspec.field(default_factory=threading.Event)

    def say(self, text: str) -> None:
        self._screen.wait_for_answer()
        said = {"text": text, "session": self._session, "shown": self._screen.replies}
        self._client.start("chat.say", said)

    def show_questions(self) -> None:
        """Show the questions that are open in this session, perhaps of an earlier process."""
        self._shows = self._client.start("chat.show", {"session": self._session})

    def begin(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.keep_moving, daemon=True).start()

    def keep_moving(self) -> None:
        """Draw the prompt again and again while an answer is pending."""
        while not self.gone.wait(MOVE):
            if self._screen.is_waiting:
                self._changed()

    def listen(self) -> None:
        with suppress(OSError, ValueError):  # one end closed the connection
            for message in self._client.messages():
                if "method" in message:
                    self._screen.show_notification(message["method"], message["params"])
                elif message.get("id") != self._shows:  # what that shows was shown as it came
                    self._show_result(message)
                self._changed()
        self.gone.set()
        self._changed()

    def _show_result(self, message: dict[str, Any]) -> None:
        try:
            self._screen.result(result_from(message))
        except GatewayError as error:
            self._screen.end_wait()
            print_note(f"! {error}\n")


def cut_text(text: str, rows: int) -> str:
    """Return the end of the text above the prompt, in half of so many rows of a screen: the editor needs the rest."""
    folded = fold_for(sys.stdout, escape_text(text)).split("\n")
    return "".join(f"{row}\n" for row in folded[-max(rows // 2, 1) :]) if text else ""


def run_interactive(home: Home, session: str, hello: str = "", *, is_ended_by_interrupt: bool = False) -> int:
    """Chat with a person at a terminal: a line with history, and typing goes on while an answer streams.

    `hello` replaces the usual greeting; Ctrl-C stops the running work, unless it ends the chat.
    """
    screen = ChatScreen()

    def question() -> str:
        """Return the prompt, below the line that still grows; Enter leaves the prompt alone on the screen."""
        return f"{'' if prompt.app.is_done else cut_text(screen.present, prompt.output.get_size().rows)}> "

    def redraw() -> None:
        """Redraw the prompt without a key press, and leave it when the gateway has gone."""
        if prompt.app.is_running and talk.gone.is_set() and prompt.app.loop:
            prompt.app.loop.call_soon_threadsafe(partial(prompt.app.exit, exception=EOFError))
        else:
            prompt.app.invalidate()

    history = FileHistory(str(home.chat_history))
    prompt: PromptSession[str] = PromptSession(
        question,
        history=history,
        input=Keyboard(sys.stdin),
        completer=CommandMenu(home),
        complete_while_typing=False,
    )
    # Stay raw between two lines too: the terminal would take a Ctrl-D that is typed just then, and it would be lost.
    with ControlClient(home.socket, timeout=None) as client, patch_stdout(raw=True), prompt.input.raw_mode():
        talk = ChatConnection(client, session, screen, redraw)
        talk.begin()
        print_text(hello or HELLO.format(home=home.root))
        talk.show_questions()
        while not talk.gone.is_set():
            try:
                text = prompt.prompt()
            except KeyboardInterrupt:
                if is_ended_by_interrupt:
                    break
                text = "/stop"
            except EOFError:
                break
            if text.strip() and not talk.gone.is_set():
                talk.say(text.strip())
        screen.end_answer()
        if not talk.gone.is_set():
            return ExitCode.OK
        print_note(GATEWAY_LEFT)
        return ExitCode.NOT_RUNNING
