"""What a hook reaches for inside Hermes is seen in its source, before anything of it runs."""

import importlib

import pytest

from gateway.hermes.modules import NAMES
from gateway.hermes.unsupported_imports import find_unsupported_imports


def found(source: str, **more: str) -> list[tuple[str, str]]:
    files = {"handler.py": source.encode()} | {f"{name}.py": text.encode() for name, text in more.items()}
    return [
        (reach.name, reach.verdict + (", caught" if reach.is_caught else ""))
        for reach in find_unsupported_imports("h", "handler.py", files)
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
    assert found(loads, **{"one": "import hermes_state", "scripts/two": "import toolsets"}) == [
        ("hermes_state", "missing")
    ]


@pytest.mark.parametrize("module", NAMES)
def test_what_is_said_to_be_served_is_what_handlers_find(module: str) -> None:
    for source, name in NAMES[module].values():
        assert hasattr(importlib.import_module(source), name)
    names = "".join(f"from {module} import {name}\n" for name in NAMES[module])
    assert found(f"import {module}\n{names}") == []


def test_a_name_that_a_module_lacks_fails_or_is_hollow_as_the_module_is() -> None:
    assert found("from gateway.config import Unheard") == [("gateway.config.Unheard", "missing")]
    assert found("from gateway.session import Unheard") == [("gateway.session.Unheard", "hollow")]
