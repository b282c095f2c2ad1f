"""`setup message`: the bot writes to its owners, which shows that it reaches them.

The message is sent by the gateway, like any other. If none runs, the person can have one started here, in the
foreground.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import anyio

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.adapter_loading import load_part
from gateway.adapters.shared.folder import PlatformCheck, load_settings_schema
from gateway.cli import restart
from gateway.cli.output import apply_style, print_note, print_text, show_progress
from gateway.cli.setup.question import ask_yes, can_ask
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.config.platform_settings import PlatformAccount
from gateway.control.client import call_gateway
from gateway.daemon.platforms import list_enabled
from gateway.errors import AdapterError, ConfigError, GatewayError, NotRunning
from gateway.logs.text import to_one_line

TEXT = "Hello, this is hermes-gateway. You own me: write to me here, and I answer. /help says what I can do."
AGAIN = "hermes-gateway setup message"
START_PATIENCE = 60.0  # seconds for a gateway that was started here to answer
SEND_PATIENCE = 30.0  # seconds for the network to connect, and to take the text
WATCH_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class ServedBot:
    """An enabled bot, and the ids of its owners there."""

    account: PlatformAccount
    owners: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.account.name


def add_message_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="NETWORK", default="", help="by its bots alone, or by NETWORK:NAME")


def run(args: argparse.Namespace, home: Home) -> int:
    """Have each bot write to its owners; return 0 if all did.

    Raises:
        ConfigError: no bot was found.
        NotRunning: no gateway runs, and the person did not want one started here.
    """
    bots = [bot for bot in list_bots(load(home)) if args.to in ("", bot.name, bot.account.platform)]
    if not bots:
        what = f"{args.to} is not connected" if args.to else "no chat network is connected"
        raise ConfigError(f"{what}\nconnect one with: hermes-gateway setup NETWORK")
    try:
        served = list_served(home)
    except NotRunning:
        if not can_ask() or not ask_yes("Start the gateway here, until Ctrl-C, and have the bot write?", default=True):
            raise
        return run_gateway(bots, home)
    if any(bot.name not in served for bot in bots) and can_ask():
        print_text("The gateway that runs was started before this, and serves not all of it.")
        if ask_yes("Restart it, and have the bot write?", default=True):
            restart.run(args, home)
            served = list_served(home)
    return write_to_owners(bots, served, home)


def load(home: Home) -> Configuration:
    return load_configuration(load_settings_schema(), home, get_process_environment())


def list_bots(configuration: Configuration) -> list[ServedBot]:
    """List the enabled bots that have all required settings."""
    owners = configuration.settings.access.owners
    return [
        ServedBot(one, tuple(getattr(owners, one.platform))) for one in list_enabled(configuration.settings.platforms)
    ]


def list_served(home: Home) -> set[str]:
    """Return the bots of the running gateway. Raises NotRunning if none runs."""
    return {one["name"] for one in call_gateway(home.socket, "platform.list", SEND_PATIENCE)["platforms"]}


def run_gateway(bots: list[ServedBot], home: Home) -> int:
    """Run the gateway in the foreground of this terminal, until it ends; it handles Ctrl-C."""
    command = [sys.executable, "-P", "-m", "gateway.cli", "--home", str(home.root), "run"]
    gateway = subprocess.Popen(command)
    with suppress(KeyboardInterrupt):
        if (served := wait_until_served(gateway, home)) is not None:
            write_to_owners(bots, served, home)
    while True:
        with suppress(KeyboardInterrupt):
            return gateway.wait()


def wait_until_served(gateway: "subprocess.Popen[bytes]", home: Home) -> set[str] | None:
    """Return the served bots once the gateway answers; None: it has ended or does not answer, and has said why."""
    limit = time.monotonic() + START_PATIENCE
    while gateway.poll() is None and time.monotonic() < limit:
        with suppress(NotRunning):
            return list_served(home)
        time.sleep(WATCH_PAUSE)
    return None


def write_to_owners(bots: list[ServedBot], served: set[str], home: Home) -> int:
    """Print the outcome of each message; return 1 if an owner got none."""
    faults = [fault for bot in bots for fault in list_faults(bot, served, home)]
    for fault in faults:
        print_note(fault)
    return int(bool(faults))


def list_faults(bot: ServedBot, served: set[str], home: Home) -> Iterator[str]:
    if bot.name not in served:
        yield (f"{bot.name}: the gateway that runs does not serve it yet\nhermes-gateway restart, and then: {AGAIN}")
        return
    if not bot.owners:
        yield (
            f"{bot.name}: the bot knows nobody yet who owns it: {describe_link(bot, home)}\n"
            "it answers with a code, and this lets you in: hermes-gateway pairing approve CODE --as owner"
        )
    for owner in bot.owners:
        try:
            with show_progress(f"{bot.name}: writing to {owner}"):
                asked = {"to": f"{bot.name}:{owner}", "text": TEXT, "wait": SEND_PATIENCE}
                sent = call_gateway(home.socket, "chat.send", SEND_PATIENCE * 2, **asked)
        except NotRunning:
            raise
        except GatewayError as error:
            yield f"{bot.name}: {error}\nsome networks let no bot begin: {describe_link(bot, home)}, and then: {AGAIN}"
            continue
        if sent["state"] == "owed":
            yield f"{bot.name}: not sent yet; it goes out as soon as the network takes it: hermes-gateway platform list"
        else:
            print_text(f"{apply_style('ok', 'green')}  {bot.name}: the bot has written to {to_one_line(owner)}")


def describe_link(bot: ServedBot, home: Home) -> str:
    """Describe how a person reaches the bot."""
    check: PlatformCheck = load_part(list_places(home, all_packages=True)[bot.account.platform], "check")
    link = ""
    with suppress(AdapterError):
        link = anyio.run(check.check, bot.account.settings).link
    return f"write to it at {to_one_line(link)}" if link else "write to it"
