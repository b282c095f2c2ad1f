"""The settings for readers: a row for each, with its kind, its default and the variables that mean it."""

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import NODEFAULT, inspect

from gateway.config.fields import Secret, is_reloadable
from gateway.config.platform_settings import PlatformSettings
from gateway.config.schema import SettingsSchema
from gateway.config.settings import ModelSettings, PlatformIds
from gateway.yaml_source.json_schema import initial_value_of, text_of, unit_of
from gateway.yaml_source.scalars import format_value

NAME_PLACEHOLDER = "NAME"  # stands for the names that people choose


class SettingRow(NamedTuple):
    """One setting: its whole name, what it can be, what it is by default, what it does, which variables mean it.

    is_reloadable: a reload puts a change into force.
    """

    name: str
    kind: str
    default: str
    does: str
    variables: tuple[str, ...]
    is_reloadable: bool


def list_settings(schema: SettingsSchema) -> Iterator[SettingRow]:
    """Every setting, in the order of the file."""
    variables: dict[str, list[str]] = {}
    for name in (*schema.hermes_variables, *schema.own_variables):
        variables.setdefault(".".join(name.path), []).append(name.variable)
    variables["access.everybody"] += schema.allow_all_variables
    variables |= {f"platforms.{name}.accounts": [variable] for name, variable in schema.account_lists.items()}
    for row in _list_settings(inspect.type_info(schema.settings), "", "", False):
        yield row._replace(variables=tuple(variables.get(row.name, ())))


def _list_settings(struct: inspect.Type, prefix: str, about: str, within: bool) -> Iterator[SettingRow]:
    assert isinstance(struct, inspect.StructType)
    for field in struct.fields:
        name, bare = f"{prefix}{field.encode_name}", _unwrap_metadata(field.type)
        does, reloaded = f"{about}{text_of(field.type)}", within or is_reloadable(field.type)
        if isinstance(bare, inspect.StructType):
            yield from _list_settings(
                bare, f"{name}.", f"{does}: " if does and issubclass(bare.cls, PlatformIds) else "", reloaded
            )
            continue
        yield SettingRow(name, _describe_type(field.type), _format_default(field), does, (), reloaded)
        inner = _unwrap_metadata(
            getattr(bare, "value_type", None) or getattr(bare, "item_type", None) or inspect.AnyType()
        )
        # The settings of a model stand under `model`, those of a network's further bots under the network.
        if isinstance(inner, inspect.StructType) and not issubclass(inner.cls, ModelSettings | PlatformSettings):
            yield from _list_settings(
                inner,
                f"{name}.{NAME_PLACEHOLDER}." if isinstance(bare, inspect.DictType) else f"{name}[].",
                "",
                reloaded,
            )


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
