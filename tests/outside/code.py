"""The Python interface for users: the names that hooks, their tests and the examples import; and the stored records.

A record counts by its kind, not by the name of its class. An import may warn that it has moved, but it works.
"""

import importlib
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.outside.shapes import Facts, flat, signature

ROOT = Path(__file__).parents[2]
SHOWN = ("README.md", "docs/*.md", "sample_hooks/[!_]*/*", "hooks_builtin/[!_]*/*")
IMPORT = re.compile(r"from (gateway(?:\.\w+)*) import ((?:\w+(?:, )?)+)")
OPEN = ("gateway.hooks", "gateway.testing", "gateway.hooks.wires.server")  # whose names are for users, with all they do
GIVEN = {"Event"}  # what hooks are given, and never make
HERMES_ONLY = {"gateway.run"}  # shown as what a hook cannot have


def shown() -> str:
    """All that is shown to users, and the hooks that come along."""
    files = sorted(path for pattern in SHOWN for path in ROOT.glob(pattern) if path.is_file())
    return "\n".join(path.read_text("utf-8") for path in files)


def imports(known: Mapping[str, str]) -> Facts:
    """Whatever is shown being imported, or was when the list was made: that it is there, and what it takes."""
    texts = shown()
    wanted = {(module, name) for module, names in IMPORT.findall(texts) for name in names.split(", ") if name}
    wanted |= {(module, name) for module in OPEN for name in exported(module)}
    wanted |= {(module, name) for fact in known for module, name in re.findall(r"^from (\S+) import (\w+)$", fact)}
    facts: Facts = {}
    for module, name in sorted(wanted):
        if module not in HERMES_ONLY:
            facts |= imported(module, name, texts, known)
    return facts


def exported(module: str) -> list[str]:
    try:
        return list(getattr(opened(module), "__all__", ()))
    except ImportError:
        return []


def opened(module: str) -> Any:
    """The module, which may say that it has moved."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module(module)


def attribute(module: Any, name: str) -> Any:
    """The name in it, which may say the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(module, name)


def imported(module: str, name: str, texts: str, known: Mapping[str, str]) -> Facts:
    """The name; of one that is open, what is called, built or asked for where it is shown, or was."""
    at = f"from {module} import {name}"
    try:
        thing = attribute(opened(module), name)
    except (ImportError, AttributeError):
        return {}
    facts = signature(thing, at)
    is_made = re.search(rf"\b{name}\(", texts) or any(fact.startswith(f"{at}(") for fact in known)
    if module not in OPEN or not (is_made or name in GIVEN):
        return {at: facts[at]}
    facts = facts if is_made else {at: facts[at]}
    for member, value in members(thing):
        its, sign = f"{at}.{member}", r"\(" if callable(value) else r"\b"
        if its in known or re.search(rf"\.{member}{sign}", texts):
            facts |= signature(value, its)
    return facts


def members(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the public members of a class of ours."""
    for one in thing.__mro__ if isinstance(thing, type) else ():
        for name in vars(one) if one.__module__.startswith("gateway") else ():
            if not name.startswith("_"):
                value = getattr(thing, name)
                yield name, value if callable(value) else None


def journal_records() -> Facts:
    """Every kind of record, with its fields and theirs."""
    records = importlib.import_module("gateway.records.records")
    facts: Facts = {}
    for kind in vars(records).values():
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__struct_config__.tag:
            schema = msgspec.json.schema(kind, schema_hook=lambda _raw: {})
            facts |= dict(flat(schema, str(kind.__struct_config__.tag)))
    return facts
