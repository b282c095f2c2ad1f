"""The shell commands that run without asking: those that a rule allows word by word. They run without a shell.

Theory of operation

A command is first split into words. Nothing is expanded: a command with a character that means something to a shell
outside of quotes (`;`, `$`, `*`, `~`, a backslash, a line's end, ...), or a variable before the program, is not a plain
command, and asks.

The first word names the program, which is looked up in folders that no command can write, never in the workspace. Every
further word must be allowed. Either by a *preset*, which knows the harmless use of a program: each option by name (so
none that writes, runs or loads something slips through, abbreviated or not), operands as paths, which are judged by
their real place. Or by the person, who lists words: `make: [test, lint]`. For a program with subcommands, the list
selects among those: `git: [status, log]`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

import msgspec

from gateway.agent.toolbox.repository_check import is_harmless_repository
from gateway.agent.tools import JobQuestion
from gateway.config.settings import ShellRules
from gateway.config.shell_presets import PRESETS, Operands, Preset, ProgramUsage

PROGRAM_FOLDERS = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/homebrew/bin")
MACHINE_FOLDERS = ("/proc", "/sys", "/dev")  # its entries are not files
PLAIN_WORD = re.compile(r"""(?:[\w./=:@%+,^-]|'[^'\x00-\x1f\x7f]*'|"[^"$`\\!\x00-\x1f\x7f]*")+""", re.ASCII)
QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")


class PlainCommand(msgspec.Struct, frozen=True):
    """A command that runs without a shell: the program's file, its arguments, and additions to its environment."""

    program: tuple[str, ...]
    env: Mapping[str, str]


class ShellPlaces(msgspec.Struct, frozen=True):
    """The places of commands: their folder, writable `roots`, unreadable `hidden` places, and the person's PATH.

    `readable` places can be read by commands in the sandbox although they are in hidden ones. `kept` places are
    read-only.
    """

    folder: Path
    roots: tuple[Path, ...]
    hidden: tuple[Path, ...]
    path: str = ""
    readable: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()

    def allow(self, word: str, operands: Operands) -> bool:
        """Return True if a command may have this operand."""
        if operands in ("none", "text"):
            return operands == "text"
        try:
            path = (self.folder / word).resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        roots = [one.resolve() for one in self.roots]
        hidden = [*(one.resolve() for one in self.hidden), *map(Path, MACHINE_FOLDERS)]
        if operands == "deep" and any(one.is_relative_to(path) for one in hidden):
            return False
        above = [one for one in (*roots, *hidden) if path.is_relative_to(one)]
        return max(above, key=lambda one: len(one.parts)) in roots if above else operands != "write"

    @property
    def program_folders(self) -> tuple[str, ...]:
        """The folders of programs: the system's, then those in PATH that no command can write."""
        roots = [one.resolve() for one in self.roots]
        own = [Path(one).resolve() for one in self.path.split(":") if one.startswith("/")]
        safe = [str(one) for one in own if not any(one.is_relative_to(root) for root in roots)]
        return tuple(dict.fromkeys((*PROGRAM_FOLDERS, *safe)))


class RuleTable:
    """The rules of `tools.shell_allow`, by the programs that they name."""

    def __init__(self, rules: ShellRules) -> None:
        self._listed: dict[str, list[tuple[str, ...]]] = {}
        self._bare: set[str] = set()
        for rule in rules:
            if isinstance(rule, str):
                self._bare.add(rule)
            else:
                for name, words in rule.items():
                    self._listed.setdefault(name, []).extend(tuple(one.split()) for one in words)

    def find(self, command: str, places: ShellPlaces) -> PlainCommand | None:
        """Return the command as a rule lets it run, or None if it needs approval."""
        words = read_words(command)
        if not words:
            return None
        name, *args = words
        preset = PRESETS.get(name, Preset())
        if not (self._is_used_harmlessly(name, args, places) or _is_listed(args, self._listed.get(name, ()))):
            return None
        program = find_program(name, places.program_folders)
        if program is None or (name == "git" and not is_harmless_repository(places.folder)):
            return None
        behind = preset.after.get(args[0], ()) if args else ()
        env = {"PATH": ":".join(places.program_folders), **preset.env}
        return PlainCommand((program, *preset.before, *args[:1], *behind, *args[1:]), env)

    def _is_used_harmlessly(self, name: str, args: Sequence[str], places: ShellPlaces) -> bool:
        preset = PRESETS.get(name)
        if preset is None or (name not in self._bare and name not in self._listed):
            return False
        if not preset.subcommands:
            return name in self._bare and _fits(preset.usage, args, places)
        listed = {one[0] for one in self._listed.get(name, ()) if len(one) == 1}
        if not args or args[0] not in preset.subcommands or (name not in self._bare and args[0] not in listed):
            return False
        return _fits(preset.subcommands[args[0]], args[1:], places)


