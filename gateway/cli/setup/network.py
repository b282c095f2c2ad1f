"""`setup telegram` and other networks: connect a chat network step by step, or by flags without a terminal.

Tokens are tested at the network as soon as the person enters them, and the person corrects invalid ones.
"""

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from msgspec.structs import replace

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.adapter_loading import load_part
from gateway.adapters.shared.folder import PlatformCheck, SetupQuestion, load_settings_schema, load_setup
from gateway.adapters.shared.network_routes import network_url_of
from gateway.agent.toolbox.shell_sandbox import ShellSandbox
from gateway.cli import CommandParser
from gateway.cli.output import apply_style, print_lines, print_note, print_text
from gateway.cli.setup.question import ask_line, ask_yes, can_ask, check_value, find_fault
from gateway.cli.setup.running import apply_changes
from gateway.config.change_writer import check_files, write_change
from gateway.config.changes import prepare_variables
from gateway.config.environment import read_environment
from gateway.config.hermes_model import find_hermes_model
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.config.platform_settings import ACCOUNT_NAME, PlatformPlace, PlatformSettings, list_accounts
from gateway.config.providers import DEMO
from gateway.config.schema import SettingsSchema, ending_of
from gateway.config.settings import SandboxSettings
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.commands import CommandTable
from gateway.errors import AdapterError, ConfigError
from gateway.logs.text import to_one_line
from gateway.messages.message import name_of_account
from gateway.worker.sandbox import find_support

SHELL_CHOICES = ("ask", "sandboxed", "allow", "off")
HELLO = "Hello. This chat is the home channel of hermes-gateway now: reports and alerts come here."


class NetworkParser(CommandParser):
    """The options of one network; another author's code is loaded only when its network is named."""

    def __init__(self, network: str, place: PlatformPlace, **given: Any) -> None:
        super().__init__(**given)
        self._network = network
        self._place = place
        if not place.origin:
            self._add_options()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._place.origin:
            self._add_options()
        return super().parse_known_args(args, namespace)

    def _add_options(self) -> None:
        setup = load_setup(self._place)
        self.description = setup.summary
        for ask in setup.questions:
            self.add_argument(ask.flag, metavar="VALUE", help=f"{ask.what}; ${ask.variable}")
        self.add_argument(
            "--account", metavar="NAME", default="", help="add a further bot of this network, under this name"
        )
        self.add_argument(
            "--owner", metavar="ID", default="", help="your own user id there; the owner may do everything"
        )
        self.add_argument(
            "--admins", metavar="IDS", default="", help="user ids of people who may also approve and use every command"
        )
        self.add_argument(
            "--shell",
            choices=SHELL_CHOICES,
            default="",
            help="when the agent's shell asks for approval; see tools.shell",
        )
        self.add_argument("--no-hello", action="store_true", help="send no greeting to the home channel")
        self.add_argument("--no-check", action="store_true", help="write the tokens without a test")
        if setup.manifest:
            manifest_help = f"print the app's manifest, for {self._network.title()}, and end"
            self.add_argument("--manifest", action="store_true", help=manifest_help)


def run(args: argparse.Namespace, home: Home) -> None:
    if configuration := connect(args, home):
        print_next_step(args.network, home, configuration)


