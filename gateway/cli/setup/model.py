"""`setup model`: the language model that answers. It must answer once before anything is written.

A person at a terminal chooses among the findings: keys in the environment and in `.env`, the model of Hermes's
configuration, servers on this machine.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli.model_probe import MAX_NAMES_SHOWN, ask_model, fetch_model_names, probe_models, show_loading
from gateway.cli.output import apply_style, print_note, print_text
from gateway.cli.setup.network import write_variables
from gateway.cli.setup.question import ask_choice, ask_line, can_ask, check_value, find_fault
from gateway.cli.setup.running import apply_changes
from gateway.config.fields import HTTP_PATTERN, Secret
from gateway.config.hermes_model import find_hermes_model
from gateway.config.home import Home, get_process_environment
from gateway.config.loading import Configuration, load_configuration
from gateway.config.providers import DEMO, ENDPOINTS
from gateway.config.settings import ModelSettings
from gateway.errors import ConfigError
from gateway.logs.text import to_one_line
from gateway.yaml_source.units import format_count

LOCAL_PATIENCE = 2.0  # seconds
OTHER = "any other endpoint that speaks OpenAI's language, by its address"
DEMO_MODEL = "the demo model for now: built in, no key, no network"
FIND_ADDRESS_FAULT = partial(find_fault, pattern=HTTP_PATTERN, is_needed=True)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """An available model; without a name it is still to be chosen."""

    provider: str
    why: str
    name: str = ""
    base_url: str = ""
    key: str = ""

    @property
    def is_found(self) -> bool:
        """True if it needs no further key from the person."""
        return bool(self.key or self.name or not self.key_variable or self.base_url)

    @property
    def key_variable(self) -> str:
        return ENDPOINTS[self.provider].key_variable


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--provider", choices=[*ENDPOINTS], help="the provider; `openai` means any endpoint with OpenAI's API"
    )
    parser.add_argument("--name", metavar="NAME", default="", help="the model's name at the provider")
    parser.add_argument(
        "--base-url",
        metavar="URL",
        default="",
        help="the address of the endpoint, if it is not the provider's usual one",
    )
    parser.add_argument(
        "--key", metavar="VALUE", default="", help="the API key (default: the provider's usual variable)"
    )
    parser.add_argument("--no-check", action="store_true", help="write the settings without a test")


def run(args: argparse.Namespace, home: Home) -> None:
    """Set up the model. Raises ConfigError if the input is not usable, and no terminal is there to ask for more."""
    configuration = load_configuration(load_settings_schema(), home, get_process_environment())
    if args.provider or not can_ask():
        choice = read_choice(args, configuration.environ)
        if not args.no_check:
            check_choice(choice)
    else:
        now = configuration.settings.model
        kept = "" if now.provider == DEMO else now.name or now.provider
        chosen = pick_choice(list_choices(configuration.environ, home), kept)
        if chosen is None:
            left = f"{kept} answers" if kept else "the demo model answers, as long as no other is set up"
            print_text(f"{left}; to change that: hermes-gateway setup model")
            return
        choice = settle_choice(chosen)
    write_variables(home, list_variables(choice, configuration))
    if not apply_changes(home):
        print("it is used from the next start on")


def read_choice(args: argparse.Namespace, environ: Mapping[str, str]) -> ModelChoice:
    """Read the choice from the flags. Raises ConfigError if a part is missing."""
    if not args.provider:
        raise ConfigError(
            f"no model is named, and no terminal can ask you\nadd --provider {'|'.join(ENDPOINTS)} --name NAME"
        )
    variable = ENDPOINTS[args.provider].key_variable
    choice = ModelChoice(args.provider, "", args.name, args.base_url, args.key or environ.get(variable, ""))
    for what, value, pattern in (("--base-url", choice.base_url, HTTP_PATTERN), ("--key", choice.key, r"\S+")):
        if value and (wrong := check_value(value, pattern)):
            raise ConfigError(f"{what}: what was given {wrong}")
    if not choice.name:
        names, fault = fetch_model_names(settings_of(choice))
        there = f"there is: {', '.join(names[:20])}" if names else (fault.what if fault else "it has no list of them")
        raise ConfigError(f"no model is named\nsay --name NAME; {there}")
    return choice


def check_choice(choice: ModelChoice) -> None:
    """Check that the model answers; raise ConfigError if it does not."""
    with show_loading():
        (fault,) = probe_models([settings_of(choice)], get_process_environment())
    if fault:
        raise ConfigError(f"{fault.what}\n{fault.remedy}; nothing was written, --no-check writes without asking there")
    print_answer()


def list_choices(environ: Mapping[str, str], home: Home) -> list[ModelChoice]:
    """List the models that are found without a question, then the providers that need a key."""
    found = []
    for provider, offered in ENDPOINTS.items():
        if key := environ.get(offered.key_variable, "") if offered.key_variable else "":
            url = environ.get(offered.url_variable, "") if offered.url_variable else ""
            found.append(ModelChoice(provider, f"{provider}: {offered.key_variable} is set", "", url, key))
    if hermes := find_hermes_model(home.hermes_config):
        key = environ.get(ENDPOINTS[hermes.provider].key_variable, "")
        why = f"{hermes.name} ({hermes.provider}): Hermes's configuration names it"
        found.append(ModelChoice(hermes.provider, why, hermes.name, hermes.base_url, key))
    for provider, offered in ENDPOINTS.items():
        for name, url in offered.servers.items():
            choice = ModelChoice(provider, "", "", url)
            names, fault = fetch_model_names(settings_of(choice), LOCAL_PATIENCE)
            if names and not fault:
                why = f"{name} runs on this machine: {format_count(len(names), 'model')}"
                found.append(ModelChoice(provider, why, "", url))
    return found + list_missing_keys(found)


def list_missing_keys(found: list[ModelChoice]) -> list[ModelChoice]:
    """List the providers whose key was not found.

    A server on this machine that speaks OpenAI's protocol is not OpenAI.
    """
    known = {choice.provider for choice in found if choice.key or not choice.base_url}
    return [
        ModelChoice(provider, f"{provider}, with a key of yours")
        for provider, offered in ENDPOINTS.items()
        if offered.key_variable and provider not in known
    ]


def pick_choice(choices: list[ModelChoice], kept: str) -> ModelChoice | None:
    """Ask for a choice; None: keep the model that is `kept`, or the demo."""
    offered = [*(choice.why for choice in choices), OTHER, f"{kept}, as it is now" if kept else DEMO_MODEL]
    is_found = bool(choices) and choices[0].is_found and not kept
    number = ask_choice("which model answers", offered, 0 if is_found else len(offered) - 1)
    if number < len(choices):
        return choices[number]
    if number > len(choices):
        return None
    url = ask_line("its address, such as http://127.0.0.1:8000/v1", FIND_ADDRESS_FAULT)
    return ModelChoice("openai", OTHER, "", url)


def settle_choice(choice: ModelChoice) -> ModelChoice:
    """Complete the choice with a valid key and name; the person corrects invalid ones."""
    is_optional = bool(choice.base_url)
    key, address, given, name = choice.key, choice.base_url, "", choice.name
    while True:
        if not key and choice.key_variable:
            key = ask_key(choice, given)
        tried = ModelChoice(choice.provider, choice.why, name, address, key)
        names, fault = fetch_model_names(settings_of(tried))
        if fault is None:
            name = ask_name(names, name)
            tried = replace(tried, name=name)
            with show_loading():
                fault = ask_model(settings_of(tried))
        if fault is None:
            print_answer()
            return tried
        print_note(f"{fault.what}; {fault.remedy}")
        key, given = "", "" if fault.is_of_key else key
        if is_optional or not choice.key_variable:
            address = ask_line("its address", FIND_ADDRESS_FAULT, default=address)


def print_answer() -> None:
    print_text(f"{apply_style('ok', 'green')}  it answers")


def ask_name(names: list[str], before: str) -> str:
    if names:
        shown = f": {', '.join(map(to_one_line, names))}" if len(names) <= MAX_NAMES_SHOWN else ""
        print_text(f"it has {format_count(len(names), 'model')}{shown}")

    def find_fault(text: str) -> str:
        if not text:
            return "a name is needed; Tab shows those that are there" if names else "a name is needed"
        return "" if not names or text in names else "unknown model; Tab shows the known ones"

    default = before or (names[0] if len(names) == 1 else "")
    return to_one_line(ask_line("the model's name", find_fault, default=default, choices=names))


def ask_key(choice: ModelChoice, given: str) -> str:
    """Ask for the key. `given`: the present one, which had no fault."""
    is_optional = bool(choice.base_url or given)
    ends = "; Enter: the one of before" if given else "; Enter: it needs none" if is_optional else ""
    what = f"the key ({choice.key_variable}{ends})"
    find = partial(find_fault, pattern=r"\S+", is_needed=not is_optional)
    return ask_line(what, find, is_secret=True) or given


def settings_of(choice: ModelChoice) -> ModelSettings:
    settings: ModelSettings = ModelSettings(
        provider=choice.provider,
        name=choice.name,
        base_url=choice.base_url,
        api_key=Secret(choice.key),
    )
    return settings


def list_variables(choice: ModelChoice, configuration: Configuration) -> dict[str, str]:
    """Return the variables for `.env`; to use the default address, an earlier one is overwritten."""
    address = choice.base_url or (ENDPOINTS[choice.provider].base_url if configuration.settings.model.base_url else "")
    values = {
        "GATEWAY_MODEL_PROVIDER": choice.provider,
        "GATEWAY_MODEL_NAME": choice.name,
        "GATEWAY_MODEL_BASE_URL": address,
        choice.key_variable: choice.key,
    }
    return {name: value for name, value in values.items() if name and value}
