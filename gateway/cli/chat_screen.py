"""The screen of a person in a terminal while an answer comes."""

import re
import sys
import time
from typing import Any

from gateway.cli.output import escape_text, fold_for
from gateway.cli.program import apply_program_name

STILL_WORKING = "(no answer yet; it is worked on)"
MOST_REPLIES = 100  # kept ids; an open question is among them, since nothing comes after it
SILENCE = 3.0  # seconds after which a person wants a sign of life
TAKEN_BACK = "(that was taken back; it is answered anew)"
FENCE = "```"
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]) ")
UNSAID = "(what you wrote was not sent: the question above comes first)"
GATEWAY_LEFT = "The gateway went away; what you said is kept, and answered when it is back."


class AnswerFolder:
    """The folding of an answer's lines as they come; lines of a code block stay as they are, since people copy them."""

    def __init__(self) -> None:
        self._is_code = False
        self._is_list = False
        self._may_be_code = True  # an indented line may be code: it is below an empty line, or continues such a line

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


class ChatScreen:
    """The person's view of an answer as it comes: its growing text, then the part that was not streamed.

    Only whole lines are printed: the line editor draws its prompt at the end of the last line, and over any text there.
    The growing line is `line`, which the prompt shows above itself.
    """

    def __init__(self) -> None:
        self._shown = ""  # the text of the present answer
        self._turn = ""
        self._place: list[int] = []  # the place of the newest piece: every waiting message gets all pieces
        self._said_at: float | None = None
        self._folder = AnswerFolder()
        self._tools = ""  # the running tools, until more text comes
        self.line = ""
        self.replies: list[str] = []  # the ids of shown replies

    @property
    def present(self) -> str:
        """The text above the prompt: the line that grows, the tools, or a sign of life if nothing came for long."""
        if self.line or self._said_at is None:
            return self.line
        return self._tools or (STILL_WORKING if time.monotonic() - self._said_at >= SILENCE else "")

    def wait_for_answer(self) -> None:
        self._said_at = time.monotonic()

    def show_notification(self, method: str, params: Any) -> None:
        self._said_at = None if method == "reply" else time.monotonic()
        if method == "delta" and (place := params.get("place", [])) > self._place:
            self._place = place
            self._tools = str(params.get("tools") or "").replace("`", "")
            self._grow(params["turn_id"], params["text"], is_anew=bool(params.get("void")))
        elif method == "reply" and params["id"] not in self.replies:
            self.replies = [*self.replies, params["id"]][-MOST_REPLIES:]
            if params["turn_id"]:
                self._finish(params["turn_id"], params["text"])
            else:
                self._interject(apply_program_name(params["text"]))

    def result(self, answer: dict[str, Any]) -> None:
        self._said_at = None
        if answer["status"] == "command" and not answer["turn_id"]:  # replies of a turn were shown as they came
            self._interject(apply_program_name(answer["reply"]))
        elif answer["status"] == "unsaid":
            self._interject(UNSAID)
        elif self._shown and answer["turn_id"] == self._turn:
            self._finish(self._turn, self._shown)

    def _grow(self, turn: str, text: str, *, is_anew: bool) -> None:
        if turn != self._turn and self._shown:  # the earlier turn ended without a text
            self._finish(self._turn, self._shown)
        self._turn = turn
        if is_anew:
            self._take_back()
        self._shown += text
        *whole, self.line = (self.line + text).split("\n")
        for line in whole:
            print(self._folder.fold(line), flush=True)

    def _take_back(self) -> None:
        """Say that the text above is not the answer."""
        if self._shown.strip():
            print(self._folder.fold(self.line), TAKEN_BACK, sep="\n", flush=True)
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
        print(*map(self._folder.fold, filter(None, rest)), "", sep="\n", flush=True)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._shown = self.line = ""
        self._folder = AnswerFolder()
