"""The checks of `doctor --hermes`: which parts of a Hermes home work here, which degrade, and why. It only reads.

It imports and runs nothing: it judges a hook or a plugin by its files. The results of trial runs (`--load`) are added.
"""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from gateway.config.environment import read_environment
from gateway.config.home import Home
from gateway.config.providers import PROVIDERS
from gateway.config.schema import SettingsSchema
from gateway.config.settings import HooksSettings
from gateway.errors import AgentError
from gateway.hermes.config import HermesConfig, read_hermes_config
from gateway.hermes.dialects import HERMES
from gateway.hermes.imports import find_missing_imports, select_imports
from gateway.hermes.load_trial import LoadResult
from gateway.hermes.missing_plugins import make_missing_source
from gateway.hermes.package_files import describe_missing_imports
from gateway.hermes.patches import PATCHES, why_idle
from gateway.hermes.plugin.hook_table import HERMES_HOOKS, NO_NETWORK, REGISTERS_NOTHING, describe_unsupported
from gateway.hermes.plugin.open_calls import MIDDLEWARE
from gateway.hermes.plugin_manifest import join_python_files
from gateway.hermes.plugin_packages import make_package_source
from gateway.hermes.registration_source import read_registrations
from gateway.hermes.shell_commands import ALLOWLIST_FILE
from gateway.hermes.sources import (
    ShellHookSource,
    WebhookSource,
    list_plugin_folders,
    make_plugin_source,
)
from gateway.hermes.state_file import LEFT_TO_THEM, find_owner, read_content
from gateway.hermes.unsupported_imports import find_unsupported_imports
from gateway.hooks.folders.readiness import find_missing_needs, why_not_enabled
from gateway.hooks.places.dialect import OURS
from gateway.hooks.places.folder_source import GROUP_WRITABLE, FolderSource
from gateway.hooks.places.inspection import read_code
from gateway.hooks.places.sources import HookVersion
from gateway.hooks.places.switches import HookSwitches
from gateway.jobs.cron_file import read_cron_jobs
from gateway.yaml_source.parser import read_yaml
from gateway.yaml_source.tree import Finding, YamlMapping
from gateway.yaml_source.units import format_count

FILE_LIMIT = 2_000_000
MOST_SHARED = 3  # folders that a group may write to; from then on, one row tells of all
WORKS, DEGRADES, BROKEN, OFF, WITHOUT_EFFECT = "works", "degrades", "broken", "off", "without effect"
PENDING = "pending"  # a person has to allow it to run
# The registrations of plugins that have an effect here.
SUPPORTED_REGISTRATIONS = frozenset({"hook", "command", "tool", "skill"})
_REGISTERS = re.compile(rb"\.register_(\w+)\(")
_MIDDLEWARE = re.compile(rb"""\.register_middleware\(\s*(?:kind\s*=\s*)?["'](\w+)["']""")

# The sections of Hermes's config.yaml, with their verdicts here.
SECTIONS: Mapping[str, tuple[str, str]] = {
    "hooks": (
        WORKS,
        "shell hooks run as Hermes approved them, or once trusted: hermes-gateway hooks trust NAME; webhooks are sent",
    ),
    "hooks_auto_accept": (OFF, "shell hooks run once they are trusted here: hermes-gateway hooks trust NAME"),
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
    "quick_commands": (OFF, "not offered here; a plugin can bring a command: ctx.register_command"),
}


class CompatibilityRow(NamedTuple):
    """One part of the home: its kind, its name, the verdict, and why."""

    what: str
    name: str
    verdict: str
    why: tuple[str, ...] = ()


def check_hermes_home(
    schema: SettingsSchema,
    home: Home,
    environ: Mapping[str, str],
    settings: HooksSettings,
    loads: Mapping[str, LoadResult] | None = None,
) -> list[CompatibilityRow]:
    """Check all parts of Hermes in this home, in the order of display; `loads` are the trial runs, by name."""
    return [
        *_join_shared(list(check_folders(home, environ, settings, loads or {})), home),
        *check_settings(home, settings),
        *check_variables(schema, home, environ),
        *check_files(home),
    ]