def connect(args: argparse.Namespace, home: Home) -> Configuration | None:
    """Connect the network, and return the configuration with it; None if only its manifest was requested.

    Raises:
        AdapterError: the network does not accept the input, or cannot be used here.
        ConfigError: the input is not valid.
    """
    if args.account and not ACCOUNT_NAME.fullmatch(args.account):
        raise ConfigError(f"{args.account[:60]!r} is not a valid bot name\nuse small letters and digits, as in `work`")
    place = list_places(home, all_packages=True)[args.network]
    switched_on = make_switch(args) if place.origin else {}
    environ = {**get_process_environment(), **switched_on}
    load = partial(load_configuration, load_settings_schema(), home)
    # A bot that is already enabled may lack values: the setup asks for them now.
    read = partial(load, chosen={} if args.account else {f"platforms.{args.network}.enabled": "false"})
    before = read(environ)
    if why := getattr(before.settings.platforms, args.network).why_unusable:
        raise AdapterError(f"{args.network} cannot be used: {why}")
    setup = load_setup(place)
    url = find_network_url(before, args)
    if setup.manifest and args.manifest:
        print(json.dumps(setup.manifest(CommandTable(BUILT_IN), url), indent=2))
        return None
    questions = [one for one in setup.questions if one.is_called in (None, bool(url))]
    questions = make_account_questions(questions, args, before.schema)
    values = add_account(before, args)
    if can_ask():
        print_lines(setup.before, "")
    check: PlatformCheck = load_part(place, "check")
    # Answers before a token, such as the address of a server, are needed to test it.
    last = max((number for number, one in enumerate(questions, 1) if one.is_token), default=0)

    def try_tokens(given: Mapping[str, str]) -> None:
        check_tokens(check, find_settings(load({**environ, **values, **given}), args))

    values |= collect_tokens(questions[:last], args, before, try_tokens)
    values |= collect_answers(questions[last:], args, before.environ)
    values |= ask_owner(args, read({**environ, **values}))
    values |= ask_admins(args, read({**environ, **values}))
    values |= ask_shell(args, read(environ))
    values |= ask_model(read(environ), home)
    values |= switched_on
    configuration = load({**environ, **values})
    settings = find_settings(configuration, args)
    kept = read_environment({}, home.env).environ
    changed = {name: value for name, value in values.items() if kept.get(name) != value.replace(" ", "")}
    write_variables(home, changed)
    if settings.home_channel and not args.no_hello and not args.no_check:
        send_hello(check, settings)
    return configuration


def make_switch(args: argparse.Namespace) -> dict[str, str]:
    """Return the variable that enables a bot, for code that is loaded only with it."""
    ending = ending_of(args.account) if args.account else ""
    return {f"GATEWAY_PLATFORMS_{args.network.upper()}_ENABLED{ending}": "true"}


def find_settings(configuration: Configuration, args: argparse.Namespace) -> PlatformSettings:
    """Return the settings of the bot that is set up; it may be new."""
    known = {(one.platform, one.account): one.settings for one in list_accounts(configuration.settings.platforms)}
    return known.get((args.network, args.account)) or configuration.schema.platforms[args.network].settings()


def add_account(configuration: Configuration, args: argparse.Namespace) -> dict[str, str]:
    """Return the variable that names the further bots, with this one added; empty if the file names it."""
    known = [one for one in list_accounts(configuration.settings.platforms) if one.platform == args.network]
    if not args.account or any(one.account == args.account for one in known):
        return {}
    variable = configuration.schema.account_lists[args.network]
    named = configuration.environ.get(variable, "").replace(",", " ").split()
    return {variable: ",".join([*named, args.account])}


def make_account_questions(
    questions: Sequence[SetupQuestion], args: argparse.Namespace, schema: SettingsSchema
) -> list[SetupQuestion]:
    """Return the questions with the variables of this bot; access is set for the whole network."""
    if not args.account:
        return [*questions]
    own = {name.variable for name in schema.list_account_variables(args.network, args.account)}
    ending = ending_of(args.account)
    return [
        replace(ask, variable=f"{ask.variable}{ending}") if f"{ask.variable}{ending}" in own else ask
        for ask in questions
    ]


def find_network_url(configuration: Configuration, args: argparse.Namespace) -> str:
    """Return the URL for the network's calls; "": it does not call us."""
    name, url = name_of_account(args.network, args.account), configuration.settings.web.url
    return network_url_of(url, name) if find_settings(configuration, args).is_called else ""


