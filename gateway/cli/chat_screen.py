"""The screen of a person in a terminal while an answer comes."""

import re
import sys
import time
from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from gateway.cli.output import escape_text, fold_for, format_duration, has_colours
from gateway.cli.program import apply_program_name

STILL_WORKING = "(no answer yet; it is worked on)"
MOST_REPLIES = 100  # kept ids; an open question is among them, since nothing comes after it
SILENCE = 3.0  # seconds after which a person wants a sign of life
LONG_SILENCE = 10.0  # the same below words that have come
SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SIGNS_A_SECOND = 5
TAKEN_BACK = "(the answer was withdrawn; a new one follows)"
FENCE = "```"
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]) ")
UNSAID = "(what you wrote was not sent: the question above comes first)"
GATEWAY_LEFT = "The gateway went away; what you said is kept, and answered when it is back."


class AnswerText(Protocol):
    """The text of an answer on its way to the screen. `open`: the lines of it that may still become other rows."""

    @property
    def open(self) -> str: ...

    def write(self, line: str) -> list[str]:
        """Return the rows that this line completes."""

    def end(self) -> list[str]:
        """Return the rows of the rest."""


def open_answer() -> AnswerText:
    """Choose Markdown for a terminal with colours; a pipe and NO_COLOR get the text as it is."""
    if not (sys.stdout.isatty() and has_colours(sys.stdout)):
        return AnswerFolder()
    from gateway.cli.markdown_text import MarkdownText  # noqa: PLC0415 - a pipe needs nothing of it

    return MarkdownText()


def render_answer(text: str) -> str:
    """Return a whole answer as a terminal shows it."""
    answer = open_answer()
    return "\n".join([*(row for line in text.split("\n") for row in answer.write(line)), *answer.end()])


class AnswerFolder(msgspec.Struct, eq=False):
    """The folding of an answer's lines as they come; lines of a code block stay as they are, since people copy them."""

    _is_code: bool = False
    _is_list: bool = False
    _may_be_code: bool = True  # an indented line may be code: it is below an empty line, or continues such a line

    open = ""  # each line is complete

    def write(self, line: str) -> list[str]:
        return [self._fold_line(line)]

    def end(self) -> list[str]:
        return []

    def fold(self, text: str) -> str:
        return "\n".join(map(self._fold_line, text.split("\n")))

    def _fold_line(self, line: str) -> str:
        is_fence = line.lstrip().startswith(FENCE)
        self._is_code ^= is_fence
        is_code = self._is_code or is_fence or self._is_set_in(line)
        return escape_text(line) if is_code else fold_for(sys.stdout, escape_text(line))

    def _is_set_in(self, line: str) -> bool:
        """Return True for a line that is indented like code, by four spaces or a tab; list items are indented too."""
        if not line.strip():
            self._may_be_code = True
        elif not line.startswith(("    ", "\t")):
            self._may_be_code, self._is_list = False, bool(LIST_ITEM.match(line))
        return self._may_be_code and not self._is_list


class ChatScreen(msgspec.Struct, eq=False):
    """The person's view of an answer as it comes: its growing text, then the part that was not streamed.

    Only whole rows are printed: the line editor draws its prompt at the end of the last row, and over any text there.
    The prompt shows above itself the part that still grows: the open block, and `line`, its last one.
    """

    _shown: str = ""  # the text of the present answer
    _turn: str = ""
    _place: list[int] = []  # the place of the newest piece: every waiting message gets all pieces
    _waiting: int = 0  # messages without an answer
    _heard_at: float = 0.0
    _answer: AnswerText = msgspec.field(default_factory=open_answer)
    _tools: str = ""  # the running tools, until more text comes
    line: str = ""
    replies: list[str] = []  # the ids of shown replies

    @property
    def present(self) -> str:
        """Return the text above the prompt: the growing part, and a moving sign while tools run or nothing comes."""
        growing = "\n".join(filter(None, [self._answer.open, self.line]))
        silence = time.monotonic() - self._heard_at
        if not self._waiting or not (self._tools or silence >= (LONG_SILENCE if growing else SILENCE)):
            return growing
        sign = SIGNS[int(time.monotonic() * SIGNS_A_SECOND) % len(SIGNS)]
        moving = f"{sign} {self._tools or STILL_WORKING} {format_duration(silence) if silence >= 1 else ''}"
        return "\n".join(filter(None, [growing, moving.rstrip()]))

    @property
    def is_waiting(self) -> bool:
        return self._waiting > 0

    def wait_for_answer(self) -> None:
        self._waiting += 1
        self._heard_at = time.monotonic()

    def end_wait(self) -> None:
        self._waiting = max(self._waiting - 1, 0)

    def show_notification(self, method: str, params: Any) -> None:
        self._heard_at = time.monotonic()
        if method == "delta" and (place := params.get("place", [])) > self._place:
            self._place = place
            self._tools = str(params.get("tools") or "").replace("`", "").removesuffix(" …")
            self._grow(params["turn_id"], params["text"], is_anew=bool(params.get("void")))
        elif method == "reply" and params["id"] not in self.replies:
            self.replies = [*self.replies, params["id"]][-MOST_REPLIES:]
            if params.get("is_literal"):  # a question, shown sign by sign
                self.end_answer()
                self._interject(params["text"])
            elif params["turn_id"]:
                self._finish(params["turn_id"], params["text"])
            else:
                self._interject(apply_program_name(params["text"]))

    def result(self, answer: dict[str, Any]) -> None:
        self.end_wait()
        if answer["status"] == "command" and not answer["turn_id"]:  # replies of a turn were shown as they came
            self._interject(apply_program_name(answer["reply"]))
        elif answer["status"] == "unsaid":
            self._interject(UNSAID)
        elif answer["turn_id"] == self._turn:
            self.end_answer()

    def end_answer(self) -> None:
        """Print what has grown, as far as it is not printed yet."""
        if self._shown:
            self._finish(self._turn, self._shown)

    def _grow(self, turn: str, text: str, *, is_anew: bool) -> None:
        if turn != self._turn:  # the earlier turn ended without a text
            self.end_answer()
        self._turn = turn
        if is_anew:
            self._take_back()
        self._shown += text
        *whole, self.line = (self.line + text).split("\n")
        self._print(whole)

    def _print(self, lines: Iterable[str]) -> None:
        if rows := [row for line in lines for row in self._answer.write(line)]:
            print(*rows, sep="\n", flush=True)

    def _take_back(self) -> None:
        """Say that the text above is not the answer."""
        if self._shown.strip():
            print(*self._answer.write(self.line), *self._answer.end(), TAKEN_BACK, sep="\n", flush=True)
        self._begin_anew()

    def _interject(self, text: str) -> None:
        """Print a text that belongs to no answer; an answer that is coming goes on below it."""
        print(AnswerFolder().fold(text), "", sep="\n", flush=True)

    def _finish(self, turn: str, text: str) -> None:
        """Print the part of an answer that is not on the screen yet: its last line, more words, its files."""
        known = self._shown.rstrip() if turn == self._turn else ""
        printed = len(self._shown) - len(self.line)
        if known and text.startswith(known):
            rest = [text[min(printed, len(known)) :].strip("\n")]
        elif known.endswith(text.rstrip()):  # the answer had more text before
            rest = [self.line]
        else:
            rest = [self.line, text]
        for part in filter(None, rest):
            self._print(part.split("\n"))
        print(*self._answer.end(), "", sep="\n", flush=True)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._shown = self.line = self._tools = ""
        self._answer = open_answer()
