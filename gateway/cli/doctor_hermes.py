"""`doctor --hermes`: what of an existing Hermes home works here, what degrades and why. It reads, and touches nothing.

Nothing is imported or run: what is said of a hook or a plugin is seen in its files.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gateway.cli.output import note, show_json, show_table, styled
from gateway.config.hermes_hooks import HermesHooks, read_hermes
from gateway.config.home import Home
from gateway.config.layers import read_outside
from gateway.config.names import ALLOW_ALL, NOT_OFFERED, hermes_names
from gateway.config.providers import OFFERS
from gateway.errors import ExitCode
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, describe_unsupported
from gateway.hermes.unsupported_imports import find_unsupported_imports
from gateway.hooks.folders.code import read_code
from gateway.hooks.folders.inspection import inspect_folder
from gateway.hooks.folders.manifest import HookKind
from gateway.hooks.folders.requirements import find_missing_needs
from gateway.hooks.folders.sources import FoundHook, Source, list_hook_folders
from gateway.yaml_source import Finding, read_yaml
from gateway.yaml_source import YamlMapping as Tree

LIMIT = 2_000_000
WORKS, DEGRADES, FAILS, OFF = "works", "degrades", "fails", "off"
COLOURS = {WORKS: "green", DEGRADES: "yellow", FAILS: "red", OFF: "dim"}
# What plugins register, and what of it is taken up here.
TAKEN = frozenset({"hook", "command", "tool", "skill"})
_REGISTERS = re.compile(rb"\.register_(\w+)\(")
_HOOK_NAME = re.compile(rb"""register_hook\(\s*["'](\w+)["']""")

# Sections of Hermes's config.yaml, and what becomes of them.
SECTIONS: Mapping[str, tuple[str, str]] = {
    "hooks": (WORKS, "shell hooks run once trusted: hermes-gateway hooks trust NAME; outbound webhooks are sent"),
    "plugins": (WORKS, "`enabled` and `disabled` count as in Hermes"),
    "model": (
        DEGRADES,
        "not taken over; write `model: {name: ...}` into our own config.yaml: hermes-gateway config path",
    ),
    "providers": (DEGRADES, "not taken over; write `models:` into our own config.yaml"),
    "custom_providers": (DEGRADES, "not taken over; write `models:` into our own config.yaml"),
    "mcp_servers": (DEGRADES, "not taken over; write `mcp_servers:` into our own config.yaml"),
    "platforms": (DEGRADES, "not taken over; tokens and home channels are read from .env"),
    "gateway": (DEGRADES, "not taken over; our own settings are in config.yaml, see: hermes-gateway config show"),
    "quick_commands": (OFF, "not offered here; a hook at command:* can answer a command"),
}


class Row(NamedTuple):
    """One thing of the home: what it is, its verdict, and why."""

    what: str
    name: str
    verdict: str
    why: tuple[str, ...] = ()


def run(home: Home, environ: Mapping[str, str], *, as_json: bool) -> int:
    rows = [*hooks(home, environ), *plugins(home, environ), *settings(home), *variables(home, environ), *files(home)]
    if as_json:
        show_json({"home": str(home.root), "hermes": [row._asdict() for row in rows]})
        return int(ExitCode.OK)
    shown = [
        (row.what if not number else "", row.name if not number else "", _coloured(row.verdict, number), why)
        for row in rows
        for number, why in enumerate(row.why or ("",))
    ]
    show_table(("what", "name", "", ""), shown, f"there is nothing of Hermes in {home.root}")
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in COLOURS}
    note(", ".join(f"{count} {verdict}" for verdict, count in counts.items()) + "; nothing was changed or run")
    return int(ExitCode.OK)


def _coloured(verdict: str, number: int) -> str:
    return styled(verdict, COLOURS[verdict]) if not number else ""


def hooks(home: Home, environ: Mapping[str, str]) -> Iterator[Row]:
    for folder in list_hook_folders(Source(home.hooks, "home")):
        yield _folder_row("hook", folder, home, environ, ())


def plugins(home: Home, environ: Mapping[str, str]) -> Iterator[Row]:
    hermes = _hermes_hooks(home)
    categories = sorted({path.parent.parent for path in home.plugins.glob("*/*/plugin.y*ml")})
    for place in (home.plugins, *categories):
        for folder in list_hook_folders(Source(place, "plugins", kind="plugin")):
            row = _folder_row("plugin", folder, home, environ, tuple(_unoffered(folder)))
            is_on = folder.name in hermes.enabled and folder.name not in hermes.disabled
            off = "is not in plugins.enabled; to switch it on here: hermes-gateway hooks enable " + folder.name
            yield row if is_on else row._replace(verdict=OFF, why=(off, *row.why))


def _folder_row(
    what: HookKind, folder: FoundHook, home: Home, environ: Mapping[str, str], known: tuple[str, ...]
) -> Row:
    """Errors make it fail; what is another thing here than in Hermes degrades it, and all else is only told."""
    try:
        studied = inspect_folder(folder)
    except OSError as error:
        return Row(what, folder.name, FAILS, (f"cannot be read: {error.strerror}",))
    findings = (*folder.findings, *studied.findings)
    if wrong := [finding for finding in findings if finding.severity == "error"]:
        return Row(what, folder.name, FAILS, tuple(map(_said, wrong)))
    lacking: tuple[str, ...] = ()
    if studied.manifest:
        outside = read_outside(environ, home.env)
        lacking = tuple(find_missing_needs(studied.manifest, outside.environ, studied.manifest.needs_platforms, ()))
    reached = list(find_unsupported_imports(folder.name, read_code(folder).files))
    degrades = bool(reached or known or lacking)
    fails = any(reach.verdict == "missing" and not reach.is_caught for reach in reached)
    told = dict.fromkeys([*(_said(reach.finding) for reach in reached), *map(_said, findings), *known, *lacking])
    return Row(what, folder.name, FAILS if fails else DEGRADES if degrades else WORKS, tuple(told))


def _said(finding: Finding) -> str:
    return f"{finding.place}: {finding.what}; {finding.remedy}"


def _unoffered(folder: FoundHook) -> Iterator[str]:
    """What a plugin registers that is nothing here."""
    source = b"\n".join(text for name, text in read_code(folder).files.items() if name.endswith(".py"))
    for name in dict.fromkeys(found.decode() for found in _HOOK_NAME.findall(source)):
        if name not in HERMES_HOOKS:
            yield f"its hook {name} never fires here: {describe_unsupported(name)}"
    for word in dict.fromkeys(found.decode() for found in _REGISTERS.findall(source)):
        if word not in TAKEN:
            yield f"ctx.register_{word} is not offered here; the rest of it works"


def settings(home: Home) -> Iterator[Row]:
    if not home.hermes_config.exists():
        return
    tree = read_yaml(home.hermes_config, LIMIT, name=str(home.hermes_config))
    root = tree.root if isinstance(tree.root, Tree) else Tree(tree.root.place)
    for key in root:
        verdict, why = SECTIONS.get(key, (OFF, "Hermes's own affair; nothing here reads it"))
        yield Row("config.yaml", key, verdict, (why,))
    for finding in (*tree.findings, *_hermes_hooks(home).findings):
        yield Row("config.yaml", str(finding.place), FAILS, (_said(finding),))


def _hermes_hooks(home: Home) -> HermesHooks:
    return read_hermes(home.hermes_config) if home.hermes_config.exists() else HermesHooks()


def variables(home: Home, environ: Mapping[str, str]) -> Iterator[Row]:
    """Of `.env` alone: names, never values."""
    outside = read_outside({}, home.env)
    taken = {name.variable: ".".join(name.path) for name in hermes_names()}
    keys = {variable: provider for provider, offer in OFFERS.items() for variable in offer[1:] if variable}
    for name in outside.values:
        if name in taken:
            yield Row(".env", name, WORKS, (f"is {taken[name]}",))
        elif name in ALLOW_ALL:
            yield Row(".env", name, WORKS, (f"opens {', '.join(ALLOW_ALL[name])} to everybody",))
        elif name in keys:
            yield Row(".env", name, WORKS, (f"reaches models of {keys[name]}",))
        elif name in NOT_OFFERED:
            yield Row(".env", name, DEGRADES, (NOT_OFFERED[name],))
        else:
            yield Row(".env", name, WORKS, ("hooks that name it get it; nothing else reads it",))
    for finding in outside.findings:
        yield Row(".env", str(finding.place), DEGRADES, (_said(finding),))
    if home.env.exists() and environ.get("HERMES_HOME", "") not in ("", str(home.root)):
        yield Row(".env", "HERMES_HOME", DEGRADES, ("the environment names another home than the one looked at",))


def files(home: Home) -> Iterator[Row]:
    known: tuple[tuple[Path, str, Any], ...] = (
        (home.boot_md, WORKS, "the agent carries it out at every start; see: hermes-gateway hooks info boot-md"),
        (home.skills, WORKS, "the agent loads them"),
        (home.hermes_state, OFF, "Hermes's conversations stay with Hermes; new ones begin here"),
        (home.root / "cron", OFF, "Hermes's own schedule; here a hook has a `schedule:`"),
        (home.root / "SOUL.md", OFF, "not read; write its text into agents.main.instructions"),
    )
    for path, verdict, why in known:
        if path.exists():
            yield Row("file", path.name, verdict, (why,))
