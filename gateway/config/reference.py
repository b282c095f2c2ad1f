"""The settings as others need them: a JSON schema for editors, the reference for readers, and the values in force."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import NODEFAULT, Struct, inspect

from gateway.config.fields import Secret
from gateway.config.loading import Configuration
from gateway.config.platform_settings import PlatformSettings
from gateway.config.schema import SettingsSchema
from gateway.config.secrets import replace_secret_arguments, replace_secrets
from gateway.config.settings import HookOverrides, HooksSettings, ModelSettings, PlatformIds
from gateway.yaml_source.json_schema import build_json_schema, initial_value_of, text_of, unit_of
from gateway.yaml_source.scalars import format_value
from gateway.yaml_source.units import format_duration, format_size

NAME_PLACEHOLDER = "NAME"  # stands for the names that people choose


class SettingRow(NamedTuple):
    """One setting: its whole name, what it can be, what it is by default, what it does, which variables mean it."""

    name: str
    kind: str
    default: str
    does: str
    variables: tuple[str, ...]


class SettingValue(NamedTuple):
    """One setting as it is in force, as text, and where it was set."""

    name: str
    value: str
    origin: str


def list_settings(schema: SettingsSchema) -> Iterator[SettingRow]:
    """Every setting, in the order of the file."""
    variables: dict[str, list[str]] = {}
    for name in (*schema.hermes_variables, *schema.own_variables):
        variables.setdefault(".".join(name.path), []).append(name.variable)
    variables["access.everybody"] += schema.allow_all_variables
    variables |= {f"platforms.{name}.accounts": [variable] for name, variable in schema.account_lists.items()}
    for row in _list_settings(_struct_of(schema.settings), "", ""):
        yield row._replace(variables=tuple(variables.get(row.name, ())))


def _list_settings(struct: inspect.StructType, prefix: str, about: str) -> Iterator[SettingRow]:
    for field in struct.fields:
        name, bare = f"{prefix}{field.encode_name}", _unwrap_metadata(field.type)
        does = f"{about}{text_of(field.type)}"
        if isinstance(bare, inspect.StructType):
            yield from _list_settings(
                bare, f"{name}.", f"{does}: " if does and issubclass(bare.cls, PlatformIds) else ""
            )
            continue
        yield SettingRow(name, _describe_type(field.type), _format_default(field), does, ())
        inner = _unwrap_metadata(
            getattr(bare, "value_type", None) or getattr(bare, "item_type", None) or inspect.AnyType()
        )
        # The settings of a model stand under `model`, those of a network's further bots under the network.
        if isinstance(inner, inspect.StructType) and not issubclass(inner.cls, ModelSettings | PlatformSettings):
            yield from _list_settings(
                inner, f"{name}.{NAME_PLACEHOLDER}." if isinstance(bare, inspect.DictType) else f"{name}[].", ""
            )


def build_settings_schema(schema: SettingsSchema) -> dict[str, Any]:
    """The JSON schema of `config.yaml`."""
    return build_json_schema(schema.settings, "hermes-gateway: config.yaml", {HooksSettings: HookOverrides})


def values_of(settings: Struct) -> dict[str, Any]:
    """The settings as the file would write them; secrets are not shown, and left out where there are none."""
    struct = _struct_of(type(settings))
    return {
        field.encode_name: _value_of(value, field.type)
        for field in struct.fields
        if (value := getattr(settings, field.name)) != Secret() and value is not None
    }


def list_values(configuration: Configuration, data: Any, within: str = "") -> list[SettingValue]:
    """Each setting below `within`, whose values are `data`, with its origin."""
    return [SettingValue(name, value, _find_origin(configuration, name)) for name, value in _flatten(data, within)]


def list_differences(before: Any, after: Any, within: str = "") -> Iterator[str]:
    """The names of the settings that differ, with those of their sections before them."""
    if not isinstance(before, Struct):
        yield from [within] if before != after else []
        return
    for field in before.__struct_fields__:
        yield from list_differences(getattr(before, field), getattr(after, field), f"{within}.{field}".lstrip("."))


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


def _struct_of(struct: type[Struct]) -> inspect.StructType:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return described


def _unwrap_metadata(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _format_default(field: inspect.Field) -> str:
    default = initial_value_of(field)
    if default is NODEFAULT:
        return "must be given"
    if default is None or default in ("", (), {}) or isinstance(default, Secret):
        return ""
    unit = unit_of(field.type)
    if unit or (isinstance(default, int | float) and not isinstance(default, bool)):
        return format_value(default, unit)
    if isinstance(default, bool):
        return str(default).lower()
    return f"[{', '.join(map(str, default))}]" if isinstance(default, tuple) else str(default)


def _describe_type(kind: inspect.Type) -> str:
    """In words."""
    if unit := unit_of(kind):
        return unit
    bare = _unwrap_metadata(kind)
    if isinstance(bare, inspect.UnionType):  # the file says None by saying nothing
        return " | ".join(_describe_type(one) for one in bare.types if not isinstance(one, inspect.NoneType))
    match bare:
        case inspect.LiteralType(values=choices):
            return " | ".join(f"`{choice}`" for choice in sorted(choices, key=str))
        case inspect.BoolType():
            return "`true` | `false`"
        case inspect.IntType():
            return "whole number"
        case inspect.FloatType():
            return "number"
        case inspect.CustomType():
            return "secret"
        case inspect.VarTupleType(item_type=item):
            return f"list of {_describe_items(item)}"
        case inspect.DictType(value_type=value):
            return "mapping" if isinstance(value, inspect.AnyType) else f"mapping of names to {_describe_items(value)}"
        case _:
            return "text"


def _describe_items(kind: inspect.Type) -> str:
    match _unwrap_metadata(kind):
        case inspect.StructType(cls=cls):
            return "sections like `model`" if cls is ModelSettings else "sections"
        case inspect.CustomType():
            return "secrets"
        case inspect.UnionType():
            return "texts and mappings"
        case inspect.IntType():
            return "whole numbers"
        case inspect.LiteralType():
            return _describe_type(kind)
        case _:
            return "texts"
