"""Commands that open a shell or an interpreter: what Codex types into it later (`write_stdin`) comes to no hook.

Codex does not say whether a command has a terminal, so each counts that would read on. This is a guard against
mistakes: a program that reads commands and is not listed here is not found.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

RISK = "This opens a shell or an interpreter, and no hook learns what is typed into it later."
LONGEST = 10_000  # characters of a command that are examined on the loop, without its documents; a longer one is a risk
MOST_WRAPPERS = 6  # `sudo env nice ...`; more of them are a risk
_DOCUMENT = re.compile(r"<<-?[ \t]*['\"]?(\w+)")
_ENDS = frozenset(";&|()\n")
_ASSIGNMENT = re.compile(r"\w+=")
_WRAPPER = re.compile(r"builtin|command|doas|env|exec|nice|nohup|script|setsid|stdbuf|sudo|time|timeout|unbuffer")


class Reader(NamedTuple):
    """A program that reads commands. `scripts`: its options that say what to run; `operands`: how many words do."""

    names: re.Pattern[str]
    scripts: re.Pattern[str]
    operands: int = 1
    reads_on: re.Pattern[str] | None = None  # the option by which it reads on after its script


_READERS = (
    Reader(
        re.compile(r"(ba|da|z|k|fi)?sh"), re.compile(r"-[a-z]*c|--version|--help"), reads_on=re.compile(r"-[a-z]*[is]")
    ),
    Reader(
        re.compile(r"i?python[\d.]*|pypy\d*"),
        re.compile(r"-[a-zA-Z]*[cmV]|--version|--help"),
        reads_on=re.compile(r"-[a-hj-zA-Z]*i[a-zA-Z]*"),
    ),
    Reader(
        re.compile(r"node|nodejs|bun|deno"),
        re.compile(r"-[cepv]+|--(eval|print|version|help|check|test)(=.*)?", re.DOTALL),
        reads_on=re.compile(r"-i|--interactive"),
    ),
    Reader(
        re.compile(r"ruby|perl|lua[\d.]*|Rscript|php"),
        re.compile(r"-[a-zA-Z]*[eErvV].*|--version|--help", re.DOTALL),
    ),
    Reader(re.compile(r"irb|R|ghci|scala|jshell|julia"), re.compile(r"-[ef]|--version|--help")),
    Reader(re.compile(r"ssh|mosh|telnet"), re.compile(r"-[VfN]"), operands=2),
    Reader(
        re.compile(r"psql|mysql|mariadb"),
        re.compile(r"-[a-zA-Z]*[cfelV].*|--(command|file|list|execute|version|help)(=.*)?", re.DOTALL),
        operands=99,
    ),
    Reader(
        re.compile(r"sqlite3|redis-cli|mongosh"),
        re.compile(r"-cmd|-version|--(eval|version|help)(=.*)?", re.DOTALL),
        operands=2,
    ),
)


def find_open_shell(_tool: str, args: Mapping[str, Any]) -> str:
    """Return why an owner decides about this call whatever hooks say; "" if it opens nothing that reads on."""
    command = args.get("command")
    if not isinstance(command, str):
        return ""
    text = "\n".join(_drop_documents(command))
    return RISK if len(text) > LONGEST or any(map(_opens_reader, _list_commands(text))) else ""


def _drop_documents(text: str) -> Iterator[str]:
    """Yield the lines, without those that a command reads in their place (`<<END`)."""
    lines = iter(text.splitlines())
    for line in lines:
        yield line
        for end in _DOCUMENT.findall(line):
            next((inner for inner in lines if inner.strip() == end), None)


def _list_commands(text: str) -> Iterator[Sequence[str]]:
    """Yield the words of each simple command; of a text that no shell can read, each line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.commenters = " \t\r", ""
    words: list[str] = []
    try:
        for word in lexer:
            if word[:1] in _ENDS:
                yield words
                words = []
            elif word[:1] == ">":  # its target is not a word of the command, and neither is a number before it
                next(lexer, "")
                words = words[:-1] if words and words[-1].isdigit() else words
            else:
                words.append(word)
    except ValueError:
        yield from (line.partition(" #")[0].split() for line in text.splitlines())
    yield words


def _opens_reader(words: Sequence[str], depth: int = 0) -> bool:
    """Return True if this simple command, or the one that it starts, reads commands from the terminal."""
    if depth > MOST_WRAPPERS or any(word.startswith("<") for word in words):
        return depth > MOST_WRAPPERS
    rest = list(words)
    while rest and _ASSIGNMENT.match(rest[0]):
        rest.pop(0)
    if not rest or not _WRAPPER.fullmatch(_name(rest[0])):
        return _reads_on(rest)
    begin = next((at for at, word in enumerate(rest[1:], 1) if not re.match(r"-|\d", word)), len(rest))
    begins = (begin, begin + 1) if begin > 1 else (begin,)  # `-u root bash`
    return any(_opens_reader(rest[at:], depth + 1) for at in begins)


def _reads_on(words: Sequence[str]) -> bool:
    """Return True if these words call a reader without a script, or one that reads on after it."""
    reader = next((one for one in _READERS if words and one.names.fullmatch(_name(words[0]))), None)
    if reader is None:
        return False
    options = [word for word in words[1:] if word.startswith("-") and word != "-"]
    if reader.reads_on and any(map(reader.reads_on.fullmatch, options)):
        return True
    has_script = any(map(reader.scripts.fullmatch, options))
    return not has_script and sum(not word.startswith("-") for word in words[1:]) < reader.operands


def _name(word: str) -> str:
    return word.rpartition("/")[2]
