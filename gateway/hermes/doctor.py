"""`doctor --hermes`: what of an existing Hermes home works here, what degrades and why. It reads, and touches nothing.

Nothing is imported or run: what is said of a hook or a plugin is seen in its files.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.environment import read_environment
from gateway.config.home import Home
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema
from gateway.hermes.config import HermesConfig, HermesHooks, read_hermes_config
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, describe_unsupported
from gateway.hermes.plugin_manifest import join_python_files
from gateway.hermes.sources import HermesFolderSource, PluginSource, ShellHookSource, list_plugin_folders
from gateway.hermes.unsupported_imports import find_unsupported_imports
from gateway.hooks.folders.inspection import read_code
from gateway.hooks.folders.readiness import find_missing_needs
from gateway.hooks.folders.sources import HookVersion
from gateway.yaml_source import Finding, YamlMapping, read_yaml

FILE_LIMIT = 2_000_000
WORKS, DEGRADES, FAILS, OFF, WITHOUT_EFFECT = "works", "degrades", "fails", "off", "without effect"
# What plugins register, and what of it is taken up here.
SUPPORTED_REGISTRATIONS = frozenset({"hook", "command", "tool", "skill"})
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


class CompatibilityRow(NamedTuple):
    """One thing of the home: what it is, its verdict, and why."""

    what: str
    name: str
    verdict: str
    why: tuple[str, ...] = ()


def check_hermes_home(schema: SettingsSchema, home: Home, environ: Mapping[str, str]) -> list[CompatibilityRow]:
    """All that there is of Hermes in this home, in the order in which it is shown."""
    return [
        *check_hooks(home, environ),
        *check_plugins(home, environ),
        *check_settings(home),
        *check_variables(schema, home, environ),
        *check_files(home),
    ]


def check_hooks(home: Home, environ: Mapping[str, str]) -> Iterator[CompatibilityRow]:
    for folder in HermesFolderSource(home.hooks, "home").list():
        yield _check_folder("hook", folder, home, environ, ())


def check_plugins(home: Home, environ: Mapping[str, str]) -> Iterator[CompatibilityRow]:
    hermes = _read_hermes_hooks(home)
    for place in list_plugin_folders(home):
        for folder in PluginSource(place, "plugins", config=HermesConfig(home.hermes_config)).list():
            row = _check_folder("plugin", folder, home, environ, tuple(_list_unsupported(folder)))
            is_on = folder.name in hermes.enabled and folder.name not in hermes.disabled
            off = "is not in plugins.enabled; to switch it on here: hermes-gateway hooks enable " + folder.name
            yield row if is_on else row._replace(verdict=OFF, why=(off, *row.why))


def _check_folder(
    what: str, folder: HookVersion, home: Home, environ: Mapping[str, str], known: tuple[str, ...]
) -> CompatibilityRow:
    """Errors make it fail; what is another thing here than in Hermes degrades it, and all else is only told."""
    try:
        studied = folder.source.inspect(folder)
    except OSError as error:
        return CompatibilityRow(what, folder.name, FAILS, (f"cannot be read: {error.strerror}",))
    if wrong := [finding for finding in studied.findings if finding.severity == "error"]:
        return CompatibilityRow(what, folder.name, FAILS, tuple(map(_format_finding, wrong)))
    lacking: tuple[str, ...] = ()
    if studied.manifest:
        outside = read_environment(environ, home.env)
        lacking = tuple(find_missing_needs(studied.manifest, outside.environ, studied.manifest.requires.platforms, ()))
    reached = list(find_unsupported_imports(folder.name, read_code(folder).files))
    degrades = bool(reached or known or lacking)
    fails = any(reach.verdict == "missing" and not reach.is_caught for reach in reached)
    if studied.manifest and studied.manifest.patches and not studied.manifest.acts and not fails:
        return CompatibilityRow(what, folder.name, WITHOUT_EFFECT, tuple(map(_format_finding, studied.findings)))
    told = dict.fromkeys(
        [
            *(_format_finding(reach.finding) for reach in reached),
            *map(_format_finding, studied.findings),
            *known,
            *lacking,
        ]
    )
    return CompatibilityRow(what, folder.name, FAILS if fails else DEGRADES if degrades else WORKS, tuple(told))


def _format_finding(finding: Finding) -> str:
    return f"{finding.place}: {finding.what}; {finding.remedy}"


def _list_unsupported(folder: HookVersion) -> Iterator[str]:
    """What a plugin registers that is nothing here."""
    source = join_python_files(read_code(folder).files)
    for name in dict.fromkeys(found.decode() for found in _HOOK_NAME.findall(source)):
        if name not in HERMES_HOOKS:
            yield f"its hook {name} never fires here: {describe_unsupported(name)}"
    for word in dict.fromkeys(found.decode() for found in _REGISTERS.findall(source)):
        if word not in SUPPORTED_REGISTRATIONS:
            yield f"ctx.register_{word} is not offered here; the rest of it works"


def check_settings(home: Home) -> Iterator[CompatibilityRow]:
    if not home.hermes_config.exists():
        return
    tree = read_yaml(home.hermes_config, FILE_LIMIT, name=str(home.hermes_config))
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(tree.root.place)
    for key in root:
        verdict, why = SECTIONS.get(key, (OFF, "Hermes's own affair; nothing here reads it"))
        yield CompatibilityRow("config.yaml", key, verdict, (why,))
    shell = ShellHookSource(home.hermes_config, HermesConfig(home.hermes_config))
    for one in map(shell.inspect, shell.list()):
        if said := tuple(map(_format_finding, one.findings)):
            yield CompatibilityRow("shell hook", one.name, DEGRADES, said)
    for finding in (*tree.findings, *_read_hermes_hooks(home).findings):
        yield CompatibilityRow("config.yaml", str(finding.place), FAILS, (_format_finding(finding),))


def _read_hermes_hooks(home: Home) -> HermesHooks:
    return read_hermes_config(home.hermes_config) if home.hermes_config.exists() else HermesHooks()


def check_variables(schema: SettingsSchema, home: Home, environ: Mapping[str, str]) -> Iterator[CompatibilityRow]:
    """Of `.env` alone: names, never values."""
    outside = read_environment({}, home.env)
    keys = {variable: provider for provider, offer in PROVIDERS.items() for variable in offer[1:] if variable}
    works = {
        **{name: f"reaches models of {provider}" for name, provider in keys.items()},
        **{name: f"opens {', '.join(opened)} to everybody" for name, opened in schema.allow_all_variables.items()},
        **{name.variable: f"is {'.'.join(name.path)}" for name in schema.hermes_variables},
    }
    for name in outside.values:
        reason = None if name in works else schema.unsupported_variables.get(name)
        why = reason or works.get(name, "hooks that name it get it; nothing else reads it")
        yield CompatibilityRow(".env", name, DEGRADES if reason else WORKS, (why,))
    for finding in outside.findings:
        yield CompatibilityRow(".env", str(finding.place), DEGRADES, (_format_finding(finding),))
    if home.env.exists() and environ.get("HERMES_HOME", "") not in ("", str(home.root)):
        yield CompatibilityRow(
            ".env", "HERMES_HOME", DEGRADES, ("the environment names another home than the one looked at",)
        )


def check_files(home: Home) -> Iterator[CompatibilityRow]:
    known: tuple[tuple[Path, str, Any], ...] = (
        (home.boot_md, WORKS, "the agent carries it out at every start; see: hermes-gateway hooks info boot-md"),
        (home.skills, WORKS, "the agent loads them"),
        (home.hermes_state, OFF, "Hermes's conversations stay with Hermes; new ones begin here"),
        (home.root / "cron", OFF, "Hermes's own schedule; here a hook has a `schedule:`"),
        (home.root / "SOUL.md", OFF, "not read; write its text into agents.main.instructions"),
    )
    for path, verdict, why in known:
        if path.exists():
            yield CompatibilityRow("file", path.name, verdict, (why,))
