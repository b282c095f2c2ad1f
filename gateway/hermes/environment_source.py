"""Which environment variables a hook or plugin reads by names that its source only puts together.

Only what stands in the source by its whole name is given to it. The rest is found here as far as it can be, so that
somebody can be told what to write; where not even the beginning of a name is seen, that is told.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gateway.hermes.handler_source import HandlerSource
from gateway.hermes.patches import call_name_of
from gateway.hooks.folders.manifest import UnknownVariables, label_of
from gateway.yaml_source.tree import SourceLocation

MOST_STEPS = 8  # from a name to its text; a search that goes round in a circle gets nowhere
_MENTIONS = re.compile(rb"\b(environ|getenv|BaseSettings|prefixed)\b")
_READS = frozenset({"get", "pop", "setdefault"})
_VIEWS = frozenset({"items", "keys", "copy"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}\Z")
_SETTINGS_CLASS, _PREFIX_SETTING = "BaseSettings", "env_prefix"  # of pydantic


class _Text(NamedTuple):
    """The beginning of a text as far as it is seen, and whether that is all of it."""

    begin: str = ""
    is_whole: bool = False


def find_unknown_variables(folder: str, files: Mapping[str, bytes]) -> UnknownVariables | None:
    """`files`: what it imports. None where each name stands there as it is."""
    if not any(map(_MENTIONS.search, files.values())):
        return None
    search = _VariableSearch(HandlerSource(files))
    names, beginnings, places, is_seen = set[str](), set[str](), list[SourceLocation](), True
    for file, node, found in search.find():
        places.append(SourceLocation(f"{label_of(folder)}/{file}", node.lineno, node.col_offset + 1))
        names |= {one.begin for one in found if one.is_whole and _VARIABLE.match(one.begin)}
        beginnings |= {one.begin for one in found if one.begin and not one.is_whole}
        is_seen = is_seen and all(one.begin for one in found) and bool(found)
    if not places:
        return None
    first = min(places, key=lambda one: one.line)
    return UnknownVariables(first, tuple(sorted(names)), tuple(sorted(beginnings)), is_seen)


class _VariableSearch:
    def __init__(self, source: HandlerSource) -> None:
        self._source = source

    def find(self) -> Iterator[tuple[str, ast.expr | ast.stmt, list[_Text]]]:
        """The file, the place, and the names that are read there."""
        for file, tree in self._source.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.expr | ast.stmt) and (found := self._read(node)) is not None:
                    yield file, node, found

    def _read(self, node: ast.expr | ast.stmt) -> list[_Text] | None:
        """None where no variable is read, or its name stands there as it is."""
        match node:
            case ast.Subscript(value=base, slice=key, ctx=ast.Load()) if self._is_environ(base):
                return self._name_of(key)
            case ast.Call(func=ast.Attribute(value=base, attr=name), args=[key, *_]) if (
                name in _READS and self._is_environ(base)
            ):
                return self._name_of(key)
            case ast.Call(args=[key, *_]) if call_name_of(node) == "getenv":
                return self._name_of(key)
            case ast.For(iter=values) if self._is_environ(values):
                return self._beginnings_in(node)
            case ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._beginnings_in(node) if any(self._is_environ(one.iter) for one in node.generators) else None
            case ast.Call(func=ast.Attribute(attr="prefixed"), args=[ast.Constant(value=str(text))]):
                return [_Text(text)]
            case ast.ClassDef() if any(ast.unparse(one).endswith(_SETTINGS_CLASS) for one in node.bases):
                return self._list_fields(node)
        return None

    def _is_environ(self, node: ast.expr, steps: int = MOST_STEPS) -> bool:
        """`os.environ`, a copy of it, a view of it, or a name for one of these."""
        match node:
            case ast.Attribute(attr="environ") | ast.Name(id="environ"):
                return True
            case ast.Call(func=ast.Name(id="dict" | "sorted" | "list"), args=[inner]):
                return self._is_environ(inner, steps)
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]):
                return name in _VIEWS and self._is_environ(inner, steps)
            case ast.Name(id=name) if steps and (value := self._source.find_value(name)):
                return self._is_environ(value, steps - 1)
        return False

    def _name_of(self, key: ast.expr) -> list[_Text] | None:
        return None if isinstance(key, ast.Constant) else [self._read_text(key)]

    def _read_text(self, node: ast.expr, steps: int = MOST_STEPS) -> _Text:
        match node:
            case ast.Constant(value=str(text)):
                return _Text(text, True)
            case ast.Name(id=name) if steps and (value := self._source.find_value(name)):
                return self._read_text(value, steps - 1)
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                return self._read_text(inner, steps)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._join([left, right], steps)
            case ast.JoinedStr(values=parts):
                return self._join(parts, steps)
            case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
                return _Text(text.partition("%")[0])
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                return _Text(text.partition("{")[0])
        return _Text()

    def _join(self, parts: Iterable[ast.expr], steps: int) -> _Text:
        known = ""
        for part in parts:
            text = self._read_text(part, steps)
            known += text.begin
            if not text.is_whole:
                return _Text(known)
        return _Text(known, True)

    def _beginnings_in(self, node: ast.AST) -> list[_Text]:
        """What is asked of the names inside: `startswith`."""
        calls = (one for one in ast.walk(node) if isinstance(one, ast.Call) and one.args)
        asked = [one.args[0] for one in calls if call_name_of(one) == "startswith"]
        return [_Text(self._read_text(one).begin) for one in asked]

    def _list_fields(self, node: ast.ClassDef) -> list[_Text]:
        """Of a class of settings: what its fields are read from."""
        said = [one.value for one in ast.walk(node) if isinstance(one, ast.keyword) and one.arg == _PREFIX_SETTING]
        said += [
            one.value
            for one in ast.walk(node)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == _PREFIX_SETTING
        ]
        begin = self._read_text(said[0]).begin if said else ""
        fields = [
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        return [_Text(f"{begin}{name}".upper(), True) for name in fields if name != "model_config"]
