"""Which environment variables a hook or plugin reads by names that its source only puts together.

Only what stands in the source by its whole name is given to it. The rest is found here as far as it can be, so that
somebody can be told what to write; where not even the beginning of a name is seen, that is told.
"""

import ast
import re
from collections.abc import Iterator, Mapping

from gateway.hermes.handler_source import HandlerSource
from gateway.hermes.name_values import MOST_STEPS, NameValues
from gateway.hermes.patches import call_name_of
from gateway.hooks.folders.manifest import UnknownVariables, label_of
from gateway.yaml_source import SourceLocation

_MENTIONS = re.compile(rb"\b(environ|getenv|BaseSettings|prefixed)\b")
_READS = frozenset({"get", "pop", "setdefault"})
_VIEWS = frozenset({"items", "keys", "copy"})
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}\Z")
_SETTINGS_CLASS, _PREFIX_SETTING = "BaseSettings", "env_prefix"  # of pydantic


def find_unknown_variables(folder: str, files: Mapping[str, bytes]) -> UnknownVariables | None:
    """`files`: what it imports. None where each name stands there as it is."""
    if not any(map(_MENTIONS.search, files.values())):
        return None
    search = _VariableSearch(HandlerSource(files))
    names, beginnings, places, is_seen = set[str](), set[str](), list[SourceLocation](), True
    for file, node, found in search.find():
        places.append(SourceLocation(f"{label_of(folder)}/{file}", node.lineno, node.col_offset + 1))
        whole = {name for name, is_whole in found if is_whole}
        names |= {name for name in whole if _VARIABLE.match(name)}
        beginnings |= {name for name, is_whole in found if not is_whole and name}
        is_seen = is_seen and all(name for name, _ in found) and bool(found)
    if not places:
        return None
    return UnknownVariables(
        min(places, key=lambda one: one.line), tuple(sorted(names)), tuple(sorted(beginnings)), is_seen
    )


class _VariableSearch:
    def __init__(self, source: HandlerSource) -> None:
        self._source = source
        self._values = NameValues(source, follows_calls=True)

    def find(self) -> Iterator[tuple[str, ast.expr | ast.stmt, list[tuple[str, bool]]]]:
        """The file, the place, and names, each whole or (False) its beginning alone."""
        for file, tree in self._source.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.expr | ast.stmt) and (found := self._read(node)) is not None:
                    yield file, node, found

    def _read(self, node: ast.expr | ast.stmt) -> list[tuple[str, bool]] | None:
        match node:
            case ast.Subscript(value=base, slice=key, ctx=ast.Load()) if self._is_environ(base):
                return self._names_of(key)
            case ast.Call(func=ast.Attribute(value=base, attr=name), args=[key, *_]) if (
                name in _READS and self._is_environ(base)
            ):
                return self._names_of(key)
            case ast.Call(args=[key, *_]) if call_name_of(node) == "getenv":
                return self._names_of(key)
            case ast.For(iter=values) if self._is_environ(values):
                return self._beginnings_in(node)
            case ast.DictComp() | ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._beginnings_in(node) if any(self._is_environ(one.iter) for one in node.generators) else None
            case ast.Call(func=ast.Attribute(attr="prefixed"), args=[ast.Constant(value=str(text))]):
                return [(text, False)]
            case ast.ClassDef() if any(ast.unparse(one).endswith(_SETTINGS_CLASS) for one in node.bases):
                return self._list_fields(node)
        return None

    def _is_environ(self, node: ast.expr, steps: int = MOST_STEPS) -> bool:
        """`os.environ`, a copy of it, a view of it, or a name for one of these."""
        match node:
            case _ if not steps:
                return False
            case ast.Attribute(attr="environ") | ast.Name(id="environ"):
                return True
            case ast.Call(func=ast.Name(id="dict" | "sorted" | "list"), args=[inner]):
                return self._is_environ(inner, steps - 1)
            case ast.Call(func=ast.Attribute(value=inner, attr=name), args=[]):
                return name in _VIEWS and self._is_environ(inner, steps - 1)
            case ast.Name():
                values = self._values.values_of(node)
                return bool(values) and all(self._is_environ(one, steps - 1) for one in values or ())
        return False

    def _names_of(self, key: ast.expr) -> list[tuple[str, bool]] | None:
        """None where it stands there as it is."""
        if isinstance(key, ast.Constant):
            return None
        if texts := self._values.texts_of(key):
            return [(text, True) for text in sorted(texts)]
        parts = _list_parts(key)
        known = frozenset({""})
        for count in range(1, len(parts) + 1):
            if (texts := self._values.texts_of(ast.JoinedStr(parts[:count]))) is None:
                break
            known = texts
        return [(text, False) for text in sorted(known)]

    def _beginnings_in(self, node: ast.AST) -> list[tuple[str, bool]]:
        """What is asked of the names inside: `startswith`."""
        calls = (one for one in ast.walk(node) if isinstance(one, ast.Call) and one.args)
        asked = [one.args[0] for one in calls if call_name_of(one) == "startswith"]
        return [(text, False) for one in asked for text in sorted(self._values.texts_of(one) or {""})]

    def _list_fields(self, node: ast.ClassDef) -> list[tuple[str, bool]]:
        """Of a class of settings: what its fields are read from."""
        said = [one.value for one in ast.walk(node) if isinstance(one, ast.keyword) and one.arg == _PREFIX_SETTING]
        said += [
            one.value
            for one in ast.walk(node)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == _PREFIX_SETTING
        ]
        begins = sorted(self._values.texts_of(said[0]) or {""}) if said else [""]
        fields = [
            one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        return [(f"{begin}{name}".upper(), True) for begin in begins for name in fields if name != "model_config"]


def _list_parts(key: ast.expr) -> list[ast.expr]:
    """What a text is made of, in its order."""
    match key:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_list_parts(left), *_list_parts(right)]
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return [ast.Constant(text.partition("%")[0])]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return [ast.Constant(text.partition("{")[0])]
        case ast.JoinedStr(values=parts):
            return parts
    return [key]
