"""The metadata of a setting: for the reader of the reference, for an editor, and for the check of the file."""

from typing import Any, NoReturn, Self

from msgspec import Meta, inspect

from gateway.yaml_source.tree import YamlScalar

HTTP_PATTERN = r"^(https?://\S+)?$"
NATS_PATTERN = r"^((nats|tls)://[^\s@]+)?$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"
WEB_NAME_PATTERN = r"[!-+\--9;-~]{1,200}"  # of a person, from a proxy: printable, without a space, a comma and a colon
WEBSOCKET_PATTERN = r"^(wss?://\S+)?$"


RELOADABLE = Meta(extra={"reloadable": True})
"""Marks a setting, or a whole section, of which a reload puts every change into force."""


def describe(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)


def is_reloadable(kind: inspect.Type) -> bool:
    """Return True if a reload applies a change of this setting, or of the whole section."""
    return isinstance(kind, inspect.Metadata) and bool((kind.extra or {}).get("reloadable"))


class Secret:
    """A secret text, which is false when it is empty."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    @classmethod
    def from_scalar(cls, scalar: YamlScalar) -> Self:
        return cls(scalar.text)

    def reveal(self) -> str:
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(...)" if self._value else "Secret()"

    def __str__(self) -> str:
        return "[secret]" if self._value else ""

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret does not leave its process")
