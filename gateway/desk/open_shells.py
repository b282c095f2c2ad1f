"""Commands that open a shell or an interpreter: what Codex types into it later (`write_stdin`) comes to no hook.

Codex does not say whether a command has a terminal, so each counts that would read on. This is a guard against
mistakes: a program that reads commands and is not listed here is not found.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

RISK = "This opens a shell or an interpreter, and no hook learns what is typed into it later."
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1(.*?)\n.*?^[ \t]*\2[ \t]*$", re.DOTALL | re.MULTILINE)
_ENDS = frozenset(";&|()\n")
_ASSIGNMENT = re.compile(r"\w+=")
_WRAPPERS = re.compile(r"builtin|command|doas|env|exec|nice|nohup|script|setsid|stdbuf|sudo|time|timeout|unbuffer")


class Reader(NamedTuple):
    """A program that reads commands. `scripts`: its options that say what to run; `operands`: how many words do."""

    names: str
    scripts: str
    operands: int = 1
    reads_on: str = ""  # the option by which it reads on after its script


_READERS = (
    Reader(r"(ba|da|z|k|fi)?sh", r"-[a-z]*c|--version|--help", reads_on=r"-[a-z]*[is]"),
    Reader(r"i?python[\d.]*|pypy\d*", r"-[a-zA-Z]*[cmV]|--version|--help", reads_on=r"-[a-zA-Z]*i[a-zA-Z]*"),
    Reader(
        r"node|nodejs|bun|deno",
        r"-[ep]+|-v|-c|--(eval|print|version|help|check|test)(=.*)?",
        reads_on="-i|--interactive",
    ),
    Reader(r"ruby|perl|lua[\d.]*|Rscript|php", r"-[a-zA-Z]*[eErvV].*|--version|--help"),
    Reader(r"irb|R|ghci|scala|jshell|julia", r"-[ef]|--version|--help"),
    Reader(r"ssh|mosh|telnet", r"-V|-[fN]", operands=2),
    Reader(r"psql|mysql|mariadb", r"-[a-zA-Z]*[cfelV].*|--(command|file|list|execute|version|help)(=.*)?", operands=99),
    Reader(r"sqlite3|redis-cli|mongosh", r"-cmd|--eval.*|-version|--version|--help", operands=2),
)


def find_open_shell(_tool: str, args: Mapping[str, Any]) -> str:
    """Return why an owner decides about this call whatever hooks say; "" if it opens nothing that reads on."""
    command = args.get("command")
    return RISK if isinstance(command, str) and any(map(_opens_reader, _list_commands(command))) else ""


def _list_commands(text: str) -> Iterator[Sequence[str]]:
    """Yield the words of each simple command; of a text that no shell can read, each line."""
    lexer = shlex.shlex(_HERE_DOCUMENT.sub(r"< here \3", text), posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters = " \t\r", ""
    words: list[str] = []
    try:
        for word in lexer:
            if word[0] in _ENDS:
                yield words
                words = []
            elif word[0] == ">":  # its target is no word of the command, and neither is a number before it
                next(lexer, "")
                words = words[:-1] if words and words[-1].isdigit() else words
            else:
                words.append(word)
    except ValueError:
        yield from (line.partition(" #")[0].split() for line in text.splitlines())
    yield words


def _opens_reader(words: Sequence[str]) -> bool:
    """Return True if this simple command, or the one that it starts, reads commands from the terminal."""
    if any(word.startswith("<") for word in words):
        return False
    rest = list(words)
    while rest and _ASSIGNMENT.match(rest[0]):
        rest.pop(0)
    if not rest or not _WRAPPERS.fullmatch(_name(rest[0])):
        return _reads_on(rest)
    options = next((at for at, word in enumerate(rest[1:], 1) if not re.match(r"-|\d", word)), len(rest))
    return _opens_reader(rest[options:]) or (options > 1 and _opens_reader(rest[options + 1 :]))  # `-u root bash`


def _reads_on(words: Sequence[str]) -> bool:
    """Return True if these words call a reader without a script, or one that reads on after it."""
    reader = next((one for one in _READERS if words and re.fullmatch(one.names, _name(words[0]))), None)
    if reader is None:
        return False
    options = [word for word in words[1:] if word.startswith("-") and word != "-"]
    if reader.reads_on and any(re.fullmatch(reader.reads_on, one) for one in options):
        return True
    has_script = any(re.fullmatch(reader.scripts, one) for one in options)
    return not has_script and sum(not word.startswith("-") for word in words[1:]) < reader.operands


def _name(word: str) -> str:
    return word.rpartition("/")[2]
