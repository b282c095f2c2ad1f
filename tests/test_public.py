"""What other people may import: it is there, the documentation shows nothing else, and what moved says where it is."""

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from gateway.public import MOVED, PROVISIONAL, PUBLIC, TYPES

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


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_name_that_moved_works_and_says_where_it_is(old: str, new: str) -> None:
    module, _, name = old.rpartition(".")
    place, _, new_name = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=re.escape(f"{old} is {new} now")):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(place), new_name)


def test_the_warning_points_at_the_line_that_imports() -> None:
    code = "from gateway.hooks.wires.server import HookServer\nfrom gateway.hooks import caused_by\n"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(compile(code, "a_program.py", "exec"), {})
    assert {(warning.filename, warning.lineno) for warning in seen} == {("a_program.py", 1), ("a_program.py", 2)}


def test_what_never_was_there_is_still_missing() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from gateway.hooks import nothing", {})
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from gateway.hooks.wires.server import Nothing", {})
    with pytest.raises(ModuleNotFoundError, match=r"gateway\.hooks\.wires\.nothing"):
        importlib.import_module("gateway.hooks.wires.nothing")


def test_nothing_is_loaded_for_the_sake_of_old_names() -> None:
    code = "import sys; import gateway.hooks; print(*sorted(m for m in sys.modules if m.startswith('gateway')))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "gateway.hooks.registry" in loaded
    assert not [name for name in loaded if name.startswith(("gateway.hooks.wires", "gateway.hooks.folders"))]
