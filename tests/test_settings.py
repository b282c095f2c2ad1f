"""Every setting is read, and one place says its default: `gateway/config`. Each rule is shown a sin first.

Both read the source: what an expression is follows from annotations and assignments, as far as settings are concerned.
"""

import ast
import dataclasses
import importlib
import inspect
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard, get_type_hints

import msgspec
import pytest

from gateway.adapters import ADAPTERS
from gateway.config.platform_settings import PlatformSpec
from gateway.config.settings import Settings

ROOT = Path(__file__).parent.parent
# Classes that have defaults of their own beside those of the settings, and why.
USED_ALONE = {
    "Agent": "public: a turn needs no gateway and no configuration",
    "TurnLimits": "public: the limits of such a turn",
    "RetryPolicy": "a model that is used by itself is tried again too",
}

# What networks have in common, and the parts of the daemon read.
READ_FOR_ALL_NETWORKS = {
    *("enabled", "home_channel", "home_channel_name", "allowed_roles"),
    *("require_mention", "free_response_channels"),  # by the rules of chats
    *("progress", "reactions", "typing"),  # by what a chat is shown
}


def structs_at(kind: Any) -> dict[str, type[msgspec.Struct]]:
    """The structs that a type names, by name: itself, or what it holds."""
    found: dict[str, type[msgspec.Struct]] = {}
    waiting = [msgspec.inspect.type_info(kind)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, msgspec.inspect.StructType):
            found[info.cls.__name__] = info.cls
        else:
            waiting += [getattr(info, name) for name in ("type", "value_type", "item_type") if hasattr(info, name)]
            waiting += getattr(info, "types", ())
    return found


def structs_below(kind: Any) -> dict[str, type[msgspec.Struct]]:
    """These, and all in their fields."""
    found = structs_at(kind)
    for struct in list(found.values()):
        for each in msgspec.structs.fields(struct):
            found |= structs_below(each.type)
    return found


@cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All of it, walked once, since it is looked at again and again."""
    return tuple(ast.walk(tree))


@dataclass
class Reader:
    """Follows settings through one module: which struct an expression is, by its name."""

    structs: Mapping[str, type[msgspec.Struct]]
    attributes: Mapping[str, set[str]]  # which structs stand in attributes of this name, anywhere
    aliases: dict[str, str] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def annotated(self, node: ast.expr | None) -> set[str]:
        words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if node else set()
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value}
        known = {self.aliases.get(word, word) for word in words}
        return {name for name, struct in self.structs.items() if known & {each.__name__ for each in struct.__mro__}}

    def kinds(self, node: ast.expr) -> set[str]:
        """The structs that this expression may be, or may hold as a mapping or a sequence does."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, set())
        if isinstance(node, ast.Attribute):
            base = self.kinds(node.value)
            below = {name for kind in base for name in self.structs_in(kind, node.attr)}
            is_plain = any(node.attr in self.structs[kind].__struct_fields__ for kind in base)
            return below or (set() if is_plain else self.attributes.get(node.attr, set()))
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id == "getattr":
                return {name for kind in self.kinds(node.args[0]) for name in self.structs_in(kind, None)}
            if isinstance(function, ast.Attribute) and function.attr in ("get", "items", "values"):
                return self.kinds(function.value)
            if isinstance(function, ast.Attribute):
                return self.attributes.get(function.attr, set())
            return self.annotated(function) or {kind for each in node.args for kind in self.kinds(each)}
        if isinstance(node, ast.Subscript):
            return self.kinds(node.value)
        if isinstance(node, ast.IfExp):
            return self.kinds(node.body) | self.kinds(node.orelse)
        return {name for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr) for name in self.kinds(part)}

    def structs_in(self, kind: str, name: str | None) -> set[str]:
        """Those in a field of a struct; without a name in any."""
        fields = msgspec.structs.fields(self.structs[kind])
        wanted = [each.type for each in fields if name is None or each.name == name]
        if name and isinstance(shown := getattr(self.structs[kind], name, None), property):
            wanted.append(get_type_hints(shown.fget)["return"])
        return {below for each in wanted for below in structs_at(each)}

    def learn(self, tree: ast.Module) -> None:
        """Names that stand for settings, whichever function they are in: twice, for one may come from another."""
        for node in nodes_of(tree):
            if isinstance(node, ast.ImportFrom):
                self.aliases.update({each.asname: each.name for each in node.names if each.asname})
        for _ in range(2):
            for node in nodes_of(tree):
                if isinstance(node, ast.arg) and (found := self.annotated(node.annotation)):
                    self.names[node.arg] |= found
                elif isinstance(node, ast.Assign):
                    for target in node.targets:
                        self._bind(target, node.value)
                elif isinstance(node, ast.NamedExpr | ast.For | ast.comprehension):
                    self._bind(node.target, node.value if isinstance(node, ast.NamedExpr) else node.iter)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for each, part in zip(target.elts, value.elts, strict=False):
                self._bind(each, part)
        elif isinstance(target, ast.Tuple):
            for each in target.elts:
                self._bind(each, value)
        elif isinstance(target, ast.Name) and (found := self.kinds(value)):
            self.names[target.id] |= found

    def reads(self, tree: ast.AST) -> Iterator[tuple[str, str]]:
        for node in nodes_of(tree):
            if isinstance(node, ast.Attribute):
                for kind in self.kinds(node.value):
                    if node.attr == "__struct_fields__":
                        yield from ((kind, name) for name in self.structs[kind].__struct_fields__)
                    yield kind, node.attr
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("structs.asdict"):
                for kind in self.kinds(node.args[0]):
                    yield from ((kind, name) for name in self.structs[kind].__struct_fields__)


