"""`hermes-gateway connect` and `disconnect`: an agent on this machine asks the gateway before it runs a tool."""

import argparse
import difflib

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.output import ask_person, print_code, print_note, print_text
from gateway.config.desk_settings import DeskSettings
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import load_configuration
from gateway.desk.programs import PROGRAMS, Program
from gateway.desk.script import make_script, read_gateway
from gateway.desk.settings_file import RemoteGateway, SettingsFile, connect, find_file, write_file
from gateway.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_program(parser)
    says = "the address of a gateway on another host, which Claude Code then asks over HTTP"
    parser.add_argument("--url", default="", metavar="ADDRESS", help=says)
    says = "a file with its API key, from hermes-gateway keys new NAME --as desk"
    parser.add_argument("--key-file", default="", metavar="FILE", help=says)
    says = "print a script that connects the program on a host without hermes-gateway"
    parser.add_argument("--script", action="store_true", help=says)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that `disconnect` has too."""
    parser.add_argument("program", choices=tuple(PROGRAMS), help="the program whose settings change")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: argparse.Namespace, home: Home) -> None:
    program = PROGRAMS[args.program]
    settings = read_settings(home)
    gateway = read_gateway(args.url, args.key_file) if args.url or args.script else home.desk_socket
    if args.script and isinstance(gateway, RemoteGateway):
        print(make_script(program, gateway, settings), end="")
        return
    if isinstance(gateway, RemoteGateway) and program.name != "claude":
        raise ConfigError(f"{program.title} asks by a command alone\nadd --script, and run what it prints over there")
    file = connect(program, find_file(program, get_process_environment()), gateway, settings)
    for other in file.others:
        print_note(f"another gateway is connected there, and would ask no more: {other}")
    if change(program, file, "connected", args.yes) and program.note:
        print_note(program.note)


def read_settings(home: Home) -> DeskSettings:
    return load_configuration(load_settings_schema(), home, get_process_environment()).settings.desk


def change(program: Program, file: SettingsFile, done: str, is_sure: bool) -> bool:
    """Show what changes in the program's settings, and write it if the person agrees; return True then."""
    if file.after == (file.before or ""):
        print_text(f"{program.title} is {done} already: {file.path}")
        return False
    show_change(file)
    if not ask_person(f"Write {file.path}?", is_sure):
        return False
    write_file(file)
    print_text(f"{program.title} is {done}; sessions that run already may have to be started again")
    return True


def show_change(file: SettingsFile) -> None:
    before, after = (file.before or "").splitlines(), file.after.splitlines()
    for line in difflib.unified_diff(before, after, str(file.path), "as it would be", lineterm="", n=2):
        print_code(line)