def _join_shared(rows: list[CompatibilityRow], home: Home) -> Iterator[CompatibilityRow]:
    """Replace the warnings about folders that a group may write to by one row: a usual umask causes them all."""
    shared = [row for row in rows if any(GROUP_WRITABLE in why for why in row.why)]
    if len(shared) < MOST_SHARED:
        yield from rows
        return
    for row in rows:
        yield row._replace(why=tuple(why for why in row.why if GROUP_WRITABLE not in why))
    what = f"of {len(shared)} hooks and plugins: {GROUP_WRITABLE}"
    helps = f"chmod -R g-w {shlex.quote(str(home.hooks))} {shlex.quote(str(home.plugins))}"
    yield CompatibilityRow("file", "folders", WORKS, (f"{what}; where others are in that group: {helps}",))


def check_folders(
    home: Home, environ: Mapping[str, str], settings: HooksSettings, loads: Mapping[str, LoadResult]
) -> Iterator[CompatibilityRow]:
    """Check hooks and plugins; a hook that was tried is judged by its trial."""
    config, switches = HermesConfig(home.hermes_config), HookSwitches(home.hook_state)
    plugins = [make_plugin_source(place, "plugins", config) for place in list_plugin_folders(home)]
    others = (make_package_source(home, environ), make_missing_source(home, environ))
    for source in (FolderSource(home.hooks, "home", dialects=(OURS, HERMES)), *plugins, *others):
        for version in source.list():
            namesakes = home.hooks if source.prefix else home.plugins
            written_for = settings.find_overrides(version.name, version.short).written_for
            folder = replace(version, has_namesake=(namesakes / version.bare_name).is_dir(), written_for=written_for)
            what = "plugin" if source.prefix else "hook"
            load = loads.get(folder.name)
            row = _check_folder(what, folder, home, environ, is_loaded=load is not None and not load.error)
            if load is not None:
                row = _apply_load(row, load)
            elif folder.is_ready and (off := _why_off(folder, settings, switches)):
                row = row._replace(verdict=OFF, why=(off, *row.why))
            elif folder.is_ready and settings.trust == "pinned" and row.verdict != BROKEN:
                row = _apply_trust(row, folder.source.inspect(folder), switches)
            yield row


def _why_off(folder: HookVersion, settings: HooksSettings, switches: HookSwitches) -> str:
    try:
        return why_not_enabled(folder.source.inspect_manifest(folder), settings, switches)
    except OSError:
        return ""


def _apply_trust(
    row: CompatibilityRow, version: HookVersion, switches: HookSwitches, why: str = ""
) -> CompatibilityRow:
    """Mark a hook as pending that is not trusted as it is now; the command that trusts it comes first."""
    if switches.is_trusted(version.name, version.digest):
        return row
    helps = f"{why}read it, then run: hermes-gateway hooks trust {version.called}"
    return row._replace(verdict=PENDING, why=(helps, *row.why))


def _apply_load(row: CompatibilityRow, load: LoadResult) -> CompatibilityRow:
    """Judge by the trial run rather than by the source; but a start does not make up for missing parts."""
    if load.error:
        others = (why for why in row.why if why.partition(": ")[2] not in load.error)
        verdict = WITHOUT_EFFECT if row.verdict == WITHOUT_EFFECT else BROKEN
        return row._replace(verdict=verdict, why=(f"it does not start: {load.error}", *others))
    if load.is_idle:
        return row._replace(verdict=WITHOUT_EFFECT, why=tuple(dict.fromkeys((*row.why, *load.remarks))))
    verdict = DEGRADES if load.remarks or row.verdict == BROKEN else row.verdict
    return row._replace(verdict=verdict, why=tuple(dict.fromkeys((*load.remarks, *row.why))))


