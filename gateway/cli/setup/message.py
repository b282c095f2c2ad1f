"""`setup message`: the model's first words, in this terminal and in the chats of the bots' owners.

The gateway sends them, like any other message. On a network that lets no bot begin, the person writes to the bot first.
"""

import argparse
import time
from contextlib import suppress
from functools import partial
from typing import Any

import anyio

from gateway.adapters.shared.adapter_finder import list_places
from gateway.adapters.shared.adapter_loading import load_part
from gateway.adapters.shared.folder import PlatformCheck, PlatformReport, load_settings_schema
from gateway.cli.chat_screen import render_answer
from gateway.cli.output import apply_style, print_note, print_text, show_progress
from gateway.cli.setup.question import ask_line, can_ask
from gateway.cli.setup.running import use_gateway
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.config.platform_settings import PlatformAccount
from gateway.control.client import ControlClient, call_gateway
from gateway.daemon.platforms import list_enabled
from gateway.errors import AdapterError, ConfigError, GatewayError, NotRunning
from gateway.logs.text import to_one_line

REQUEST = "I have just set you up. Say hello to me, in one or two sentences and without a tool."
SESSION = "setup"
LONGEST_WORDS = 2000  # in a chat, whatever the model says
FALLBACK = "Hello, this is hermes-gateway."
TEXT = "You own me: write to me here, and I answer. /help says what I can do."
AGAIN = "hermes-gateway setup message"
SEND_PATIENCE = 30.0  # seconds for the network to connect, and to take the text
FIRST_PATIENCE = 120.0  # seconds for the person to write to the bot
HEARD = ("message:received", "command:*")


def add_message_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", metavar="NETWORK", default="", help="only with the bots of NETWORK, or with the bot NETWORK:NAME"
    )


def run(args: argparse.Namespace, home: Home) -> int:
    """Have the model speak, and each bot write to its owners; return 0 if all did.

    Raises:
        ConfigError: no bot was found.
        NotRunning: no gateway runs, and the person did not want one started here.
    """
    bots = [bot for bot in list_bots(load(home)) if args.to in ("", bot.name, bot.platform)]
    if not bots:
        what = f"{args.to} is not connected" if args.to else "no chat network is connected"
        raise ConfigError(f"{what}\nconnect one with: hermes-gateway setup NETWORK")
    return use_gateway(home, partial(write_to_owners, bots, home))


def load(home: Home) -> Configuration:
    return load_configuration(load_settings_schema(), home, get_process_environment())


def list_bots(configuration: Configuration) -> list[PlatformAccount]:
    """List the enabled bots that have all required settings."""
    return list_enabled(configuration.settings.platforms)


def write_to_owners(bots: list[PlatformAccount], home: Home) -> int:
    """Have the model say its first words here, and pass them on; return 1 if they did not reach an owner."""
    words = ask_first_words(home)
    served = {one["name"] for one in call_gateway(home.socket, "platform.list", SEND_PATIENCE)["platforms"]}
    faults = [fault for bot in bots for fault in write_by_bot(bot, served, home, words)]
    for fault in faults:
        print_note(fault)
    return int(bool(faults) or not words)


def ask_first_words(home: Home) -> str:
    """Print the model's own first words, and return them; "": it has failed, and the reason was printed."""
    request = {"text": REQUEST, "session": SESSION, "shown": [], "is_single": True}
    with show_progress("the model to say its first words"):
        answer: dict[str, Any] = call_gateway(home.socket, "chat.say", None, **request)
    if answer["status"] != "ok":
        print_note(f"the model has not answered: {to_one_line(answer['reply'] or answer['status'], 500)}")
        return ""
    print(render_answer(answer["reply"]))
    return str(answer["reply"])


