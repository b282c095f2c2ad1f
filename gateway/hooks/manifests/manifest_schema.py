"""The JSON schema of `HOOK.yaml`, for editors: its keys with their meanings, and the events of the catalogue."""

from typing import Any

from gateway.config.fields import VARIABLE_PATTERN
from gateway.events.catalogue import EVENT_SPECS
from gateway.hooks.manifests.manifest_keys import (
    CALLED_BY,
    EVENT_PATTERN,
    IGNORED_KEYS,
    MEANT_BESIDE,
    REACH_KEYS,
    WHOLE_PATH_PATTERN,
    ManifestKeys,
)
from gateway.yaml_source.json_schema import build_json_schema

SCHEMA_FILE = "HOOK.schema.json"
ALONE = ("command", *REACH_KEYS)  # keys that exclude `url`


def build_manifest_schema() -> dict[str, Any]:
    """Build the schema; a manifest's errors are errors here too, as far as a schema can express them.

    A key that nothing reads is an error, too.
    """
    schema = build_json_schema(ManifestKeys, "hermes-gateway: HOOK.yaml")
    keys = schema["properties"]
    names = [spec.name for spec in EVENT_SPECS.values()]
    decided = [spec.name for spec in EVENT_SPECS.values() if spec.outcomes or spec.writable]
    for key, known in (("events", names), ("intercepts", decided)):
        _narrow_items(keys[key], {"anyOf": [{"enum": known}, {"type": "string", "pattern": EVENT_PATTERN}]})
    for listed in (keys["env"], keys["requires"]["properties"]["env"]):
        _narrow_items(listed, {"type": "string", "pattern": VARIABLE_PATTERN})
    for listed in (keys["reads"], keys["writes"]):
        _narrow_items(listed, {"type": "string", "pattern": WHOLE_PATH_PATTERN})
    keys["secret_env"] |= {"type": "string", "pattern": VARIABLE_PATTERN}
    keys["url"] |= {"type": "string", "pattern": "^(https?|nats|tls)://"}
    keys |= dict.fromkeys(sorted(IGNORED_KEYS), True)
    return schema | {
        "type": "object",
        "anyOf": [{"required": [key]} for key in CALLED_BY],
        "dependentRequired": {key: [other] for key, other in MEANT_BESIDE},
        "dependentSchemas": {"url": {"not": {"anyOf": [{"required": [key]} for key in ALONE]}}},
    }


def _narrow_items(listed: dict[str, Any], item: dict[str, Any]) -> None:
    """Narrow the items of a list that may be written as its only entry."""
    for choice in listed["anyOf"]:
        if "items" in choice:
            choice["items"] = item
        else:
            choice.clear()
            choice.update(item)
