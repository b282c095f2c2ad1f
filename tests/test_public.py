"""Public names can be imported, load no more than they need, and are all that the documentation shows."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.public import PROVISIONAL, PUBLIC, TYPES

ROOT = Path(__file__).parent.parent
OPEN = {**PUBLIC, **PROVISIONAL}
SHOWN = ("README.md", "docs/*.md", "docs/adapters/**/*.py", "sample_hooks/**/*.py", "hooks_builtin/**/*.py")
IMPORT = re.compile(r"(?:from (gateway[\w.]*) import ([\w, ]+)|\bimport (gateway[\w.]*))")
SHOWN_AS_REFUSED = {"gateway.run"}  # what a hook for Hermes patches, which cannot be here


def shown_imports() -> list[tuple[str, str, str]]:
    """File, module, and the names that are imported."""
    files = [path for pattern in SHOWN for path in ROOT.glob(pattern) if path.is_file()]
    return [
        (path.relative_to(ROOT).as_posix(), module or whole, names)
        for path in files
        for module, names, whole in IMPORT.findall(path.read_text("utf-8"))
    ]


def strangers(imports: list[tuple[str, str, str]]) -> list[str]:
    return [
        f"{file}: {module} {name}"
        for file, module, names in imports
        for name in (names.replace(" ", "").split(",") if names else [""])
        if module not in (TYPES, *SHOWN_AS_REFUSED) and name not in OPEN.get(module, ())
    ]


def test_the_documentation_and_the_samples_import_nothing_else() -> None:
    found = shown_imports()
    assert len(found) > 20
    assert strangers(found) == []


@pytest.mark.parametrize(
    "line", ["from gateway.hooks import Deny, Cause", "import gateway.hooks", "from gateway import x"]
)
def test_another_import_would_be_seen(line: str) -> None:
    module, names, whole = IMPORT.findall(line)[0]
    assert strangers([("docs/a.md", module or whole, names)])


@pytest.mark.parametrize(("module", "names"), OPEN.items())
def test_each_name_is_there(module: str, names: tuple[str, ...]) -> None:
    home = importlib.import_module(module)
    assert [name for name in names if not hasattr(home, name)] == []


@pytest.mark.parametrize(("module", "names"), PUBLIC.items())
def test_a_public_module_exports_just_these(module: str, names: tuple[str, ...]) -> None:
    assert sorted(importlib.import_module(module).__all__) == sorted(names)


def test_nothing_is_loaded_that_only_some_need() -> None:
    code = "import sys; import gateway.hooks; print(*sorted(m for m in sys.modules if m.startswith('gateway')))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "gateway.hooks.registry" in loaded
    rooms = tuple(f"gateway.hooks.{room}" for room in ("durable", "folders", "manifests", "places", "wires"))
    assert not [name for name in loaded if name.startswith(rooms)]