def collect_tokens(
    questions: Sequence[SetupQuestion],
    args: argparse.Namespace,
    before: Configuration,
    check: Callable[[Mapping[str, str]], None],
) -> dict[str, str]:
    """Collect valid tokens; the person corrects invalid ones, and sees the network's reason.

    Raises:
        AdapterError: they are not valid, and no terminal is there to ask for others.
    """
    values = collect_answers(questions, args, before.environ)
    while not args.no_check:
        try:
            check(values)
            break
        except AdapterError as error:
            if not can_ask():
                raise
            print_note(f"{error}\nCtrl-C leaves it as it was")
            values = collect_answers(questions, argparse.Namespace(), values)  # Enter keeps one that was right
    return values


def collect_answers(
    questions: Sequence[SetupQuestion], args: argparse.Namespace, known: Mapping[str, str]
) -> dict[str, str]:
    """Collect the values from flags, from the environment, or from the person; an optional one may stay empty.

    Raises:
        ConfigError: a required one is missing without a terminal, or one has an invalid form.
    """
    values: dict[str, str] = {}
    for ask in questions:
        value = getattr(args, ask.flag.removeprefix("--").replace("-", "_"), "") or ""
        if not value and can_ask():
            value = prompt_for(ask, known.get(ask.variable, ""))
        value = (value or known.get(ask.variable, "")).strip()
        if not value and ask.is_token:
            way = f"give it with {ask.flag} or the variable {ask.variable}; {ask.where}"
            raise ConfigError(f"{ask.what} is missing, and nobody can be asked\n{way}")
        if value and (wrong := check_value(value, ask.pattern)):
            raise ConfigError(f"{ask.what}: what was given {wrong}\n{ask.where}")
        if value:
            values[ask.variable] = value
    return values


def ask_owner(args: argparse.Namespace, configuration: Configuration) -> dict[str, str]:
    """Ask which of the allowed people is the one at this terminal; `access.owners` names that one from then on.

    Raises:
        ConfigError: the input is not an id.
    """
    network, access = args.network, configuration.settings.access
    pattern = configuration.schema.platforms[network].user_id
    owner, users = args.owner.strip(), getattr(access.users, network)
    if not owner and users and can_ask() and not getattr(access.owners, network):
        owner = choose_user(users)
    if owner and (wrong := check_value(owner, pattern)):
        raise ConfigError(
            f"your own id on {network}: what was given {wrong}\nit is the number or word that never changes"
        )
    return {find_variable(configuration, "access", "owners", network): owner} if owner else {}


def ask_admins(args: argparse.Namespace, configuration: Configuration) -> dict[str, str]:
    """Ask who else approves the agent's actions for other people; `access.admins` names them.

    Raises:
        ConfigError: the input is not a list of ids.
    """
    network, access = args.network, configuration.settings.access
    one = configuration.schema.platforms[network].user_id
    pattern = rf"{one}(,\s*{one})*"
    admins = args.admins.strip()
    others = [user for user in getattr(access.users, network) if user not in getattr(access.owners, network)]
    if not admins and others and can_ask() and not getattr(access.admins, network):
        admins = choose_admins(others, pattern)
    if admins and (wrong := check_value(admins, pattern)):
        raise ConfigError(f"who approves on {network}, as ids: what was given {wrong}")
    return {find_variable(configuration, "access", "admins", network): admins} if admins else {}


def find_variable(configuration: Configuration, *path: str) -> str:
    """Find the variable that sets this."""
    return next(name.variable for name in configuration.schema.own_variables if name.path == path)


def ask_model(configuration: Configuration, home: Home) -> dict[str, str]:
    """Return the model of Hermes's own configuration, if none is chosen here and the person wants it."""
    found = find_hermes_model(home.hermes_config) if configuration.settings.model.provider == DEMO else None
    if found is None or not can_ask():
        return {}
    said = f"Hermes's configuration names the model {found.name} ({found.provider}). Use it here?"
    return dict(found.variables) if ask_yes(said, default=True) else {}


def choose_user(users: Sequence[str]) -> str:
    """Return the id of the person who answers; "": none of these."""
    print_lines("The owner of this gateway may do everything, and approves tools that act for other people.", "")
    if len(users) == 1:
        return users[0] if ask_yes(f"{users[0]}: is this you?", default=True) else ""
    what = f"which of {', '.join(users)} is you? (Enter: none)"
    return ask_line(what, lambda text: "" if not text or text in users else "it is none of these", choices=users)


