"""`./x reference`: writes the pages that list what there is, from the tables that the code lives by.

A setting, an event or a command that is added there is in the documentation after this, under a heading of its own;
a test fails as long as a page is not what would be written.
"""

import argparse
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from gateway.adapters.shared.folder import load_settings_schema
from gateway.cli import build_command_parser
from gateway.cli.program import COMMANDS, PROGRAM
from gateway.config.reference import build_settings_schema
from gateway.control.params import describe_params
from gateway.daemon.dialects import DIALECTS
from gateway.daemon.verb_table import VERBS as VERB_ROWS
from gateway.dispatcher.chat_commands import BUILT_IN
from gateway.dispatcher.commands import Command
from gateway.events.catalogue import EVENT_SPECS, context_name_of
from gateway.events.fields import COMMON_FIELDS, TURN_FIELDS, EventField, EventSpec
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, UNSUPPORTED_HOOKS
from gateway.hooks.manifests.manifest_schema import build_manifest_schema
from gateway.installer.fetched_hook import fetch_hook
from gateway.installer.index_file import HookIndex, ListedHook, encode_index
from gateway.installer.source import parse_source
from gateway.verbs import Verb
from tests import completions
from tests.setting_rows import SettingRow, list_settings

ROOT = Path(__file__).parent.parent

CONFIGURATION = """\
# Configuration

Settings are in `$HERMES_HOME/hermes-gateway/config.yaml`. Secrets are in `$HERMES_HOME/.env`, which Hermes shares, or
in the environment. If several places set a value, the first of these counts: the command line, the environment of the
process, systemd's credentials, `.env`, `config.yaml`, the default. To use a secret in `config.yaml`, write
`${VARIABLE}`. [Check and change settings](settings.md) shows how to find mistakes and origins, and how to change a
value.

The gateway knows secrets by their value, and removes them from logs (those of hooks too), errors, tables and `--json`:
each setting of the kind `secret`, each credential, each value in `.env`, and each that a hook or a tool server gets by
name (`env:`). A value that plainly is no secret stays: one under 8 characters, digits alone, a path, an address without
a user, a locale, a time zone, a level, or the value of a setting that is not a secret. No value under 6 characters is
removed.

Without a file, the gateway starts with the model `demo`, and only you can talk to it. It reports a mistake in the file
with the line, the column and the remedy; a running gateway keeps its present configuration. `hermes-gateway reload`, or
SIGHUP, reads everything again. Access control and the agent's answers follow from the next message on, and hooks a
moment later. `reload`, the log and `status` name the settings that need a restart, and a changed file that was not read
again.

Durations are written as `30s`, `5m`, `24h` or `7d`, sizes as `10MB`.
"""
EVENTS = """\
# Events

The events that a hook can receive. A hook lists their names under `events:` to observe, or under `intercepts:` to
decide; `*` as the last segment of a name matches all the rest. A hook that decides can change the fields marked
*writable*, and answer with one of the outcomes. [Each event has an example](examples.md).
"""
COMMAND_LINE = f"""\
# Commands

A command is typed on a terminal, or as a slash command [in a chat](#in-a-chat).

## On a terminal

`{PROGRAM} COMMAND`. Before the command, `--home DIR` chooses another home than `$HERMES_HOME`.
[The command line](cli.md) has the output, `--json` and the exit codes.
"""

VERBS = f"""\
# Verbs

A verb is a request to the running gateway: `{PROGRAM}` sends it over the control socket, and the page over HTTP. Each
verb needs a role, and higher roles have it too. The control socket acts for the owner: only the user that runs the
gateway can connect. A process of a hook or of a tool may ask for a verb only if this page says so.

Admins and owners see the whole answer. For operators, the gateway removes all words of people, models and tools. For
all, it removes secrets, unless this page says that the answer is not searched. The [record of
activity](privacy.md#record-of-activity) has the verbs that this page calls recorded; `stop`, `restart` and `reload`
write their own records.
"""
PLUGIN_HOOKS = """\
# Names for plugins of Hermes

The names that a [plugin](plugins.md) can register with `ctx.register_hook`, the event of ours at which the gateway
calls each, and the answers that count. Callbacks get Hermes's arguments by name, and only those that they declare.
The gateway awaits `async def` callbacks and runs the others in a thread. Names from `on_stream_start` on are not
settled in Hermes: callbacks get our event's own fields, and None for the rest.
"""
ROLES = {"operator": "for operators", "admin": "for admins", "owner": "for owners"}
AUTHORS = {
    "all": "hooks and tools may ask",
    "placed": "hooks that you placed by hand may ask",
    "send": "hooks that you placed by hand or that have `uses: [send]` may ask",
    "people": "",
}
RECORDED = {"deed": "recorded", "look": "recorded at most once a minute", "often": "recorded for people only"}


