"""The questions to a person at a terminal: a wrong answer is reported while it is typed, and can be corrected.

A person who leaves a question by Ctrl-C or Ctrl-D causes the editor's exception: KeyboardInterrupt or EOFError.
"""

import re
import shutil
import sys
from collections.abc import Callable, Sequence

from prompt_toolkit import prompt
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.styles import Style
from prompt_toolkit.validation import ValidationError, Validator

from gateway.cli.output import apply_style, escape_text, fold_for
from gateway.cli.table import fold_text

FORBIDDEN_CHARACTERS = re.compile(r"""[\s'"\\#$`]|[^\x21-\x7e]""")
# The editor reports a fault in the last row of the terminal, however far that is from the question.
NO_TOOLBAR = Style([("validation-toolbar", "noreverse bg:default hidden")])


class AnswerCheck(Validator):
    """The validator of an answer; its function also decides on an empty one."""

    def __init__(self, find_fault: Callable[[str], str]) -> None:
        self._find_fault = find_fault

    def validate(self, document: Document) -> None:
        if why := self._find_fault(document.text.strip()):
            raise ValidationError(len(document.text), why)


def check_value(value: str, pattern: str) -> str:
    """Return the fault of a value that is about to be written, or ""."""
    if re.fullmatch(pattern, value) is None:
        return "does not look like one"
    return "has characters that no such value has" if FORBIDDEN_CHARACTERS.search(value.replace(" ", "")) else ""


def find_fault(text: str, pattern: str, *, is_needed: bool, example: str = "") -> str:
    """Return the fault of an answer, with an example of a right one, or ""."""
    if not text:
        return "it is needed" if is_needed else ""
    looks = f"; a right one: {example}" if example else ""
    return f"it {wrong}{looks}" if (wrong := check_value(text, pattern)) else ""


def can_ask() -> bool:
    return sys.stdin.isatty()


def ask_line(
    what: str,
    find_fault: Callable[[str], str] = lambda _text: "",
    *,
    default: str = "",
    choices: Sequence[str] = (),
    is_secret: bool = False,
) -> str:
    """Ask for one line. `choices` are suggested while it is typed; other answers are possible."""
    completer = WordCompleter(list(choices), ignore_case=True, sentence=True) if choices else None
    lines = fold_text(f"{escape_text(what)}:", shutil.get_terminal_size().columns - 1)

    def make_message() -> str:
        error = get_app().current_buffer.validation_error
        return "\n".join([*lines, *(["  " + error.message, ">"] if error else [])]) + " "

    said = prompt(
        make_message,
        style=NO_TOOLBAR,
        validator=AnswerCheck(find_fault),
        validate_while_typing=True,
        default=default,
        completer=completer,
        is_password=is_secret,
    )
    return said.strip()


def ask_choice(what: str, choices: Sequence[str], default: int = 0) -> int:
    """Ask for a choice, and return its index in the list; Enter takes the default."""
    for number, choice in enumerate(choices, 1):
        print(fold_for(sys.stdout, f"  {apply_style(str(number), 'bold')}  {escape_text(choice)}", " " * 3))
    known = {"": default, **{str(number + 1): number for number in range(len(choices))}}
    wrong = f"a number from 1 to {len(choices)}"
    return known[ask_line(f"{what} (Enter: {default + 1})", lambda text: "" if text in known else wrong)]


def ask_yes(what: str, *, default: bool) -> bool:
    ends = "Y/n" if default else "y/N"
    known = {"": default, "y": True, "yes": True, "n": False, "no": False}
    return known[ask_line(f"{what} [{ends}]", lambda text: "" if text.lower() in known else "y or n").lower()]
