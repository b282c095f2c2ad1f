"""The object `raw_message`: the network's own data of a message, with its fields as attributes, too."""

from collections.abc import Mapping
from typing import Any, Self

from gateway.hermes.shim.gateway_calls import warn_once

RENAMED = {"from_user": "from"}  # keywords of Python, for which libraries use other names
WHY_NOT = "the network sent none, or it is a method of the library's own object; you get None"


class NetworkMessage(dict[str, Any]):
    """The message; inner objects are such objects, too, and a missing field is None, as in the networks' libraries."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        key = RENAMED.get(name, name)
        if key not in self:
            warn_once(f"raw_message has no {name}: {WHY_NOT}")
        return _view(self.get(key))

    def to_dict(self) -> dict[str, Any]:
        return dict(self)

    @classmethod
    def view(cls, raw: Any) -> Self | None:
        return cls(raw) if isinstance(raw, Mapping) else None


def _view(value: Any) -> Any:
    if isinstance(value, list):
        return [_view(one) for one in value]
    return NetworkMessage(value) if isinstance(value, dict) else value