def read_words(command: str) -> list[str]:
    """Return the words of a plain command; none if a shell would see more in it than words."""
    pieces = command.strip(" ").split(" ") if "'" not in command and '"' not in command else _cut(command)
    words = [piece for piece in pieces if piece]
    if not all(PLAIN_WORD.fullmatch(word) for word in words) or (words and "=" in words[0]):
        return []
    return [QUOTED.sub(lambda found: found[1] or found[2] or "", word) for word in words]


def read_job_question(command: str) -> tuple[JobQuestion, str] | None:
    """Return the verb and the name of a command that only reads jobs, which the gateway answers itself."""
    match read_words(command):
        case ["hermes", "cron", "list"] | ["hermes-gateway", "jobs" | "cron", "list"]:
            return "list", ""
        case ["hermes-gateway", "jobs" | "cron", "show" | "history" as verb, name] if not name.startswith("-"):
            return cast("JobQuestion", verb), name
    return None


def _cut(command: str) -> list[str]:
    """Cut at the blanks outside of quotes; a piece that is not a word stays invalid."""
    found, at = [], 0
    while at < len(command):
        if command[at] == " ":
            at += 1
            continue
        word = PLAIN_WORD.match(command, at)
        end = word.end() if word else len(command)
        if end < len(command) and command[end] != " ":
            end = len(command)
        found.append(command[at:end])
        at = end
    return found


def find_program(name: str, folders: Sequence[str]) -> str | None:
    """Find the file of a program in one of these folders; a path is not a name."""
    if "/" in name or name.startswith("-"):
        return None
    files = (Path(folder) / name for folder in folders)
    return next((str(file) for file in files if file.is_file()), None)


def _fits(usage: ProgramUsage, args: Sequence[str], places: ShellPlaces) -> bool:
    if usage.operands == "deep" and not places.allow(".", "deep"):
        return False
    words = iter(args)
    for word in words:
        if word == "--":
            return all(places.allow(one, usage.operands) for one in words)
        if word in usage.options.split():
            continue
        if not word.startswith("-") or word == "-":
            if not places.allow(word, usage.operands):
                return False
        elif not _is_option(usage, word, words):
            return False
    return True


def _is_option(usage: ProgramUsage, word: str, further: Iterator[str]) -> bool:
    """Return True for an option, or several one-letter options.

    A value that it needs is taken from the further words.
    """
    options = usage.options.split()
    if f"{word}:" in options:
        return next(further, None) is not None
    if usage.number and re.fullmatch(r"-[0-9]+", word):
        return True
    if any(word.startswith(one) for one in options if one.endswith("=") and one.startswith("--")):
        return True
    if usage.single or word.startswith("--"):
        return False
    if f"{word[:2]}:" in options:  # `-n20`
        return True
    return all(f"-{letter}" in options for letter in word[1:])


def _is_listed(args: Sequence[str], entries: Sequence[tuple[str, ...]]) -> bool:
    """Return True if the arguments are a sequence of listed entries. In an entry, `*` matches no option."""
    if not args:
        return () in entries
    ends = {0}
    for at in range(len(args)):
        if at in ends:
            fitting = (one for one in entries if one and len(one) <= len(args) - at)
            ends |= {at + len(one) for one in fitting if all(map(_is_word, one, args[at:]))}
    return len(args) in ends


def _is_word(pattern: str, word: str) -> bool:
    return word == pattern or (not word.startswith("-") and fnmatchcase(word, pattern))