def table(heads: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for line in lines:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
    yield ""


def sentence(text: str) -> str:
    """With a capital, unless it opens with code, and a full stop."""
    text = text.strip()
    return text if not text else f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?' else '.'}"


def configuration() -> Iterator[str]:
    yield CONFIGURATION
    for section, settings in groupby(list_settings(load_settings_schema()), lambda row: row.name.partition(".")[0]):
        yield f"## {section}\n"
        for row in settings:
            yield from setting(row)


def setting(row: SettingRow) -> Iterator[str]:
    if "." in row.name:
        yield f"### {row.name}\n"
    yield f"{sentence(row.does)}\n"
    default, restart = (
        f"by default `{row.default}`" if row.default else "",
        "" if row.is_reloadable else "needs a restart",
    )
    facts = [row.kind, default, restart, *(f"`{name}`" for name in row.variables)]
    yield f"{' · '.join(filter(None, facts))}\n"


def events() -> Iterator[str]:
    yield EVENTS
    yield "## Fields of every event\n"
    yield from fields(COMMON_FIELDS)
    yield "## Fields of every event of a turn\n"
    yield from fields(TURN_FIELDS)
    for domain, points in groupby(EVENT_SPECS.values(), lambda point: point.name.partition(":")[0]):
        yield f"## {domain}\n"
        for point in points:
            yield from event(point)


def event(point: EventSpec) -> Iterator[str]:
    yield f"### {point.name}\n"
    shared = (
        " It has the [fields of every event of a turn](#fields-of-every-event-of-a-turn) too." if point.in_turn else ""
    )
    yield f"{sentence(point.doc)}{shared}\n"
    if point.fields:
        yield from fields(point.fields)
    if point.outcomes:
        yield f"Outcomes: {', '.join(f'`{outcome}`' for outcome in sorted(point.outcomes))}.\n"


def fields(listed: tuple[EventField, ...]) -> Iterator[str]:
    lines = [
        (
            f"`{field.name}`",
            field.type,
            "writable" if field.writable else "",
            field.doc + (" (in code only)" if field.live else ""),
        )
        for field in listed
    ]
    yield from table(("field", "type", "", "what it is"), lines)


def commands() -> Iterator[str]:
    yield COMMAND_LINE
    for name, (module, does) in COMMANDS.items():
        yield f"### {PROGRAM} {name}\n"
        yield f"{sentence(does)}\n"
        yield from arguments(build_command_parser(name, importlib.import_module(module)))
    yield "## In a chat\n"
    yield "A message that begins with `/` and one of these words; where slashes do not reach, `!` does.\n"
    for command in BUILT_IN:
        if not command.hidden:
            yield from chat_command(command)


def arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """The options of a command, then its commands below, each with a heading."""
    lines, below = [], dict[str, tuple[argparse.ArgumentParser, str]]()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            below |= {name: (parser, said.get(name, "")) for name, parser in action.choices.items() if name in said}
        elif action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
            lines.append((f"`{spelling(action)}`", (action.help or "") % vars(action)))
    if lines:
        yield from table(("argument", "what it does"), lines)
    for inner, does in below.values():
        yield f"#### {inner.prog}\n"
        yield f"{sentence(inner.description or does)}\n"
        yield from arguments(inner)


def spelling(action: argparse.Action) -> str:
    """`-n, --lines N`, or the name of what is given without an option."""
    value = action.metavar if isinstance(action.metavar, str) else (action.dest.upper() if action.nargs != 0 else "")
    if not action.option_strings:
        return value
    return (
        f"{', '.join(action.option_strings)} {value}".rstrip()
        if action.nargs != 0
        else ", ".join(action.option_strings)
    )


def chat_command(command: Command) -> Iterator[str]:
    yield f"### /{command.name}\n"
    for_whom = {"admin": " For admins.", "operator": " For admins. Operators have it too."}.get(command.rights, "")
    usage = f"`/{command.name} {command.usage}`: " if command.usage else ""
    also = f" Also {', '.join(f'`/{alias}`' for alias in command.aliases)}." if command.aliases else ""
    yield f"{usage}{sentence(command.summary)}{also}{for_whom}\n"


def verbs() -> Iterator[str]:
    yield VERBS
    rows = sorted(VERB_ROWS.values(), key=lambda row: ("." in row.name, row.name))
    for room, listed in groupby(rows, lambda row: row.name.partition(".")[0] if "." in row.name else "The gateway"):
        yield f"## {room}\n"
        for row in listed:
            yield f"### {row.name}\n"
            yield f"{sentence(row.does)} {sentence(describe_params(row.params))}\n"
            yield f"{' · '.join(filter(None, verb_facts(row)))}\n"


def verb_facts(row: Verb) -> Iterator[str]:
    yield ROLES[row.role]
    yield AUTHORS[row.authors]
    if isinstance(row.page, tuple):
        yield (
            f"the page does it, with {', '.join(f'`{name}`' for name in row.page)}" if row.page else "the page does it"
        )
    else:
        yield "the page shows it" if row.page else ""
    yield "" if row.on is None else RECORDED[row.kind]
    yield "takes long, and is recorded when it begins" if row.lasts else ""
    yield "the answer is not searched for secrets" if row.raw else ""


def plugin_hooks() -> Iterator[str]:
    yield PLUGIN_HOOKS
    known = ((f"`{row.name}`", ", ".join(f"`{name}`" for name in row.events), row.doc) for row in HERMES_HOOKS.values())
    yield from table(("Hermes", "our event", "what it is for"), known)
    yield "## Names that never fire\n\nA plugin may register these; the gateway never calls them:\n"
    yield from table(("Hermes", "why not"), ((f"`{name}`", why) for name, why in UNSUPPORTED_HOOKS.items()))


CONTEXTS = '''\
"""What a handler is given, for type checkers alone: nothing of this is there at run time. `./x reference` writes it.

    if TYPE_CHECKING:
        from gateway.hooks.contexts import ToolBefore

    def handle(event_type: str, context: "ToolBefore") -> None: ...

Each event of the catalogue has a class, with its fields, which of them may be written, and the type of each.
"""

# mypy: disable-error-code="override"
# An event is a dictionary that has these fields and no others.

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Never, overload

from gateway.events import Event
from gateway.worker.capabilities import HookCapabilities

class Context(Event):
    """An event that has any fields."""

    options: Mapping[str, Any]
    gateway: HookCapabilities
    data: Path
'''
TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "object": "dict[str, Any]",
    "any": "Any",
}


