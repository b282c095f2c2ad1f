"""The gateway's surface for users and scripts, as a list of facts: `python tests/surface.py` prints it.

Everything is asked for from outside: what `--help` says, what `--json` prints, what the control socket answers, what a
hook can import. So the list does not care how the code is named or arranged within. `tests/surface.json` is the list as
it was in 0.1; `tests/test_surface.py` holds the code to it.
"""

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.outside.code import imports, journal_records  # noqa: E402 - run as a script, it first says where they are
from tests.outside.live import live  # noqa: E402
from tests.outside.program import PROGRAM, printed  # noqa: E402
from tests.outside.shapes import Facts, flat  # noqa: E402

LIST = Path(__file__).with_name("surface.json")
PLACEHOLDERS = ("VERB", "NETWORK")  # stand for the commands below
SAMPLES = ("sample_hooks", "hooks_builtin")

# Variables that mean no single setting; those that do, the configuration's reference lists.
FURTHER_VARIABLES = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "OLLAMA_BASE_URL", "LM_BASE_URL"),
    *("CREDENTIALS_DIRECTORY", "FORCE_COLOR", "HERMES_HOME", "HERMES_SAFE_MODE", "HERMES_SESSION_KEY", "HOOK_NAME"),
    *(
        "HOOK_DATA",
        "HOOK_OPTIONS",
        "JOURNAL_STREAM",
        "NO_COLOR",
        "NOTIFY_SOCKET",
        "TELEGRAM_WEBHOOK_URL",
        "WATCHDOG_PID",
    ),
    *("WATCHDOG_USEC", "XDG_RUNTIME_DIR"),
)


def command_line() -> Facts:
    """All commands, and what can be given to each, as `--help` tells it."""
    overview = printed("--help")
    codes = re.findall(r"(\d+) ([a-z ]+)", overview.partition("exit codes:")[2])
    facts = {f"exit code {number}": meaning for number, meaning in codes}
    facts |= dict(options(PROGRAM, part(overview, "options"), ""))
    for name in re.findall(r"^  (\S+)", part(overview, "commands"), re.MULTILINE):
        facts |= command(name)
    facts[f"{PROGRAM} gateway COMMAND"] = "the same" if printed("gateway", "run", "--help") else "nothing"
    facts[f"{PROGRAM} help COMMAND"] = "the same" if printed("help", "run") else "nothing"
    return facts


def command(name: str) -> Facts:
    """A command, and those below it."""
    told = printed(*name.split(), "--help")
    if not told:
        return {}
    facts, usage = {name: "command"}, " ".join(told.split("\n\n")[0].split())
    arguments = part(told, "positional arguments")
    for argument in re.findall(r"^  (\S+)", arguments, re.MULTILINE):
        if argument not in PLACEHOLDERS:
            facts[f"{name} {argument.upper()}"] = how_many(argument, usage)
    for below in re.findall(r"^    (\S+)", arguments, re.MULTILINE):
        facts |= command(f"{name} {below}")
    return facts | dict(options(name, part(told, "options"), usage))


def part(told: str, heading: str) -> str:
    """The lines below a heading of the help."""
    found = re.search(rf"^{heading}:\n((?: .*\n?)*)", told, re.MULTILINE)
    return found[1] if found else ""


def options(name: str, lines: str, usage: str) -> Iterator[tuple[str, str]]:
    """Each way to write an option, what is given with it, and each choice there is."""
    for line in re.findall(r"^  (-.*)", lines, re.MULTILINE):
        ways = [way.split(" ", 1) for way in re.split(r", (?=-)", line.split("  ")[0])]
        value = ways[-1][1].strip() if len(ways[-1]) > 1 else ""
        choices = value.strip("{}").split(",") if value.startswith("{") else []
        given = "one of its choices" if choices else value or "alone"
        for option, *_ in ways:
            is_needed = f" {option} " in usage  # without a bracket before it
            yield f"{name} {option}", given + (", required" if is_needed else "")
            yield from ((f"{name} {option} {choice}", "a choice") for choice in choices)


