"""What a hook reaches for inside Hermes is seen in its source, before anything of it runs."""

import ast

import pytest

from gateway.hermes.unsupported_imports import SUPPORTED_NAMES, find_unsupported_imports
from gateway.worker.boot import OFFERED


def found(source: str, **more: str) -> list[tuple[str, str]]:
    files = {"handler.py": source.encode()} | {f"{name}.py": text.encode() for name, text in more.items()}
    return [
        (reach.name, reach.verdict + (", caught" if reach.is_caught else ""))
        for reach in find_unsupported_imports("h", files)
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
    assert found("import gateway.engine", other="from hermes_cli.main import main") == [
        ("gateway.engine", "missing"),
        ("hermes_cli.main.main", "missing"),
    ]


@pytest.mark.parametrize("module", [name for name, names in SUPPORTED_NAMES.items() if names is not None])
def test_what_is_said_to_be_served_is_what_handlers_find(module: str) -> None:
    file = OFFERED[module]
    assert file
    (listed,) = (
        ast.literal_eval(node.value)
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    assert SUPPORTED_NAMES[module] == frozenset(listed)


def test_every_offered_module_is_said_to_be_served() -> None:
    assert {name for name in OFFERED if "wires" not in name} == SUPPORTED_NAMES.keys()
