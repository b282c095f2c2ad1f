"""`setup` without a step: one step after the other, from a model to its first words.

Each step writes its own part when it is done, so you can leave any of them, and resume it by its own command.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gateway.adapters.shared.adapter_finder import list_places
from gateway.cli import service
from gateway.cli.hooks import new
from gateway.cli.hooks.options import add_options
from gateway.cli.output import apply_style, print_lines, print_note, print_text
from gateway.cli.service.units import ServiceError
from gateway.cli.setup import message, model, network
from gateway.cli.setup.question import ask_line, ask_yes
from gateway.cli.setup.running import use_gateway
from gateway.config.home import Home
from gateway.config.loading import Configuration
from gateway.config.permissions import prepare_home
from gateway.errors import GatewayError

HELLO = "Enter takes the offered value, Ctrl-C leaves a step as it is. Each step is written at once, and stays."
FIRST_HOOK = "hello"
NO_SEARCH = "to let the agent search the web, name a SearXNG or Brave under `tools.search` in config.yaml"
NO_SERVICE = "start it yourself: hermes-gateway run"


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A step: its subject, its state, and the command for it alone."""

    title: str
    command: str
    describe: Callable[[Configuration], str]
    run: Callable[[], None]


def run(home: Home) -> None:
    prepare_home(home)
    print_lines(HELLO, "")
    steps = list_steps(home)
    for number, step in enumerate(steps, 1):
        title = apply_style(f"{number} of {len(steps)}  {step.title}", "bold")
        print_text(f"\n{title}: {step.describe(message.load(home))}")
        try:
            step.run()
        except (KeyboardInterrupt, EOFError):
            print_text(f"left as it was; to continue later: {step.command}")
        except GatewayError as error:
            print_note(str(error))
            print_text(f"to try it again: {step.command}")
    if message.load(home).settings.tools.search.provider == "off":
        print_text(f"\n{NO_SEARCH}")
    print_text(f"\n{apply_style('that is all', 'bold')}; see: hermes-gateway status, hermes-gateway doctor")


def list_steps(home: Home) -> list[SetupStep]:
    return [
        SetupStep("The model", "hermes-gateway setup model", describe_model, partial(set_model, home)),
        SetupStep("Chat networks", "hermes-gateway setup NETWORK", describe_networks, partial(connect_networks, home)),
        SetupStep(
            "A service",
            "hermes-gateway setup service",
            lambda _known: "whether the gateway starts at boot",
            partial(install_service, home),
        ),
        SetupStep(
            "A first hook",
            "hermes-gateway hooks new NAME",
            lambda _known: "a folder to change as you like",
            partial(make_hook, home),
        ),
        SetupStep("First words", "hermes-gateway setup message", describe_bots, partial(say_first_words, home)),
    ]


def describe_model(known: Configuration) -> str:
    now = known.settings.model
    return f"{now.name or now.provider} answers now"


def describe_networks(known: Configuration) -> str:
    on = [bot.name for bot in message.list_bots(known)]
    return f"{', '.join(on)} connected" if on else "none yet but the terminal and the page"


def describe_bots(known: Configuration) -> str:
    bots = [bot.name for bot in message.list_bots(known)]
    return ", ".join(["the model says hello here", *(f"by {name}" for name in bots)])


def set_model(home: Home) -> None:
    parser = argparse.ArgumentParser()
    model.add_model_arguments(parser)
    model.run(parser.parse_args([]), home)


def connect_networks(home: Home) -> None:
    """Connect one network after the other, until the person names none."""
    places = list_places(home, all_packages=True)
    while name := ask_line(
        f"which one, of {', '.join(places)} (Enter: no more)",
        lambda text: "" if not text or text.lower() in places else "it is none of these",
        choices=[*places],
    ).lower():
        parser = network.NetworkParser(network=name, place=places[name])
        try:
            network.connect(parser.parse_args([], argparse.Namespace(network=name)), home)
        except (KeyboardInterrupt, EOFError):
            print_text(f"left as it was; to continue later: hermes-gateway setup {name}")
            return


def install_service(home: Home) -> None:
    try:
        service.make_service(home).check_presence()
    except ServiceError as error:
        print_text(f"{str(error).partition(chr(10))[0]}: {NO_SERVICE}")
        return
    if ask_yes("Have this machine start the gateway, now and at each boot?", default=False):
        service.run(argparse.Namespace(verb="install", system=False), home)
    else:
        print_text(NO_SERVICE)


def make_hook(home: Home) -> None:
    if not (home.hooks / FIRST_HOOK).exists() and ask_yes(
        f"Write a hook {FIRST_HOOK} that gets each answer?", default=False
    ):
        parser = argparse.ArgumentParser()
        add_options("new", parser)
        new.run(parser.parse_args([FIRST_HOOK]), home)


def say_first_words(home: Home) -> None:
    bots = message.list_bots(message.load(home))
    use_gateway(home, partial(message.write_to_owners, bots, home))
