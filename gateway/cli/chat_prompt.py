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
    gone: threading.Event = msgspec.field(default_factory=threading.Event)

    def say(self, text: str) -> None:
        self._screen.wait_for_answer()
        said = {"text": text, "session": self._session, "shown": self._screen.replies}
        self._client.start("chat.say", said)

    def show_questions(self) -> None:
        """Show the questions that are open in this session, perhaps of an earlier process."""
        self._client.start("chat.show", {"session": self._session})

    def listen(self) -> None:
        with suppress(OSError, ValueError):  # one end closed the connection
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


def run_interactive(home: Home, session: str, hello: str = "", *, is_ended_by_interrupt: bool = False) -> int:
    """Chat with a person at a terminal: a line with history, and typing goes on while an answer streams.

    `hello` replaces the usual greeting; Ctrl-C stops the running work, unless it ends the chat.
    """
    screen = ChatScreen()

    def question() -> str:
        """Return the prompt, below the line that still grows; Enter leaves the prompt alone on the screen."""
        above = "" if prompt.app.is_done else screen.present
        return f"{fold_for(sys.stdout, escape_text(above))}\n> " if above else "> "

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
        refresh_interval=1,
        input=Keyboard(sys.stdin),
        completer=CommandMenu(home),
        complete_while_typing=False,
    )
    # Stay raw between two lines too: the terminal would take a Ctrl-D that is typed just then, and it would be lost.
    with ControlClient(home.socket, timeout=None) as client, patch_stdout(raw=True), prompt.input.raw_mode():
        talk = ChatConnection(client, session, screen, redraw)
        threading.Thread(target=talk.listen, daemon=True).start()
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
        if not talk.gone.is_set():
            return ExitCode.OK
        print_note(GATEWAY_LEFT)
        return ExitCode.NOT_RUNNING