def choose_admins(users: Sequence[str], pattern: str) -> str:
    """Ask for some of these ids, separated by commas; "": none."""
    print_lines("Tool calls for other people wait for approval: by the owner, or by the people whom you name now.", "")
    if len(users) == 1:
        return users[0] if ask_yes(f"{users[0]}: may they approve too?", default=False) else ""

    def find_stranger(text: str) -> str:
        strangers = [one for one in re.split(r",\s*", text) if one not in users] if text else []
        wrong = f"{', '.join(strangers)} may not speak" if strangers else ""
        return find_fault(text, pattern, is_needed=False) or wrong

    what = f"who of {', '.join(users)} approves too, several with commas? (Enter: none)"
    return ask_line(what, find_stranger, choices=users)


def ask_shell(args: argparse.Namespace, configuration: Configuration) -> dict[str, str]:
    """Ask if the shell's commands may run without a question in the sandbox, if a complete one is available."""
    choice = args.shell
    is_free = "tools.shell" not in configuration.origins and ShellSandbox(SandboxSettings(), find_support()).is_held
    if not choice and is_free and can_ask():
        what = "The agent's shell can ask you before each command, or run yours in a sandbox without network"
        print_lines(f"{what}, and ask for the rest alone.", "")
        choice = "sandboxed" if ask_yes("In the sandbox?", default=False) else ""
    return {find_variable(configuration, "tools", "shell"): choice} if choice else {}


def prompt_for(ask: SetupQuestion, now: str) -> str:
    """Ask the person for a value; Enter keeps the present one."""
    keeps = " (Enter keeps the present one)" if now else "" if ask.is_token else " (Enter: none)"
    find = partial(find_fault, pattern=ask.pattern, is_needed=ask.is_token and not now, example=ask.example)
    return ask_line(f"{ask.what}, {ask.where}{keeps}", find, is_secret=ask.is_token)


def check_tokens(check: PlatformCheck, settings: Any) -> None:
    """Try the tokens.

    Raises:
        AdapterError: the network does not take them.
    """
    try:
        checked = anyio.run(check.check, settings)
    except AdapterError as error:
        raise AdapterError(f"{error}\nnothing was written; --no-check writes without asking there") from error
    print_text(f"{apply_style('ok', 'green')}  {to_one_line(checked.who)}")
    if checked.link:
        print_text(f"    {to_one_line(checked.link)}")
    for what in checked.todo:
        print_text(f"{apply_style('->', 'yellow')}  {to_one_line(what)}")


def write_variables(home: Home, changed: Mapping[str, str]) -> None:
    if not changed:
        print_text(f"{home.env} has all of it already")
        return
    change = prepare_variables(home, {name: value.replace(" ", "") for name, value in changed.items()})
    check_files(change)
    if home.env.exists():
        home.env.chmod(0o600)  # it gets secrets
    write_change(home, change)
    print_lines(f"written to {home.env}: {', '.join(changed)}", "")


def send_hello(check: PlatformCheck, settings: Any) -> None:
    """Greet the home channel to show that it works; the setup is kept in any case."""
    try:
        anyio.run(check.say, settings, settings.home_channel, HELLO)
    except AdapterError as error:
        print_note(f"the home channel {settings.home_channel} could not be greeted: {error}")
    else:
        print(f"{apply_style('ok', 'green')}  said hello in the home channel")


def print_next_step(network: str, home: Home, configuration: Configuration) -> None:
    """Have the running gateway use it, and print the one step that remains."""
    is_running = apply_changes(home)
    print_text(f"next: hermes-gateway {'setup message' if is_running else 'run, and write to the bot'}")
    access = configuration.settings.access
    if not getattr(access.users, network) and not getattr(access.owners, network):
        print_lines(
            "when you write to it, you get a code: hermes-gateway pairing approve CODE --as owner lets you in", ""
        )
        print_lines("other people who write to it get one too; without --as they become users", "")
