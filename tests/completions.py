"""The output of `hermes-gateway completions`: a file for each shell, made from the parsers of all commands.

Each shell is told, for a command or a verb of one, which words may follow: verbs, options, and the choices that an
option or an argument has. Where it knows no word, the shell completes names of files.
"""

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.cli import build_command_parser
from gateway.cli.program import COMMANDS


@dataclass(frozen=True, slots=True)
class Place:
    """The words that may follow the words `path`, with their purpose, and the choices behind an option."""

    path: str
    verbs: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    choices: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def words(self) -> dict[str, str]:
        return {**self.verbs, **self.options}


OVERVIEW = {
    "--home": "the home to work on",
    "--version": "print the version",
    "--help": "print what there is",
}


def places() -> list[Place]:
    """Everything, the program itself first."""
    found = [Place("", {name: does for name, (_, does) in COMMANDS.items()}, OVERVIEW)]
    for name, (module, _) in COMMANDS.items():
        found += below(name, build_command_parser(name, importlib.import_module(module)))
    return found


def below(path: str, parser: argparse.ArgumentParser) -> Iterator[Place]:
    """A command and its verbs."""
    place, inner = Place(path), list[tuple[str, argparse.ArgumentParser]]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            place.verbs.update(said)
            inner += [(f"{path} {name}", action.choices[name]) for name in said]
        elif action.help != argparse.SUPPRESS:
            note(action, place)
    yield place
    for name, verb in inner:
        yield from below(name, verb)


def note(action: argparse.Action, place: Place) -> None:
    does = (action.help or "") % vars(action)
    choices = tuple(map(str, action.choices or ()))
    if not action.option_strings:
        place.verbs.update(dict.fromkeys(choices, does))
        return
    place.options[action.option_strings[-1]] = does
    for option in action.option_strings if choices else ():
        place.choices[option] = choices


BASH = """\
# Completion of hermes-gateway for bash. `./x reference` writes it.
_hermes_gateway() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} place="" words="" at
    for ((at = 1; at < COMP_CWORD; at++)); do
        case "$place ${{COMP_WORDS[at]}}" in
            {known}) place="$place ${{COMP_WORDS[at]}}" ;;
        esac
    done
    case "$place $before" in
{choices}
        *)
            case $place in
{words}
            esac
            ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _hermes_gateway hermes-gateway
"""
ZSH = """\
#compdef hermes-gateway
# Completion of hermes-gateway for zsh. `./x reference` writes it.
_hermes_gateway() {{
    local place="" word
    local -a found
    for word in ${{words[2,CURRENT-1]}}; do
        case "$place $word" in
            {known}) place="$place $word" ;;
        esac
    done
    case "$place ${{words[CURRENT-1]}}" in
{choices}
        *)
            case $place in
{words}
            esac
            ;;
    esac
    _describe hermes-gateway found || _files
}}
_hermes_gateway "$@"
"""
FISH = """\
# Completion of hermes-gateway for fish. `./x reference` writes it.
function __hermes_gateway_at
    set -l place ""
    for word in (commandline -opc)[2..]
        if contains -- "$place $word" {known}
            set place "$place $word"
        end
    end
    test "$place" = "$argv[1]"
end
{lines}
"""


def bash() -> Iterator[str]:
    found = places()
    choices = [
        f'        {quoted(option_at(one, option))}) words="{" ".join(allowed)}" ;;'
        for one in found
        for option, allowed in one.choices.items()
    ]
    words = [f'                {quoted(at(one))}) words="{" ".join(one.words)}" ;;' for one in found if one.words]
    yield BASH.format(known=known(found, " | "), choices="\n".join(choices), words="\n".join(words))


def zsh() -> Iterator[str]:
    found = places()
    choices = [
        f"        {quoted(option_at(one, option))}) found=({' '.join(allowed)}) ;;"
        for one in found
        for option, allowed in one.choices.items()
    ]
    words = [
        f"                {quoted(at(one))})\n"
        f"                    found=(\n{described(one)}\n                    )\n                    ;;"
        for one in found
        if one.words
    ]
    yield ZSH.format(known=known(found, " | "), choices="\n".join(choices), words="\n".join(words))


def described(place: Place) -> str:
    said = (f"{word}:{short(does)}" for word, does in place.words.items())
    return "\n".join(f"                        {quoted(line)}" for line in said)


def fish() -> Iterator[str]:
    found = places()
    lines = []
    for one in found:
        start = f"complete -c hermes-gateway -n {quoted(f'__hermes_gateway_at {quoted_fish(at(one))}')}"
        lines += [f"{start} -f -a {word} -d {quoted_fish(short(does))}" for word, does in one.verbs.items()]
        for option, does in one.options.items():
            kind = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            allowed = f" -x -a {quoted_fish(' '.join(one.choices[option]))}" if option in one.choices else ""
            lines.append(f"{start} {kind}{allowed} -d {quoted_fish(short(does))}")
    yield FISH.format(known=known(found, " "), lines="\n".join(lines))


def at(place: Place) -> str:
    """The words before, each with a space before it."""
    return f" {place.path}" if place.path else ""


def option_at(place: Place, option: str) -> str:
    return f"{at(place)} {option}"


def known(found: list[Place], between: str) -> str:
    return between.join(quoted(at(one)) for one in found if one.path)


def short(does: str) -> str:
    return does.partition(";")[0].partition(" (")[0]


def quoted(text: str) -> str:
    """For bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def quoted_fish(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
