"""The frame of the command line: one table of commands, each imported on demand, and one place for all errors.

A command is a module with two functions: `add_arguments(parser)` adds its options to a parser, `run(args, home)` does
its work and returns the exit code, or None for 0. Nothing heavy is imported here, so that `--help` and the short
commands are fast.
"""

import argparse
import difflib
import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from gateway import __version__
from gateway.adapters import ADAPTERS
from gateway.cli.layout import HelpLayout, fold_lines
from gateway.cli.program import COMMANDS, PROGRAM, apply_program_name, close_output, get_program_name, load_command
from gateway.config.home import Home, find_home, get_process_environment
from gateway.errors import ExitCode, GatewayError
from gateway.logs.text import to_one_line

BROKEN_PIPE = 141  # the shell's code for a program that SIGPIPE ended
MISSING_SUBCOMMAND = re.compile(r"are required: (VERB|NETWORK)$")

DEFAULT_COMMAND = "status"  # the command of `hermes-gateway` alone

# Hermes says `hermes gateway run`; people may keep that habit.
HERMES_PREFIX = "gateway"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return the exit code of the chosen command."""
    umask = os.umask(0o077)  # the files of a command are the user's alone, unless they are made for others
    try:
        code = _run_command(list(sys.argv[1:] if argv is None else argv), umask)
        sys.stdout.flush()
    except GatewayError as error:
        _print_error(str(error))
        code = int(error.exit)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        close_output(sys.stdout)
        code = BROKEN_PIPE
    except OSError as error:
        _print_error(f"{error.strerror or error}: {error.filename or 'this program'}")
        code = ExitCode.FAILED
    return code


def _run_command(argv: list[str], umask: int) -> int:
    options, command, rest = _parse_command_line(argv)
    if options.version:
        print(f"{PROGRAM} {__version__}")
        return ExitCode.OK
    if options.help or (not command and DEFAULT_COMMAND not in COMMANDS):
        print(fold_lines(render_overview(), sys.stdout))
        return ExitCode.OK
    home = find_home(get_process_environment(), options.home or "")
    module = load_command(COMMANDS[command or DEFAULT_COMMAND][0])
    args = build_command_parser(command or DEFAULT_COMMAND, module, home).parse_args(rest)
    args.umask = umask
    try:
        return int(module.run(args, home) or ExitCode.OK)
    except KeyError:
        from gateway.cli.status import describe_other_build  # noqa: PLC0415 - rarely needed

        if not (other := describe_other_build(home)):
            raise
        raise GatewayError(other) from None
    except OSError as error:
        from gateway.cli.disk_room import describe_disk_error  # noqa: PLC0415 - rarely needed

        raise describe_disk_error(error, home) from None


def _parse_command_line(argv: list[str]) -> tuple[argparse.Namespace, str, list[str]]:
    """Split the arguments: the options before the command, the command, and the rest."""
    program = get_program_name()
    parser = CommandParser(prog=program, usage=f"{program} [--home DIR] COMMAND ...", add_help=False)
    parser.add_argument("--home", metavar="DIR")
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-V", "--version", action="store_true")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    rest = options.rest[1:] if options.rest[:1] == [HERMES_PREFIX] else options.rest
    if rest[:1] == ["help"]:
        rest = [*rest[1:2], "--help"] if rest[1:] else []
        options.help |= not rest
    if rest and rest[0] not in COMMANDS:
        parser.error(f"unknown command `{to_one_line(rest[0], 60)}`{_suggest(rest[0], COMMANDS)}")
    return options, rest[0] if rest else "", rest[1:]


def build_command_parser(command: str, module: Any, home: Home | None = None) -> "CommandParser":
    """Build the parser of a command. A home may add its own networks; without one, the parser knows ours."""
    does = COMMANDS[command][1]
    description = f"{does[0].upper()}{does[1:]}."
    parser = CommandParser(prog=f"{get_program_name()} {command}", description=description, home=home)
    module.add_arguments(parser)
    return parser


def render_overview() -> str:
    """Return the text of `--help`."""
    longest = max(map(len, COMMANDS))
    networks = ", ".join(name.title() for name in ADAPTERS)
    commands = "\n".join(f"  {name:{longest}}  {does}" for name, (_, does) in COMMANDS.items())
    return (
        f"usage: {get_program_name()} [--home DIR] COMMAND ...\n\n"
        f"A chat gateway for AI agents: {networks} and the terminal, extended by hooks.\n\n"
        f"commands:\n{commands}\n\n"
        "options:\n"
        "  --home DIR     the home to work on (default: $HERMES_HOME, else ~/.hermes)\n"
        "  -V, --version  print the version\n"
        "  -h, --help     print this; `COMMAND --help` explains a command\n\n"
        "exit codes: 0 done, 1 failed, 2 wrong usage, 3 not running, 4 kept for later, 75 restart wanted, "
        "78 wrong configuration"
    )


class CommandParser(argparse.ArgumentParser):
    """The parser of argparse with our layout, whole option names only, and suggestions for misspelled words."""

    def __init__(self, home: Home | None = None, **given: Any) -> None:
        super().__init__(**{"formatter_class": HelpLayout, "allow_abbrev": False, **given})
        self.home = home
        self._verbs: Collection[str] = ()

    def add_subparsers(self, **given: Any) -> Any:
        added = super().add_subparsers(**given)
        self._verbs = added.choices  # filled in later
        return added

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; the innermost command reports an unknown one, not a command above it.

        A verb may be typed in capitals, as the name of a network is often written.
        """
        if args and args[0].lower() in self._verbs:
            args = [args[0].lower(), *args[1:]]
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            close = difflib.get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, n=1)
            meant = f"; did you mean `{close[0]}`?" if close else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        if self._verbs and MISSING_SUBCOMMAND.search(message):
            self.exit(int(ExitCode.USAGE), self.format_help())  # it names each verb, and what that does
        told = fold_lines(f"{self.prog}: {_add_suggestion(message)}\ntry: {self.prog} --help", sys.stderr)
        self.exit(ExitCode.USAGE, f"{told}\n")


def _add_suggestion(message: str) -> str:
    given, told, choices = message.partition("invalid choice: '")[2].rpartition("' (choose from ")
    if not told:
        return to_one_line(message, 500)
    possible = [choice.strip("' ") for choice in choices.removesuffix(")").split(",")]
    return f"unknown argument `{to_one_line(given, 60)}`{_suggest(given, possible)}"


def _suggest(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word[:60].lower(), list(known), n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; there is: {', '.join(known)}"


def _print_error(message: str) -> None:
    """Print an error: the first line says what is wrong and where, the next ones what to do."""
    first, *further = [to_one_line(line) for line in apply_program_name(message).splitlines()] or ["failed"]
    from gateway.cli.output import fold_for  # noqa: PLC0415 - `--help` needs nothing of it

    text = "\n".join([f"{PROGRAM}: {first}", *(f"  {line}" for line in further)])
    try:
        print(fold_for(sys.stderr, text), file=sys.stderr)
        sys.stderr.flush()
    except OSError:  # its reader is gone, or its disk is full
        close_output(sys.stderr)