def how_many(argument: str, usage: str) -> str:
    if f"{argument} [{argument} ...]" in usage:
        return "one or more"
    if f"[{argument} ...]" in usage:
        return "any number"
    return "one, or none" if f"[{argument}]" in usage else "one"


def configuration() -> Facts:
    """Every setting with its type, bounds, default and choices."""
    schema = as_told_in_0_1(json.loads(printed("config", "schema")))
    return {name.lstrip("."): kind for name, kind in flat(schema, "") if name}


def as_told_in_0_1(schema: Any) -> Any:
    """A schema without what was taken all along and is said only since: no value, `yes`, bounds of durations."""
    if isinstance(schema, list):
        return [as_told_in_0_1(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: as_told_in_0_1(value) for key, value in schema.items()}
    match told.get("type"):
        case [("object" | "array" | "boolean") as kind, "null" | "string"]:
            told["type"] = kind
        case ["string", "number"]:
            told = {key: value for key, value in told.items() if "imum" not in key}
    return told


def variables() -> Facts:
    """Every variable of the environment that is read, and the setting that it means."""
    facts: Facts = {}
    setting = ""
    for line in (ROOT / "docs/configuration.md").read_text("utf-8").splitlines():
        setting = line.lstrip("# ") if line.startswith("#") else setting
        facts |= {name: setting for name in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", line) if "." in setting}
    sources = "\n".join(path.read_text("utf-8") for path in (ROOT / "gateway").rglob("*.py"))
    known = {name for name in FURTHER_VARIABLES if re.search(rf"\b{name}\b", sources)}
    return facts | dict.fromkeys(known, "read")


def events() -> Facts:
    """Every event: its fields, those that a hook may change, its outcomes."""
    facts: Facts = {}
    for event in json.loads(printed("events", "list", "--json"))["events"]:
        name = event["name"]
        facts[name] = "event"
        facts |= dict(flat({"properties": event["schema"]["properties"]}, name)) | {name: "event"}
        facts |= {f"{name}.{field}, writable": "yes" for field in event["writable"]}
        facts |= {f"{name} outcome {outcome}": "honoured" for outcome in event["outcomes"]}
    return facts


def slash_commands() -> Facts:
    """What can be typed in a chat, from the page that is made from the table."""
    facts: Facts = {}
    page = (ROOT / "docs/commands.md").read_text("utf-8").partition("## In a chat")[2]
    for name, told in re.findall(r"^### (/\S+)\n\n(.+)", page, re.MULTILINE):
        usage = re.match(rf"`{name} (.+?)`: ", told)
        facts[name] = "for admins" if "For admins." in told else "for everybody"
        facts[f"{name}, usage"] = usage[1] if usage else ""
        also = re.search(r" Also (`/.*?`)\.", told)
        facts |= dict.fromkeys(re.findall(r"`(/\S+?)`", also[1] if also else ""), f"means {name}")
    return facts


def hook_folders() -> Facts:
    """The hooks that come along, and the files that each is made of."""
    paths = (path for place in SAMPLES for path in (ROOT / place).glob("[!_]*/*") if path.is_file())
    return {path.relative_to(ROOT).as_posix(): "file" for path in paths}


STILL: Mapping[str, Callable[[], Facts]] = {
    "command line": command_line,
    "configuration": configuration,
    "environment": variables,
    "events": events,
    "slash commands": slash_commands,
    "hook folders": hook_folders,
    "records": journal_records,
}
"""What can be asked without a gateway that runs."""
LIVE = ("manifest", "home", "json", "control socket", "hook context")
SECTIONS = (*STILL, "imports", *LIVE)


def known() -> dict[str, Facts]:
    """The list as it was written down."""
    found: dict[str, Facts] = json.loads(LIST.read_text("utf-8"))
    return found


def surface(place: Path) -> dict[str, Facts]:
    """The list as it is now."""
    asked = {name: ask() for name, ask in STILL.items()}
    found: dict[str, Facts] = {**asked, "imports": imports(known().get("imports", {})), **live(place)}
    return found


def as_text(found: Mapping[str, Any]) -> str:
    return json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        sys.stdout.write(as_text(surface(Path(place))))


if __name__ == "__main__":
    main()
