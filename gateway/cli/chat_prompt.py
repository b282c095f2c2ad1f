"""The chat of a person at a terminal: a line with history, and the answers above it."""

import asyncio
import io
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, redirect_stderr, redirect_stdout, suppress
from functools import partial
from typing import Any, TextIO

import msgspec
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input.vt100 import Vt100Input

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


class ScreenOutput(io.TextIOBase):
    """The output of all threads while there is a prompt: whole lines, which the chat's loop prints above it.

    The editor draws its prompt at the end of the last line, and over any text there.
    """

    def __init__(self, terminal: TextIO, wake: Callable[[], object]) -> None:
        self._terminal = terminal
        self._wake = wake
        self._lock = threading.Lock()
        self._pieces = list[str]()

    def write(self, text: str) -> int:
        with self._lock:
            self._pieces.append(text)
        if "\n" in text:
            try:
                self._wake()
            except RuntimeError:  # the loop has ended, and the prompt with it
                self.print_lines()
        return len(text)

    def print_lines(self) -> None:
        with self._lock:
            *whole, rest = "".join(self._pieces).split("\n")
            self._pieces = [rest]
        print(*whole, "", sep="\n", end="", file=self._terminal, flush=True)

    @property
    def has_lines(self) -> bool:
        return any("\n" in piece for piece in self._pieces)

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def fileno(self) -> int:
        return self._terminal.fileno()


class TerminalChat(msgspec.Struct, eq=False):
    """A chat in one terminal, in one event loop: two threads could not share the editor's screen.

    A thread does nothing but receive the gateway's messages.
    """

    _client: ControlClient
    _session: str
    _prompt: PromptSession[str]
    _screen: ChatScreen = msgspec.field(default_factory=ChatScreen)
    _heard: deque[dict[str, Any]] = msgspec.field(default_factory=deque)
    _shows: int = 0  # the request whose answer nobody waits for
    _has_ended: bool = False  # no further message comes
    is_gone: bool = False

    async def run(self, *, is_ended_by_interrupt: bool) -> None:
        """Send one line after the other, until the person leaves or the gateway has gone."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        wake = partial(loop.call_soon_threadsafe, news.set)
        output = ScreenOutput(sys.stdout, wake)
        with redirect_stdout(output), redirect_stderr(output):
            self._shows = self._client.start("chat.show", {"session": self._session})  # questions of an earlier process
            threading.Thread(target=self._receive, args=(wake,), daemon=True).start()
            tasks = [asyncio.create_task(self._show_news(news, output)), asyncio.create_task(self._keep_moving())]
            await self._read_lines(is_ended_by_interrupt=is_ended_by_interrupt)
            for task in tasks:
                task.cancel()
            self._screen.end_answer()
        output.print_lines()

    async def _read_lines(self, *, is_ended_by_interrupt: bool) -> None:
        while not self.is_gone:
            try:
                text = await self._prompt.prompt_async(self._render_prompt)
            except KeyboardInterrupt:
                if is_ended_by_interrupt:
                    return
                text = "/stop"
            except EOFError:
                return
            if text.strip() and not self.is_gone:
                self._screen.wait_for_answer()
                said = {"text": text.strip(), "session": self._session, "shown": self._screen.replies}
                self._client.start("chat.say", said)

    def _receive(self, wake: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the person has left
            with suppress(OSError, ValueError):  # one end closed the connection
                for message in self._client.messages():
                    self._heard.append(message)
                    wake()
            self._has_ended = True
            wake()

    async def _show_news(self, news: asyncio.Event, output: ScreenOutput) -> None:
        """Print what has come above the prompt, and draw the prompt once below it."""
        while not self.is_gone:
            await news.wait()
            news.clear()
            has_ended = self._has_ended
            while self._heard:
                self._take(self._heard.popleft())
            if output.has_lines:
                await run_in_terminal(output.print_lines)
            self._prompt.app.invalidate()
            self.is_gone = has_ended
        if self._prompt.app.is_running and not self._prompt.app.is_done:
            self._prompt.app.exit(exception=EOFError)

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            self._screen.show_notification(message["method"], message["params"])
        elif message.get("id") != self._shows:  # its texts were shown as they came
            try:
                self._screen.result(result_from(message))
            except GatewayError as error:
                self._screen.end_wait()
                print_note(f"! {error}\n")

    async def _keep_moving(self) -> None:
        """Draw the prompt again and again while an answer is pending."""
        while True:
            await asyncio.sleep(MOVE)
            if self._screen.is_waiting:
                self._prompt.app.invalidate()

    def _render_prompt(self) -> str:
        """Return the prompt, below the line that still grows; Enter leaves the prompt alone on the screen."""
        app = self._prompt.app
        return f"{'' if app.is_done else cut_text(self._screen.present, app.output.get_size().rows)}> "


def cut_text(text: str, rows: int) -> str:
    """Return the end of the text above the prompt, in half of so many rows of a screen: the editor needs the rest."""
    folded = fold_for(sys.stdout, escape_text(text)).split("\n")
    return "".join(f"{row}\n" for row in folded[-max(rows // 2, 1) :]) if text else ""


def run_interactive(home: Home, session: str, hello: str = "", *, is_ended_by_interrupt: bool = False) -> int:
    """Chat with a person at a terminal: a line with history, and typing goes on while an answer streams.

    `hello` replaces the usual greeting; Ctrl-C stops the running work, unless it ends the chat.
    """
    prompt: PromptSession[str] = PromptSession(
        history=FileHistory(str(home.chat_history)),
        input=Keyboard(sys.stdin),
        completer=CommandMenu(home),
        complete_while_typing=False,
    )

    # Stay raw between two lines too: the terminal would take a Ctrl-D that is typed just then, and it would be lost.
    with ControlClient(home.socket, timeout=None) as client, prompt.input.raw_mode():
        print_text(hello or HELLO.format(home=home.root))
        chat = TerminalChat(client, session, prompt)
        asyncio.run(chat.run(is_ended_by_interrupt=is_ended_by_interrupt))
    if not chat.is_gone:
        return ExitCode.OK
    print_note(GATEWAY_LEFT)
    return ExitCode.NOT_RUNNING
