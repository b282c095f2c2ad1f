"""The source shows the parts of Hermes that a hook imports, before any of its code runs."""

import importlib
from pathlib import Path

import pytest

from gateway.hermes.modules import NAMES
from gateway.hermes.unsupported_imports import find_unsupported_imports


def found(source: str, **more: str) -> list[tuple[str, str]]:
    files = {"handler.py": source.encode()} | {f"{name}.py": text.encode() for name, text in more.items()}
    return [
        (reach.name, reach.verdict + (", caught" if reach.is_caught else ""))
        for reach in find_unsupported_imports(Path("h"), "handler.py", files)
    ]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import json, httpx\nfrom gateway.hooks import on", []),
        ("from gateway.run import _resolve_gateway_model", []),
        ("from gateway.run import GatewayRunner", [("gateway.run.GatewayRunner", "hollow")]),
        ("import gateway.platforms.telegram", [("gateway.platforms.telegram", "hollow")]),
        ("from gateway.platforms import slack", [("gateway.platforms.slack", "hollow")]),
        ("from gateway.delivery import Router", [("gateway.delivery.Router", "hollow")]),
        ("from hermes_state import SessionDB", [("hermes_state.SessionDB", "missing")]),
        ("def f():\n  from tools.memory import M", [("tools.memory.M", "missing")]),
        ("try:\n  import model_tools\nexcept ImportError: pass", [("model_tools", "missing, caught")]),
        ("try:\n  import model_tools\nexcept KeyError: pass", [("model_tools", "missing")]),
        ("import gatewayish, toolsmith\nfrom . import tools", []),
        ("import (", []),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  from hermes_state import SessionDB", []),
        (
            "import typing as t\nif t.TYPE_CHECKING:\n  import hermes_logging\nelse:\n  import model_tools",
            [("model_tools", "missing")],
        ),
        (
            "if not TYPE_CHECKING:\n  import hermes_logging\nelse:\n  import model_tools",
            [("hermes_logging", "missing")],
        ),
    ],
)
def test_what_is_not_served_is_named(source: str, names: list[tuple[str, str]]) -> None:
    assert found(source) == names


def test_a_module_of_its_own_is_no_reach() -> None:
    assert found("from tools import x", tools="x = 1") == []
    assert found("import other\nimport gateway.engine", other="from hermes_cli.main import main") == [
        ("gateway.engine", "missing"),
        ("hermes_cli.main.main", "missing"),
    ]


def test_what_nothing_imports_is_not_looked_at() -> None:
    assert found("import json", setup="from hermes_cli.main import main") == []
    loads = "import importlib\nfor name in ('one',):\n    importlib.import_module(name)\n"
    assert found(loads, **{"one": "import hermes_state", "scripts/two": "import hermes_logging"}) == [
        ("hermes_state", "missing")
    ]


def test_a_module_where_the_hook_itself_looks_is_no_reach(tmp_path: Path) -> None:
    (tmp_path / "shared" / "tools").mkdir(parents=True)
    (tmp_path / "shared" / "tools" / "__init__.py").write_text("")
    source = "import sys\nfrom pathlib import Path\nsys.path += [str(Path(__file__).parent.parent / 'shared')]\n"
    files = {"handler.py": f"{source}from tools.moon import phase\nimport hermes_logging\n".encode()}
    assert [one.name for one in find_unsupported_imports(tmp_path / "h", "handler.py", files)] == ["hermes_logging"]


def test_the_module_of_what_is_patched_is_there_without_effect() -> None:
    files = {"__init__.py": b"import model_tools\nfrom tools.approval import gate\n"}
    found = find_unsupported_imports(Path("h"), "__init__.py", files, ("model_tools.handle", "tools.approval.gate.x"))
    assert [one.verdict for one in found] == ["hollow", "hollow"]


@pytest.mark.parametrize("module", NAMES)
def test_what_is_said_to_be_served_is_what_handlers_find(module: str) -> None:
    for source, name in NAMES[module].values():
        assert hasattr(importlib.import_module(source), name)
    names = "".join(f"from {module} import {name}\n" for name in NAMES[module])
    assert found(f"import {module}\n{names}") == []


def test_a_name_that_a_module_lacks_fails_or_is_hollow_as_the_module_is() -> None:
    assert found("from gateway.config import Unheard") == [("gateway.config.Unheard", "missing")]
    assert found("from gateway.session import Unheard") == [("gateway.session.Unheard", "hollow")]


def test_a_guard_that_gets_over_a_missing_import_is_named() -> None:
    source = """
try:
    from tools.approval import detect, gate as ask
except ImportError:
    detect = ask = None

def before(tool_name="", **_):
    return {"action": "block"} if detect and detect(tool_name) else None

def other(**_): ...
"""
    found = find_unsupported_imports(Path("h"), "__init__.py", {"__init__.py": source.encode()})
    first, second = (str(one.finding) for one in found)
    assert "the hook catches that, and before goes on without it: look whether that still stops anything" in first
    assert second.endswith("the hook catches that")
