"""A verb is one row and one function of its name; the command line asks for rows alone. Each rule is shown a sin."""

import ast
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from string import Formatter
from typing import Any, get_type_hints

import msgspec
import pytest

from gateway.daemon.control_verbs import ANSWERS, GIVEN
from gateway.daemon.verb_table import VERBS
from gateway.verbs import NameParams, NoParams, Verb

ROOT = Path(__file__).parent.parent.parent
CALLS = ("call_gateway", "call", "start")  # of the client of the control socket
PLAIN_MODULES = ("collections.abc", "functools", "typing", "gateway.verbs")
KEPT_BY_CALL = {"timeout"}  # of `call_gateway` itself


def list_strays(verbs: Mapping[str, Verb], answers: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """A row without its function, a function without its row, and one that takes another verb's parameters."""
    yield from (f"{name}: a row without its function" for name in verbs.keys() - answers.keys())
    yield from (f"{name}: a function without its row" for name in answers.keys() - verbs.keys())
    for name in verbs.keys() & answers.keys():
        taken = get_type_hints(answers[name]).get("params", NoParams)
        if taken is not verbs[name].params:
            yield f"{name}: takes {taken.__name__}"
        parameters = [one for one in inspect.signature(answers[name]).parameters if one in GIVEN]
        if parameters != list(GIVEN[: len(parameters)]):
            yield f"{name}: the parameters stand before what notifies"


def room_of(module: str) -> str:
    return module.split(".")[1]


def list_misplaced(answers: Mapping[str, Callable[..., Any]], rows: Mapping[str, str]) -> Iterator[str]:
    """Answers in another room than their rows, except those in `daemon/answers`, which need several rooms."""
    for name, answer in answers.items():
        room = room_of(answer.__module__)
        if room not in ("daemon", rows[name]):
            yield f"{name}: its row is in {rows[name]}, and its answer in {room}"


def list_unknown_fields(verb: Verb) -> Iterator[str]:
    """The fields of the parameters that a row names and that they do not have."""
    named = [field.split("[")[0] for _, field, *_ in Formatter().parse(verb.on or "") if field]
    page = verb.page if isinstance(verb.page, tuple) else ()
    for field in (*named, *page):
        if field != "said" and not hasattr(verb.params, field):
            yield f"{verb.name}: {verb.params.__name__} has no {field}"


def list_wrong_calls(source: str, verbs: Mapping[str, Verb]) -> Iterator[str]:
    """Calls of verbs that have no row, or with parameters that it does not have."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[-1] not in CALLS:
            continue
        name = next((one.value for one in node.args[:2] if isinstance(one, ast.Constant)), None)
        if not isinstance(name, str):
            continue
        if name not in verbs:
            yield f"line {node.lineno}: no verb {name}"
            continue
        known: set[str] = {field.name for field in msgspec.structs.fields(verbs[name].params)}
        given = {one.arg for one in node.keywords if one.arg} - KEPT_BY_CALL
        given |= {
            str(key.value)
            for one in node.args
            if isinstance(one, ast.Dict)
            for key in one.keys
            if isinstance(key, ast.Constant)
        }
        yield from (f"line {node.lineno}: {name} takes no {field}" for field in sorted(given - known))


def list_wrong_imports(source: str) -> Iterator[str]:
    """Imports that no row may have: libraries, and functions other than those of the type and the look-up of events."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"imports {alias.name}" for alias in node.names if alias.name != "msgspec")
        elif isinstance(node, ast.ImportFrom) and node.module not in PLAIN_MODULES:
            names = [alias.name for alias in node.names if not alias.name[0].isupper()]
            is_ours = str(node.module).startswith("gateway.")
            yield from () if is_ours else (f"imports {node.module}",)
            yield from (f"imports {name}, which runs" for name in names if is_ours and name != "get_event_spec")


async def keys_list() -> None:
    """An answer that takes nothing."""


@pytest.mark.parametrize(
    ("rows", "answers", "sin"),
    [
        (["keys.list"], {}, "keys.list: a row without its function"),
        ([], {"keys.list": keys_list}, "keys.list: a function without its row"),
        (["keys.revoke"], {"keys.revoke": keys_list}, "keys.revoke: takes NoParams"),
    ],
)
def test_the_rule_of_rows_sees_the_sin(rows: list[str], answers: dict[str, Any], sin: str) -> None:
    assert list(list_strays({name: VERBS[name] for name in rows}, answers)) == [sin]


def test_a_row_has_its_function_and_a_function_its_row() -> None:
    assert list(list_strays(VERBS, ANSWERS)) == []


def test_an_answer_of_one_room_is_where_its_row_is() -> None:
    found = {
        verb.name: path.parent.name
        for path in (ROOT / "gateway").glob("*/verbs.py")
        for verb in importlib.import_module(f"gateway.{path.parent.name}.verbs").VERBS
    }
    assert found.keys() == VERBS.keys()
    assert list(list_misplaced({"usage": ANSWERS["usage"]}, {"usage": "people"}))
    assert list(list_misplaced(ANSWERS, found)) == []


def test_a_row_names_fields_that_its_parameters_have() -> None:
    sins = (Verb("a.b", "", NameParams, "owner", on="{nmae}"), Verb("a.b", "", NameParams, "owner", page=("path",)))
    assert [len(list(list_unknown_fields(sin))) for sin in sins] == [1, 1]
    assert [fault for verb in VERBS.values() for fault in list_unknown_fields(verb)] == []


@pytest.mark.parametrize(
    ("call", "sin"),
    [
        ("call_gateway(home.socket, 'keys.lsit')", "line 1: no verb keys.lsit"),
        ("call_gateway(home.socket, 'keys.revoke', 5.0, key='x')", "line 1: keys.revoke takes no key"),
        ("client.start('events.tail', {'events': []})", "line 1: events.tail takes no events"),
    ],
)
def test_the_rule_of_calls_sees_the_sin(call: str, sin: str) -> None:
    assert list(list_wrong_calls(call, VERBS)) == [sin]


def test_the_command_line_asks_for_verbs_by_their_rows() -> None:
    files = sorted((ROOT / "gateway" / "cli").rglob("*.py"))
    found = [f"{path.name}: {fault}" for path in files for fault in list_wrong_calls(path.read_text("utf-8"), VERBS)]
    assert found == []


@pytest.mark.parametrize(
    ("line", "sin"),
    [
        ("import anyio", "imports anyio"),
        ("from gateway.web.logins import make_page_link", "imports make_page_link, which runs"),
        ("from gateway.verbs import NameParams, Verb, show", ""),
        ("from gateway.events.catalogue import get_event_spec", ""),
    ],
)
def test_the_rule_of_plain_rows_sees_the_sin(line: str, sin: str) -> None:
    assert list(list_wrong_imports(line)) == ([sin] if sin else [])


def test_a_row_is_a_plain_value_of_its_room() -> None:
    files = sorted((ROOT / "gateway").rglob("verbs.py"))
    assert len(files) > 10
    assert [f"{path}: {sin}" for path in files for sin in list_wrong_imports(path.read_text("utf-8"))] == []


def test_the_type_of_a_row_knows_roles_alone() -> None:
    tree = ast.parse((ROOT / "gateway" / "verbs.py").read_text("utf-8"))
    modules = [str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [module for module in modules if module.startswith("gateway")] == ["gateway.messages.roles"]