def attributes_in(trees: list[ast.Module], structs: Mapping[str, type[msgspec.Struct]]) -> dict[str, set[str]]:
    """Attributes, methods and properties that hold settings: by their annotations and by what is assigned to them."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        reader = Reader(structs, {})
        reader.learn(tree)
        for node in nodes_of(tree):
            if isinstance(node, ast.AnnAssign):
                found[ast.unparse(node.target).split(".")[-1]] |= reader.annotated(node.annotation)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] |= reader.annotated(node.returns)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                found[node.targets[0].attr] |= reader.kinds(node.value)
    return {name: kinds for name, kinds in found.items() if kinds}


def unread(root: type[msgspec.Struct], sources: list[str]) -> list[str]:
    """The settings that no source reads."""
    structs, trees = structs_below(root), [ast.parse(source) for source in sources]
    attributes = attributes_in(trees, structs)
    read: set[tuple[str, str]] = set()
    for tree in trees:
        reader = Reader(structs, attributes)
        reader.learn(tree)
        read |= set(reader.reads(tree))
    fields = ((name, each) for name, struct in structs.items() for each in struct.__struct_fields__)
    return [f"{name}.{each}" for name, each in fields if (name, each) not in read]


@cache
def gateway_sources() -> list[str]:
    """Outside `gateway/config`, which must not be the only one that knows a setting."""
    files = sorted((ROOT / "gateway").rglob("*.py"))
    return [path.read_text("utf-8") for path in files if ROOT / "gateway" / "config" not in path.parents]


def repeated(root: type[msgspec.Struct], path: str, source: str, names: Mapping[str, Any]) -> Iterator[str]:
    """Where a class is made from a setting, and has a default of its own for it; `names` are those of the module.

    Nothing at all (no text, no limit) is not a default that could drift.
    """
    structs, tree = structs_below(root), ast.parse(source)
    reader = Reader(structs, attributes_in([tree], structs))
    reader.learn(tree)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        made = names.get(ast.unparse(call.func))
        if not is_part(made) or made.__name__ in structs:
            continue
        for name, value in arguments_of(call, made):
            reads = set() if isinstance(value, ast.Lambda) else set(reader.reads(value))
            read = [f"{kind}.{each}" for kind, each in reads if is_plain(structs[kind], each)]
            if read and (default := default_of(made, name)) and default != math.inf:
                yield from (f"{path}: {made.__name__}.{name} has a default beside {one}" for one in sorted(read))


def default_of(made: type, name: str) -> Any:
    """Of a parameter: what stands there when nobody says anything."""
    if dataclasses.is_dataclass(made):
        one = next(each for each in dataclasses.fields(made) if each.name == name)
        if one.default_factory is not dataclasses.MISSING:
            return one.default_factory()
    if issubclass(made, msgspec.Struct):
        known = zip(reversed(made.__struct_fields__), reversed(made.__struct_defaults__), strict=False)
        default = dict(known).get(name, msgspec.NODEFAULT)
        return None if default is msgspec.NODEFAULT else getattr(default, "factory", lambda: default)()
    default = inspect.signature(made).parameters[name].default
    return None if default is inspect.Parameter.empty else default


def is_plain(struct: type[msgspec.Struct], name: str) -> bool:
    """A field that is not a section of further settings."""
    return any(each.name == name and not structs_at(each.type) for each in msgspec.structs.fields(struct))


def is_part(made: Any) -> TypeGuard[type]:
    """A class of ours that is not an error."""
    return (
        inspect.isclass(made) and made.__module__.startswith(("gateway.", __name__)) and not issubclass(made, Exception)
    )


def arguments_of(call: ast.Call, made: type) -> Iterator[tuple[str, ast.expr]]:
    """What is passed, by the names of the parameters."""
    names = list(getattr(made, "__struct_fields__", None) or inspect.signature(made).parameters)
    yield from zip(names, (each for each in call.args if not isinstance(each, ast.Starred)), strict=False)
    yield from ((each.arg, each.value) for each in call.keywords if each.arg and each.arg in names)


class Lamp(msgspec.Struct, frozen=True):
    colour: str = "red"
    watts: int = 40
    label: str = ""


class Rooms(msgspec.Struct, frozen=True):
    lamp: Lamp = Lamp()
    spare: dict[str, Lamp] = {}


def test_a_setting_that_nobody_reads_is_seen() -> None:
    source = "def light(rooms: Rooms):\n  for lamp in rooms.spare.values():\n    print(lamp.colour, other.watts)"
    assert unread(Rooms, [source]) == ["Rooms.lamp", "Lamp.watts", "Lamp.label"]


def test_a_setting_that_an_object_keeps_is_read() -> None:
    source = "class Light:\n  def __init__(self, rooms: Rooms): self._rooms = rooms\n"
    source += "  def on(self): return self._rooms.lamp.watts, self._rooms.spare['hall'].colour, self._rooms.lamp.label"
    assert unread(Rooms, [source]) == []


def test_every_setting_is_read() -> None:
    assert unread(Settings, gateway_sources()) == []


def settings_of(network: str) -> type[msgspec.Struct]:
    spec: PlatformSpec = importlib.import_module(f"gateway.adapters.{network}.settings").SPEC
    return spec.settings


@pytest.mark.parametrize("network", ADAPTERS)
def test_every_setting_of_a_network_is_read_in_its_folder(network: str) -> None:
    folders = [ROOT / "gateway" / "adapters" / name for name in (network, "shared")]
    sources = [path.read_text("utf-8") for folder in folders for path in sorted(folder.rglob("*.py"))]
    found = {name.partition(".")[2] for name in unread(settings_of(network), sources)}
    assert found - READ_FOR_ALL_NETWORKS == set()


@dataclass
class Bulb:
    colour: str
    watts: int = 60
    label: str = ""


def test_a_default_that_is_said_twice_is_seen() -> None:
    source = "def light(rooms: Rooms):\n  return Bulb(rooms.lamp.colour, rooms.lamp.watts, label=rooms.lamp.label)"
    assert list(repeated(Rooms, "a.py", source, {"Bulb": Bulb})) == ["a.py: Bulb.watts has a default beside Lamp.watts"]


def test_one_place_says_a_default() -> None:
    found: list[str] = []
    for path in sorted((ROOT / "gateway").rglob("*.py")):
        source = path.read_text("utf-8")
        if "ettings" in source:
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            found += repeated(Settings, path.relative_to(ROOT).as_posix(), source, vars(module))
    classes = {line: re.sub(r".*: (\w+)\..*", r"\1", line) for line in found}
    assert [line for line, made in classes.items() if made not in USED_ALONE] == []
    assert set(USED_ALONE) <= set(classes.values())
