"""The settings as others need them: a JSON schema for editors, and the values in force."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import Struct, inspect

from gateway.config.fields import Secret, is_reloadable
from gateway.config.loading import Configuration
from gateway.config.schema import SettingsSchema, unwrap_type
from gateway.config.secrets import replace_secret_arguments, replace_secrets
from gateway.config.settings import HookOverrides, HooksSettings, PlatformIds
from gateway.yaml_source.binder import describe_shape
from gateway.yaml_source.json_schema import build_json_schema, text_of, unit_of
from gateway.yaml_source.units import format_duration, format_size


class SettingValue(NamedTuple):
    """A setting in force, as text, and its origin."""

    name: str
    value: str
    origin: str


def build_settings_schema(schema: SettingsSchema) -> dict[str, Any]:
    """Build the JSON schema of `config.yaml`."""
    return build_json_schema(schema.settings, "hermes-gateway: config.yaml", {HooksSettings: HookOverrides})


def values_of(settings: Struct) -> dict[str, Any]:
    """Return the settings as the file would write them, with secrets masked and empty ones left out."""
    struct = describe_shape(type(settings))
    return {
        field.encode_name: _value_of(value, field.type)
        for field in struct.fields
        if (value := getattr(settings, field.name)) != Secret() and value is not None
    }


def list_values(configuration: Configuration, data: Any, within: str = "") -> list[SettingValue]:
    """List the settings below `within`, whose values are `data`, with their origins."""
    return [SettingValue(name, value, _find_origin(configuration, name)) for name, value in _flatten(data, within)]


def describe_setting(schema: SettingsSchema, name: str) -> str:
    """Return what the reference says about a setting; an entry without a sentence has that of its list."""
    kind: inspect.Type = describe_shape(schema.settings)
    said = ""
    for part in name.split("."):
        match unwrap_type(kind):
            case inspect.StructType(cls=cls, fields=fields):
                kind = next((field.type for field in fields if field.encode_name == part), inspect.AnyType())
                text = text_of(kind)
                said = f"{said}: {text}" if issubclass(cls, PlatformIds) else text or said
            case inspect.DictType(value_type=value):
                kind = value
            case _:
                break
    return said


def list_differences(before: Any, after: Any, within: str = "", at_restart: bool = False) -> Iterator[str]:
    """Yield the full names of the settings that differ; `at_restart`: only those that no reload puts into force."""
    if not isinstance(before, Struct):
        yield from [within] if before != after else []
        return
    for field in describe_shape(type(before)).fields:
        if not (at_restart and is_reloadable(field.type)):
            name = f"{within}.{field.name}".lstrip(".")
            yield from list_differences(getattr(before, field.name), getattr(after, field.name), name, at_restart)


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flatten(data: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and data:
        for key, below in data.items():
            yield from _flatten(below, f"{name}.{key}" if name else key)
    else:
        yield name, as_text(data)


def _find_origin(configuration: Configuration, name: str) -> str:
    parts = name.split(".")
    above = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    place = next((configuration.origins[one] for one in above if one in configuration.origins), None)
    return str(place) if place else "default"


def _value_of(value: Any, kind: inspect.Type) -> Any:
    unit = unit_of(kind)
    match value:
        case Struct():
            return values_of(value)
        case Secret():
            return str(value)
        case float() if unit == "duration":
            return format_duration(value)
        case int() if unit == "size":
            return format_size(value)
        case dict():
            return {key: _value_of(below, inspect.AnyType()) for key, below in value.items()}
        case str():
            return replace_secrets(value)
        case tuple() | list() if value and all(isinstance(one, str) for one in value):
            return list(replace_secret_arguments(value))
        case tuple() | list():
            return [_value_of(below, inspect.AnyType()) for below in value]
        case _:
            return value
