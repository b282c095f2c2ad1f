"""Documents made from the shape of the settings agree with the way they are really read."""

from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from gateway.config.home import Home
from gateway.config.loading import load_configuration
from gateway.config.permissions import prepare_home
from gateway.config.reference import build_settings_schema, describe_setting, values_of
from gateway.config.settings import Settings
from tests.config.sources import SCHEMA
from tests.setting_rows import list_settings

FULL = """
gateway: {shutdown_timeout: 45s}
model: {provider: openai, name: m, fallbacks: [fast], options: {temperature: 0.2}, input_price: 1.5}
models: {fast: {provider: ollama, name: small}}
agents: {main: {tools: [shell], max_time: 5m}, other: {agents: [main]}}
routes: [{agent: other, platform: telegram, user: 5}]
tools: {roots: [work], shell: allow, output_limit: 32KiB}
mcp_servers: {files: {command: npx, args: [-y, x]}, far: {url: 'https://x/mcp', timeout: 10s}}
hooks: {enabled: [timing], long-task: {options: {threshold: 5}}}
platforms: {telegram: {enabled: false, home_channel: -100123}, discord: {auto_thread: no}}
access: {users: {telegram: [1, 2]}, strangers: ignore, user_commands: [help]}
sessions: {reset: both, idle: 2h, daily_at: 5, busy: interrupt}
journal: {retention: 0, max_size: 1.5GB}
logs: {level: debug, format: json, size: 1MB, keep: 2}
"""


def full(tmp_path: Path) -> Settings:
    home = Home(tmp_path / "home")
    prepare_home(home)
    home.config.write_text(FULL)
    return load_configuration(SCHEMA, home, {}).settings


def test_every_setting_is_explained_and_has_a_kind() -> None:
    listed = list(list_settings(SCHEMA))
    assert [row.name for row in listed if not (row.kind and row.does)] == []
    names = [row.name for row in listed]
    assert len(names) == len(set(names))


def test_a_setting_in_force_is_described_as_in_the_reference() -> None:
    rows = [row for row in list_settings(SCHEMA) if "[]" not in row.name]
    assert [row.name for row in rows if describe_setting(SCHEMA, row.name) != row.does] == []
    assert describe_setting(SCHEMA, "mcp_servers.far.env.KEY") == describe_setting(SCHEMA, "mcp_servers.far.env")


def test_every_variable_stands_at_its_setting() -> None:
    listed = {variable for row in list_settings(SCHEMA) for variable in row.variables}
    assert {name.variable for name in SCHEMA.own_variables} <= listed


def test_the_values_in_force_are_a_configuration_again(tmp_path: Path) -> None:
    settings = full(tmp_path)
    home = Home(tmp_path / "again")
    prepare_home(home)
    home.config.write_text(yaml.safe_dump(values_of(settings)))
    assert load_configuration(SCHEMA, home, {}).settings == settings


def test_durations_and_sizes_are_shown_as_they_are_written(tmp_path: Path) -> None:
    shown = values_of(full(tmp_path))
    assert shown["gateway"]["shutdown_timeout"] == "45s"
    assert shown["sessions"]["idle"] == "2h"
    assert shown["tools"]["output_limit"] == "32KiB"


def test_the_schema_knows_every_setting_and_nothing_else() -> None:
    schema = build_settings_schema(SCHEMA)
    assert same_shape(schema, SCHEMA.settings)
    assert schema["properties"]["logs"]["properties"]["level"] == {
        "description": "the lowest level that is logged",
        "enum": ["debug", "error", "info", "warning"],
        "default": "info",
    }
    assert schema["properties"]["hooks"]["additionalProperties"]["properties"].keys() == {
        "enabled",
        "options",
        "env",
        "isolation",
        "keep",
        "schedule",
        "on_error",
        "agents",
        "written_for",
    }
    assert schema["properties"]["models"]["additionalProperties"]["properties"].keys() >= {"provider", "name"}


def same_shape(schema: dict[str, Any], struct: type[Struct]) -> bool:
    return tuple(schema["properties"]) == struct.__struct_fields__