def write_by_bot(bot: PlatformAccount, served: set[str], home: Home, words: str) -> list[str]:
    """Write to the bot's owners; return the faults."""
    if bot.name not in served:
        return [f"{bot.name}: the gateway that runs does not serve it yet\nhermes-gateway restart, and then: {AGAIN}"]
    text = f"{words[:LONGEST_WORDS] or FALLBACK}\n\n{TEXT}"
    owners = getattr(load(home).settings.access.owners, bot.platform) or find_first_owner(bot, home)
    if not owners:
        lets_in = "it answers with a code, and this lets you in: hermes-gateway pairing approve CODE --as owner"
        return [f"{bot.name}: the bot has no owner yet: {describe_link(bot, home)}\n{lets_in}"]
    return [fault for owner in owners if (fault := write_to_owner(bot, owner, home, text))]


def find_first_owner(bot: PlatformAccount, home: Home) -> tuple[str, ...]:
    """Pair the person at this terminal, by the code that the bot sends them; empty: they do so later."""
    if not can_ask():
        return ()
    print_text(f"{bot.name}: {describe_link(bot, home)}; it answers with a code")
    while code := ask_line("the code (Enter: later)"):
        try:
            guest = call_gateway(home.socket, "pairing.approve", SEND_PATIENCE, code=code, role="owner")
            return (str(guest["user_id"]),) if guest["platform"] == bot.platform else ()
        except NotRunning:
            raise
        except GatewayError as error:
            print_note(str(error))
    return ()


def write_to_owner(bot: PlatformAccount, owner: str, home: Home, text: str) -> str:
    """Write to an owner, if necessary after they have written to the bot; return the fault, or ""."""
    with ControlClient(home.socket, timeout=FIRST_PATIENCE) as tail:
        tail.start("events.tail", {"names": [*HEARD]})
        try:
            return send_words(bot, owner, home, text)
        except NotRunning:
            raise
        except GatewayError as error:
            print_note(f"{bot.name}: {to_one_line(str(error), 500)}")
        hint = describe_link(bot, home)
        if not can_ask():
            return f"{bot.name}: some networks do not let a bot write first: {hint}, and then: {AGAIN}"
        print_text(f"{bot.name}: {hint}")
        with show_progress(f"waiting {FIRST_PATIENCE:.0f} s for you to write"):
            has_written = wait_for_person(tail, bot, owner)
        if not has_written:
            return f"{bot.name}: nothing came from {to_one_line(owner)}; when you have written there: {AGAIN}"
    try:
        return send_words(bot, owner, home, text)
    except NotRunning:
        raise
    except GatewayError as error:
        return f"{bot.name}: {error}"


def send_words(bot: PlatformAccount, owner: str, home: Home, text: str) -> str:
    """Have the bot write; return the fault, or "". Raises GatewayError if the network refuses it."""
    with show_progress(f"{bot.name}: writing to {owner}"):
        asked = {"to": f"{bot.name}:{owner}", "text": text, "wait": SEND_PATIENCE}
        sent = call_gateway(home.socket, "chat.send", SEND_PATIENCE * 2, **asked)
    if sent["state"] == "owed":
        return f"{bot.name}: not sent yet; it goes out as soon as the network takes it: hermes-gateway platform list"
    print_text(f"{apply_style('ok', 'green')}  {bot.name}: the bot has written to {to_one_line(owner)}")
    return ""


def wait_for_person(tail: ControlClient, bot: PlatformAccount, owner: str) -> bool:
    """Wait until the person has written to the bot; False: they did not in time."""
    limit = time.monotonic() + FIRST_PATIENCE
    wanted = {"platform": bot.platform, "account": bot.account, "user_id": owner}
    with suppress(TimeoutError):
        for message in tail.messages():
            fields = message.get("params", {}).get("fields", {})
            if all(fields.get(name) == value for name, value in wanted.items()):
                return True
            if time.monotonic() > limit:
                break
    return False


def describe_link(bot: PlatformAccount, home: Home) -> str:
    """Describe how a person reaches the bot."""
    check: PlatformCheck = load_part(list_places(home, all_packages=True)[bot.platform], "check")
    report = PlatformReport("the bot")
    with suppress(AdapterError):
        report = anyio.run(check.check, bot.settings)
    link = f" at {to_one_line(report.link)}" if report.link else ""
    return f"write /start to {to_one_line(report.who.partition(' (')[0])}{link}"