def _check_folder(
    what: str, folder: HookVersion, home: Home, environ: Mapping[str, str], *, is_loaded: bool
) -> CompatibilityRow:
    """Judge one folder: errors break it, differences from Hermes degrade it, and the rest is only mentioned.

    `is_loaded`: it was tried, so the packages that it imports at once are present.
    """
    if folder.state == "disabled":
        return CompatibilityRow(what, folder.bare_name, OFF, (folder.reason,))
    try:
        studied = folder.source.inspect(folder)
    except OSError as error:
        return CompatibilityRow(what, folder.bare_name, BROKEN, (f"cannot be read: {error.strerror or error}",))
    if studied.manifest is None or any(finding.severity == "error" for finding in studied.findings):
        wrong = [_format_finding(finding) for finding in studied.findings if finding.severity == "error"]
        return CompatibilityRow(what, folder.bare_name, BROKEN, tuple(wrong))
    manifest, outside, files = studied.manifest, read_environment(environ, home.env), read_code(folder).files
    places = [str(home.hook_state / "packages" / folder.name), *sys.path]
    needs = find_missing_needs(manifest, outside.environ, manifest.requires.platforms, places, folder.called)
    found = find_missing_imports(folder.path, manifest.entry, files, places)
    absent = [one for one in found if not is_loaded or (one.is_sure and not one.is_fatal)]
    imported = describe_missing_imports(folder, absent, places)
    further = (need for need in needs if not any(line.endswith(need) for line in imported))
    lacking = [*imported, *further]
    patches = manifest.reading.noted.get(PATCHES, ())
    reached = list(find_unsupported_imports(folder.path, manifest.entry, files, patches))
    fails = any(one.is_fatal for one in absent) or any(
        reach.verdict == "missing" and not reach.is_caught for reach in reached
    )
    if why_idle(manifest):
        return CompatibilityRow(what, folder.bare_name, WITHOUT_EFFECT, tuple(map(_format_finding, studied.findings)))
    offer = _list_registrations(folder, manifest.entry) if folder.source.prefix else PluginEffect()
    told = [*map(_format_finding, (*folder.source.review(studied), *studied.findings))]
    doubt = studied.dialect.describe_doubt(manifest)
    told += [f"{doubt}: until then it counts as a guard"] if doubt else []
    verdict = BROKEN if fails else DEGRADES if reached or offer.unsupported or lacking or patches else WORKS
    if verdict == DEGRADES and offer.is_idle:
        verdict = WITHOUT_EFFECT
    return CompatibilityRow(
        what, folder.bare_name, verdict, tuple(dict.fromkeys((*lacking, *told, *offer.unsupported)))
    )


def _format_finding(finding: Finding) -> str:
    return f"{finding.place}: {finding.what}; {finding.remedy}"


class PluginEffect(NamedTuple):
    """The registrations of a plugin that have no effect here; `is_idle`: that is true of all of them."""

    unsupported: tuple[str, ...] = ()
    is_idle: bool = False


def _list_registrations(folder: HookVersion, entry: str) -> PluginEffect:
    files = read_code(folder).files
    source = join_python_files(files)
    seen = read_registrations(folder.bare_name, entry, select_imports(folder.bare_name, entry, files))
    names = sorted(seen.names)
    words = dict.fromkeys(found.decode() for found in _REGISTERS.findall(source))
    dead = [name for name in names if name not in HERMES_HOOKS]
    unsupported = [f"its hook {name} never fires here: {describe_unsupported(name)}" for name in dead]
    kinds = sorted({kind.decode() for kind in _MIDDLEWARE.findall(source)} - MIDDLEWARE.keys())
    offered = SUPPORTED_REGISTRATIONS | ({"middleware"} if _MIDDLEWARE.search(source) and not kinds else set())
    missing = [word for word in words if word not in offered]
    others = words.keys() - set(missing) - {"hook"}
    is_hook_alive = seen.place is not None or len(dead) < len(names)
    is_idle = not (others or is_hook_alive or b".subscribe(" in source)
    if not (names or words or seen.place or b".subscribe(" in source):
        return PluginEffect((f"{REGISTERS_NOTHING}: only what it starts itself runs",))
    rest = "" if is_idle else "; the rest of it works"
    unsupported += [f"ctx.register_{word} is not offered here{rest}" for word in missing]
    if "platform" in missing:
        unsupported.append(NO_NETWORK)
    if "middleware" in missing:
        what = ", ".join(kinds or ["middleware"])
        unsupported.append(f"its {what} is never called: what it would stop or change goes on as it is")
    return PluginEffect(tuple(unsupported), is_idle and bool(unsupported))


def check_settings(home: Home, settings: HooksSettings) -> Iterator[CompatibilityRow]:
    if not home.hermes_config.exists():
        return
    tree = read_yaml(home.hermes_config, FILE_LIMIT, name=str(home.hermes_config))
    root = tree.root if isinstance(tree.root, YamlMapping) else YamlMapping(tree.root.place)
    entries = list(_check_entries(home, settings))
    for key in root:
        verdict, why = SECTIONS.get(key, (OFF, "Hermes's own affair; nothing here reads it"))
        if key == "hooks" and any(row.verdict == PENDING for row in entries):
            verdict, why = (
                PENDING,
                "a shell hook that Hermes has not approved as it is now runs once it is trusted here",
            )
        yield CompatibilityRow("config.yaml", key, verdict, (why,))
    yield from entries
    for finding in (*tree.findings, *read_hermes_config(home.hermes_config).findings):
        yield CompatibilityRow("config.yaml", str(finding.place), BROKEN, (_format_finding(finding),))


