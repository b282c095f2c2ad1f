"""One frozen configuration from all sources.

The command line counts most, then the environment, systemd's credentials, `.env`, `config.yaml`, and last the defaults.
Each value has its origin.

  command line ─┐
  environment ──┤                ┌── `schema`: which settings exist
  credentials ──┼─ `merge` ── one tree ── `bind` ── settings ── `checks` ── Configuration
  .env ─────────┤                                    └── findings, each with its place ──┘
  config.yaml ──┘

All sources become one tree, so that every value is checked alike, wherever it comes from. Findings are collected:
`load_configuration` raises an error for the serious ones, `read_configuration` returns all of them.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from gateway.config.checks import check_settings
from gateway.config.environment import Environment, read_environment
from gateway.config.hermes_model import point_to_hermes_model
from gateway.config.home import Home
from gateway.config.merge import merge_sources
from gateway.config.permissions import check_home, make_finding
from gateway.config.providers import DEMO
from gateway.config.schema import SettingsSchema
from gateway.config.secrets import list_secrets
from gateway.config.settings import Settings
from gateway.errors import ConfigError
from gateway.logs.redaction import Redactor
from gateway.yaml_source.binder import bind
from gateway.yaml_source.node_paths import find_node, list_origins, remove_node
from gateway.yaml_source.parser import parse_yaml, read_yaml
from gateway.yaml_source.tree import Finding, SourceLocation, YamlDocument, YamlMapping, YamlNode

FILE_LIMIT = 1_000_000
MOST_ERRORS_SHOWN = 20

_EMPTY: Mapping[str, str] = MappingProxyType({})
_NO_DRAFTS: Mapping[Path, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings, and the other content of the sources.

    schema: the existing settings.
    environ: all variables that hooks may ask for, from the process, the credentials and `.env`.
    secrets: every value that must never be shown; redactor: removes them, and all that has the shape of a network's
        secret, from a text.
    origins: the place of each setting, by its whole name.
    """

    schema: SettingsSchema = field(repr=False)
    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    redactor: Redactor = field(repr=False, compare=False)
    origins: Mapping[str, SourceLocation] = field(repr=False)
    warnings: tuple[Finding, ...] = ()


def load_configuration(
    schema: SettingsSchema, home: Home, environ: Mapping[str, str], chosen: Mapping[str, str] = _EMPTY
) -> Configuration:
    """Return the configuration of a home. `chosen` holds the options of the command line: `logs.level` -> `debug`.

    Raises:
        ConfigError: something is wrong; the message has every finding, each in a line of its own.
    """
    configuration, findings = read_configuration(schema, home, environ, chosen)
    if configuration is None:
        wrong = [str(finding) for finding in findings if finding.severity == "error"]
        more = [f"and {len(wrong) - MOST_ERRORS_SHOWN} more"] if len(wrong) > MOST_ERRORS_SHOWN else []
        raise ConfigError("\n".join(["the configuration is not right", *wrong[:MOST_ERRORS_SHOWN], *more]))
    return configuration


def read_configuration(
    schema: SettingsSchema,
    home: Home,
    environ: Mapping[str, str],
    chosen: Mapping[str, str] = _EMPTY,
    drafts: Mapping[Path, bytes] = _NO_DRAFTS,
) -> tuple[Configuration | None, list[Finding]]:
    """Return the configuration and all findings; after an error, None and the findings. No file is changed.

    `drafts` holds the planned content of the home's files, by their paths.
    """
    findings = list(check_home(home))
    outside = read_environment(environ, home.env, drafts.get(home.env))
    findings += outside.findings
    draft = drafts.get(home.config)
    file = _read_file(home) if draft is None else parse_yaml(draft, str(home.config))
    findings += (*file.findings, *_find_emptied(home))
    if has_errors(file.findings) and isinstance(file.root, YamlMapping) and not file.root.pairs:
        return None, findings
    schema = schema.expand(home, file.root, outside)
    findings += schema.findings
    settings, tree = _bind_settings(
        schema, merge_sources(schema, file.root, outside, chosen, findings), outside, findings
    )
    if settings is not None:
        findings += check_settings(settings, tree, schema)
        if settings.model.provider == DEMO and not settings.model.script:
            findings += point_to_hermes_model(home.hermes_config, home.config)
    if settings is None or has_errors(findings):
        return None, findings
    secrets = frozenset(list_secrets(settings, outside, schema))
    redactor = Redactor(secrets, schema.token_shapes)
    places, environ = MappingProxyType(dict(list_origins(tree))), MappingProxyType(outside.environ)
    return Configuration(schema, settings, environ, secrets, redactor, places, tuple(findings)), findings


def find_schema(schema: SettingsSchema, home: Home, environ: Mapping[str, str]) -> SettingsSchema:
    """Find the schema with the networks of the home, even if its configuration is wrong."""
    return schema.expand(home, _read_file(home).root, read_environment(environ, home.env))


def has_errors(findings: "tuple[Finding, ...] | list[Finding]") -> bool:
    return any(finding.severity == "error" for finding in findings)


def _read_file(home: Home) -> YamlDocument:
    try:
        home.config.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return YamlDocument(YamlMapping(SourceLocation(str(home.config), 1, 1)))
    except OSError:
        pass  # reading it says why it cannot be read
    return read_yaml(home.config, FILE_LIMIT)


def _find_emptied(home: Home) -> Iterator[Finding]:
    """Warn about a file of 0 bytes: a power cut leaves one if the file had just been written."""
    with suppress(OSError):
        if home.config.stat().st_size == 0:
            what = "it has 0 bytes, so the defaults are in effect"
            yield make_finding(home.config, what, "restore it from a backup, or remove it if you want these", "warning")


def _bind_settings(
    schema: SettingsSchema, tree: YamlNode, outside: Environment, findings: list[Finding]
) -> tuple[Settings | None, YamlNode]:
    """Bind the tree to the settings.

    A value of one of Hermes's variables may be valid for Hermes alone: it is then ignored with a warning.
    """
    settings, wrong = bind(tree, schema.settings)
    foreign = {
        outside.values[name.variable].place: name for name in schema.hermes_variables if name.variable in outside.values
    }
    passed_over = [one for one in wrong if one.place in foreign and one.severity == "error"]
    if passed_over:
        for finding in passed_over:
            name = foreign[finding.place]
            if (node := find_node(tree, name.path)) is not None and node.place == finding.place:
                tree = remove_node(tree, name.path)
            what = f"{name.variable} is passed over: {finding.what}"
            findings.append(Finding(finding.place, what, finding.remedy, "warning"))
        settings, wrong = bind(tree, schema.settings)
    findings += wrong
    return settings, tree
