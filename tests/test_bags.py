"""No class is a bag: one with more than fifteen fields holds values alone, or is listed here with its reason."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec
import pytest

from gateway.daemon.gateway import Gateway
from gateway.testing.live_gateway import GatewayParts

ROOT = Path(__file__).parent.parent
MOST_FIELDS = 15
GROUPS = {one.type.__name__ for one in msgspec.structs.fields(Gateway)}
MOST_GROUPS = 7
OTHER_SHAPES = "gateway/hermes/shim/"  # another program's
VALUES = frozenset({"Home", "Secret", "Words"})  # paths and texts, though Python could change them
KEPT = {
    "FolderHook": "where the parts of one hook meet, each of which is a class of its own",
    "HookProcess": "the states of one process, which change together",
    "HookVersion": "one look at one hook: all is value but the source that looked",
    "NatsEngine": "fills the journal's contract",
    "Ports": "public in 0.1: who tests an agent builds it by these names",
}


@dataclass
class Bag:
    """A class: the annotation of each field and attribute, "" where it has none."""

    path: str
    bases: tuple[str, ...]
    is_frozen: bool
    fields: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)  # declared in the class's body, and so inherited


def read_class(path: str, node: ast.ClassDef) -> Bag:
    bases = tuple(ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases)
    said = " ".join(map(ast.unparse, [*node.decorator_list, *node.keywords]))
    found = Bag(
        path, bases, "frozen=True" in said or not {"NamedTuple", "Enum", "IntEnum", "StrEnum"}.isdisjoint(bases)
    )
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and not ast.unparse(part.annotation).startswith("ClassVar"):
            found.fields[ast.unparse(part.target)] = re.sub(r"(describe|Meta)\(.*", "", ast.unparse(part.annotation))
    found.own = {*found.fields}
    for method in node.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            for name, annotation in read_attributes(method):
                found.fields[name] = found.fields.get(name) or annotation
    return found


def read_attributes(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, str]]:
    """What a method sets on `self`, each with its annotation: its own, that of the parameter, or the class it calls."""
    given = {one.arg: ast.unparse(one.annotation) for one in method.args.args if one.annotation}
    for node in ast.walk(method):
        if isinstance(node, ast.AnnAssign):
            yield from ((name, ast.unparse(node.annotation)) for name in names_of(node.target))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                is_pair = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                values = (
                    node.value.elts if is_pair and isinstance(node.value, ast.Tuple) else [node.value] * len(targets)
                )
                for one, value in zip(targets, values, strict=False):
                    yield from ((name, describe(value, given)) for name in names_of(one))


def names_of(target: ast.expr) -> list[str]:
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    return [target.attr] if isinstance(target, ast.Attribute) and is_own else []


def describe(value: ast.expr, given: Mapping[str, str]) -> str:
    if isinstance(value, ast.BoolOp):
        return " ".join(describe(one, given) for one in value.values)
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split("[")[0].split(".")[-1]
    return given.get(value.id, "") if isinstance(value, ast.Name) else ""


class House:
    """All classes by name, and what short names of types stand for."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.classes: dict[str, Bag] = {}
        self.short: dict[str, str] = {}
        for path, source in sources.items():
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ClassDef):
                    self.classes[node.name] = read_class(path, node)
                if (
                    isinstance(node, ast.AnnAssign)
                    and ast.unparse(node.annotation).endswith("TypeAlias")
                    and node.value
                ):
                    self.short[ast.unparse(node.target)] = ast.unparse(node.value)

    def list_fields(self, name: str) -> dict[str, str]:
        """Its own, and those that classes of ours above it declare; what a contract declares is not a field."""
        found = self.classes[name]
        above = [one for one in found.bases if one in self.classes and one != name]
        inherited = {
            field: annotation
            for base in above
            if "Protocol" not in self.classes[base].bases
            for field, annotation in self.list_fields(base).items()
            if field in self.classes[base].own or field not in self.classes[base].fields
        }
        return inherited | found.fields

    def is_collaborator(self, annotation: str, seen: frozenset[str] = frozenset()) -> bool:
        """A function, a contract, or an object of ours that is not a value through and through."""
        for word in {*re.findall(r"\w+", annotation)} - seen - VALUES:
            if word in ("Callable", "Awaitable"):
                return True
            if word in self.short and self.is_collaborator(self.short[word], seen | {word}):
                return True
            if (known := self.classes.get(word)) and not known.path.startswith(OTHER_SHAPES):
                inside = [self.is_collaborator(one, seen | {word}) for one in known.fields.values()]
                if "Protocol" in known.bases or not known.is_frozen or any(inside):
                    return True
        return False

    def list_bags(self) -> Iterator[str]:
        for name, found in self.classes.items():
            fields, is_contract = self.list_fields(name), "Protocol" in found.bases
            if len(fields) <= MOST_FIELDS or is_contract or found.path.startswith(OTHER_SHAPES):
                continue
            if any(map(self.is_collaborator, fields.values())):
                yield name


@cache
def house_sources() -> Mapping[str, str]:
    files = sorted((ROOT / "gateway").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}


@cache
def house() -> House:
    return House(house_sources())


def test_a_bag_is_seen() -> None:
    many = "".join(f"    field_{number}: int\n" for number in range(15))
    assert list(House({"gateway/a.py": f"class A:\n{many}    call: Callable[[], None]\n"}).list_bags()) == ["A"]
    assert list(House({"gateway/a.py": f"class B: ...\nclass A:\n{many}    other: B\n"}).list_bags()) == ["A"]
    assert not list(House({"gateway/a.py": f"class A:\n{many}    name: str\n"}).list_bags())
    assigned = "".join(f"        self.field_{number} = {number}\n" for number in range(15))
    taken = f"class B: ...\nclass A:\n    def __init__(self, other: B) -> None:\n{assigned}        self.other = other\n"
    assert list(House({"gateway/a.py": taken}).list_bags()) == ["A"]


def test_no_class_is_a_bag_but_five_that_say_why() -> None:
    assert len(KEPT) <= 5
    assert sorted(house().list_bags()) == sorted(KEPT)


def list_takers(sources: Mapping[str, str]) -> set[str]:
    """The files that know the class of all groups, and those with a function that takes nearly all of them."""
    found = set()
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module == "gateway.daemon.gateway":
                found.add(path)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                words = {
                    word for one in given if one.annotation for word in re.findall(r"\w+", ast.unparse(one.annotation))
                }
                if len(words & GROUPS) > MOST_GROUPS:
                    found.add(path)
    return found


@pytest.mark.parametrize(
    "sin",
    [
        "from gateway.daemon.gateway import Gateway",
        f"def f({', '.join(f'{name.lower()}: {name}' for name in GROUPS)}): ...",
    ],
)
def test_a_taker_of_all_groups_is_seen(sin: str) -> None:
    assert list_takers({"gateway/a.py": sin, "gateway/b.py": "def f(run: Run, work: Work): ..."}) == {"gateway/a.py"}


def test_all_groups_are_for_the_start_alone() -> None:
    """Whoever needs some of them names these; `Gateway.bind` and `find` give them."""
    takers = list_takers(house_sources())
    assert takers == {"gateway/daemon/startup.py", "gateway/testing/live_gateway.py"}


def test_tests_read_ten_parts_by_name() -> None:
    """All else they find in its group, where the types of the parts are known."""
    named = [name for name, part in vars(GatewayParts).items() if isinstance(part, property)]
    assert len(named) == 10
    assert not hasattr(GatewayParts, "__getattr__")