def _check_entries(home: Home, settings: HooksSettings) -> Iterator[CompatibilityRow]:
    """Check every shell hook and webhook."""
    config, switches = HermesConfig(home.hermes_config), HookSwitches(home.hook_state)
    consent = _find_consent(home)
    sources = {"shell hook": ShellHookSource(config.path, config), "webhook": WebhookSource(config.path, config)}
    for what, source in sources.items():
        for one in map(source.inspect, source.list()):
            is_wrong = any(finding.severity == "error" for finding in one.findings)
            never = one.manifest is not None and not one.manifest.subscriptions
            verdict = BROKEN if is_wrong else WITHOUT_EFFECT if never else DEGRADES if one.findings else WORKS
            row = CompatibilityRow(what, one.name, verdict, tuple(map(_format_finding, one.findings)))
            if off := why_not_enabled(one, settings, switches):
                row = row._replace(verdict=OFF, why=(off, *row.why))
            elif not switches.find_trusted(one.name) and one.is_approved:
                pass  # so it is trusted from its first look on
            elif (one.dialect.needs_trust or settings.trust == "pinned") and verdict in (WORKS, DEGRADES):
                row = _apply_trust(row, one, switches, consent if one.dialect.needs_trust else "")
            yield row


def _find_consent(home: Home) -> str:
    """Say what Hermes's own record of consent means for a shell hook that is not trusted here."""
    if (home.root / ALLOWLIST_FILE).exists():
        return f"{ALLOWLIST_FILE} of Hermes does not approve it as it is now; "
    tree = read_yaml(home.hermes_config, FILE_LIMIT, name=str(home.hermes_config))
    says = isinstance(tree.root, YamlMapping) and tree.root.get("hooks_auto_accept") is not None
    return "`hooks_auto_accept` is not taken over; " if says else ""


def check_variables(schema: SettingsSchema, home: Home, environ: Mapping[str, str]) -> Iterator[CompatibilityRow]:
    """Check the variables in `.env`; only names are shown, never values."""
    outside = read_environment({}, home.env)
    keys = {variable: provider for provider, offer in PROVIDERS.items() for variable in offer.variables}
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


def describe_state(path: Path) -> tuple[str, str]:
    content = read_content(path) if find_owner(path) == "ours" else "rebuilt"
    if content == "ours":
        return WORKS, "written by us, for hooks that read it, as long as no other program writes to it"
    if content == "shared":
        return DEGRADES, f"was written by us, and others have written to it since: it is {LEFT_TO_THEM}"
    return OFF, "Hermes's conversations stay with Hermes; new ones begin here"


def describe_jobs(path: Path) -> tuple[str, str]:
    try:
        found = read_cron_jobs(path)
    except AgentError as error:
        return BROKEN, str(error)
    if not found:
        return OFF, "Hermes has no jobs there; here they are those of: hermes-gateway jobs list"
    whole = not any(one.reason or one.left_out for one in found)
    count = format_count(len(found), "job")
    return WORKS if whole else DEGRADES, f"{count} of Hermes can come over, paused: hermes-gateway jobs import"


def check_files(home: Home) -> Iterator[CompatibilityRow]:
    known: tuple[tuple[Path, str, Any], ...] = (
        (home.boot_md, WORKS, "the agent carries it out at every start; see: hermes-gateway hooks info boot-md"),
        (home.skills, WORKS, "the agent loads them"),
        (home.hermes_state, *describe_state(home.hermes_state)),
        (home.root / "cron", *describe_jobs(home.hermes_jobs)),
        (home.root / "SOUL.md", OFF, "not read; write its text into agents.main.instructions"),
        (home.root / "memories", OFF, "not read; say to the agent what it should remember of that"),
        (
            home.root / "pairing",
            OFF,
            "not read; people who were paired there ask again here: hermes-gateway pairing list",
        ),
    )
    for path, verdict, why in known:
        if path.is_file() or (path.is_dir() and any(path.iterdir())):
            yield CompatibilityRow("file", path.name, verdict, (why,))
