"""A configuration from texts: what the sources hold, what comes of it, and what is said about it."""

from collections.abc import Mapping
from types import MappingProxyType

from gateway.adapters.shared.folder import load_settings_schema
from gateway.config.home import Home
from gateway.config.loading import Configuration, read_configuration
from gateway.yaml_source.tree import Finding

SCHEMA = load_settings_schema()
NOTHING: Mapping[str, str] = MappingProxyType({})


def right(
    home: Home, text: str = "", env: str = "", chosen: Mapping[str, str] = NOTHING, /, **environ: str
) -> Configuration:
    """The configuration from these sources; there may be warnings, but no errors."""
    configuration, findings = look(home, text, env, chosen, **environ)
    assert configuration is not None, [str(finding) for finding in findings]
    return configuration


def look(
    home: Home, text: str = "", env: str = "", chosen: Mapping[str, str] = NOTHING, /, **environ: str
) -> tuple[Configuration | None, list[Finding]]:
    home.config.write_text(text or "# nothing\n")
    home.config.chmod(0o600)
    home.env.write_text(env)
    home.env.chmod(0o600)
    return read_configuration(SCHEMA, home, environ, chosen)


def said(home: Home, text: str = "", env: str = "", /, **environ: str) -> list[str]:
    """The findings, with short names for the files."""
    _, findings = look(home, text, env, **environ)
    names = ((f"{home.own_folder}/", ""), (f"{home.root}/", ""))
    lines = [str(finding) for finding in findings]
    for long, short in names:
        lines = [line.replace(long, short) for line in lines]
    return lines
