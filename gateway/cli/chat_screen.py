"""What a person sees of an answer while it comes, in a terminal."""

import re
import sys
import time
from typing import Any

from gateway.cli.output import escape_text, fold_for
from gateway.cli.program import apply_program_name

STILL_WORKING = "(no answer yet; it is worked on)"
MOST_REPLIES = 100  # among which an open question is: nothing comes after it
SILENCE = 10.0  # seconds after which a person wants to see that something goes on
TAKEN_BACK = "(that was taken back; it is answered anew)"
FENCE = "```"
LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]) ")
UNSAID = "(what you wrote was not sent: the question above comes first)"
GATEWAY_LEFT = "The gateway went away; what you said is kept, and answered when it is back."


class AnswerFolder:
    """Folds the lines of an answer as they come; those of a code block stay as they are, since people copy them."""

    def __init__(self) -> None:
        self._is_code = False
        self._is_list = False
        self._may_be_code = True  # a line that is set in: it stands below an empty one, or goes on what does

    def fold(self, text: str) -> str:
        return "\n".join(map(self._fold_line, text.split("\n")))

    def _fold_line(self, line: str) -> str:
        is_fence = line.lstrip().startswith(FENCE)
        self._is_code ^= is_fence
        is_code = self._is_code or is_fence or self._is_set_in(line)
        return escape_text(line) if is_code else fold_for(sys.stdout, escape_text(line))

    def _is_set_in(self, line: str) -> bool:
        """As code is, by four spaces or a tab; in a list its items go on like that."""
        if not line.strip():
            self._may_be_code = True
        elif not line.startswith(("    ", "\t")):
            self._may_be_code, self._is_list = False, bool(LIST_ITEM.match(line))
        return self._may_be_code and not self._is_list


class ChatScreen:
    """What the person sees while an answer comes in: its text as it grows, then whatever was not streamed.

    Only whole lines are printed: the line editor draws its prompt where the last line ends, and over what is there.
    The line that still grows is `line`, for the prompt to show above itself.
    """

    def __init__(self) -> None:
        self._shown = ""
        self._said_at: float | None = None
        self._folder = AnswerFolder()
        self.line = ""
        self.replies: list[str] = []  # the ids of those that were shown

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
            if params.get("void"):
                self._take_back()
            self._shown += params["text"]
            *whole, self.line = (self.line + params["text"]).split("\n")
            for line in whole:
                print(self._folder.fold(line), flush=True)
        elif method == "reply":
            self.replies = [*self.replies, params["id"]][-MOST_REPLIES:]
            self._finish(params["text"] if params["turn_id"] else apply_program_name(params["text"]))

    def result(self, answer: dict[str, Any]) -> None:
        self._said_at = None
        if answer["status"] == "command" and not answer["turn_id"]:  # what belongs to a turn was shown as it came
            self._finish(apply_program_name(answer["reply"]))
        elif answer["status"] == "unsaid":
            self._finish(UNSAID)
        elif self._shown:
            self._finish(self._shown)

    def _take_back(self) -> None:
        """What was streamed is not the answer: whoever reads on is told."""
        if self._shown.strip():
            print(self._folder.fold(self.line), TAKEN_BACK, sep="\n", flush=True)
        self._begin_anew()

    def _finish(self, text: str) -> None:
        """Of an answer that goes on behind what is shown (its files), only that is printed."""
        known = self._shown.rstrip()
        is_known = text == self._shown or bool(known and text.startswith(f"{known}\n"))
        rest = [self.line] if is_known or self.line else []
        more = text[len(known) :].strip("\n") if is_known else text
        rest += [more] if more else []
        print(*map(self._folder.fold, rest), "", sep="\n", flush=True)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._shown = self.line = ""
        self._folder = AnswerFolder()