def contexts() -> Iterator[str]:
    yield CONTEXTS
    for point in EVENT_SPECS.values():
        listed = [field for field in point.all_fields if not field.live]
        yield f"class {context_name_of(point.name)}(Context):"
        yield f'    """`{point.name}`: {sentence(point.doc)}"""\n'
        yield from overloads("__getitem__(self, field: {names}, /) -> {kind}", listed)
        yield from overloads("__setitem__(self, field: {names}, value: {kind}, /) -> None", writable(listed))


def writable(listed: list[EventField]) -> list[EventField]:
    return [field for field in listed if field.writable]


def overloads(shape: str, listed: list[EventField]) -> Iterator[str]:
    """One signature for the fields of each type; none may be used where there is no such field."""
    groups: dict[str, list[str]] = {}
    for field in listed:
        groups.setdefault(annotation(field.type), []).append(f'"{field.name}"')
    signatures = [(f"Literal[{', '.join(names)}]", kind) for kind, names in groups.items()] or [("Never", "Never")]
    for names, kind in signatures:
        if len(signatures) > 1:
            yield "    @overload"
        yield f"    def {shape.format(names=names, kind=kind)}: ..."
    yield ""


def annotation(word: str) -> str:
    if word.endswith("?"):
        return f"{annotation(word[:-1])} | None"
    return f"list[{annotation(word[:-2])}]" if word.endswith("[]") else TYPES[word]


def samples() -> Iterator[str]:
    """The index that comes with the gateway."""
    hooks = {}
    for folder in sorted(path.parent for path in (ROOT / "sample_hooks").glob("*/HOOK.yaml")):
        with tempfile.TemporaryDirectory() as work:
            hook = fetch_hook(parse_source(str(folder)), Path(work), {}, DIALECTS)
            about = {"description": hook.manifest.description, "version": hook.own_version, "digest": hook.digest}
            hooks[hook.name] = ListedHook(source=f"./{folder.name}", asks=hook.grants, **about)
    yield encode_index(HookIndex(hooks=hooks)).decode()


def manifest_schema() -> Iterator[str]:
    yield json.dumps(build_manifest_schema(), indent=1, ensure_ascii=False)


def settings_schema() -> Iterator[str]:
    yield json.dumps(build_settings_schema(load_settings_schema()), indent=1, ensure_ascii=False)


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "docs/configuration.md": configuration,
    "docs/events.md": events,
    "docs/commands.md": commands,
    "docs/verbs.md": verbs,
    "docs/plugin-hooks.md": plugin_hooks,
    "gateway/hooks/contexts.pyi": contexts,
    "gateway/schemas/HOOK.schema.json": manifest_schema,
    "gateway/schemas/config.schema.json": settings_schema,
    "gateway/cli/completions/hermes-gateway.bash": completions.bash,
    "gateway/cli/completions/_hermes-gateway": completions.zsh,
    "gateway/cli/completions/hermes-gateway.fish": completions.fish,
    "sample_hooks/index.json": samples,
}


def page(name: str) -> str:
    return "\n".join(PAGES[name]()).rstrip() + "\n"


def main() -> None:
    for name in PAGES:
        (ROOT / name).write_text(page(name), "utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
