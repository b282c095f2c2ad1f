"""Probes in the byte code of a clone: every process of its environment then tells which lines it comes by.

A line is the first one of a statement. The sources stay as they are: byte code that Python does not compare with them
(PEP 552) is what it runs, whoever starts it. Only the handlers of our own hooks get the probes written into their text,
as a worker compiles them from that.
"""

import ast
import importlib.util
import json
import marshal
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests import line_hits
from tests.source_faults import list_statements

ROOMS = ("gateway", "hooks_builtin")
FROM_TEXT = "hooks_builtin/"
UNCHECKED = (1).to_bytes(4, "little")


def list_sources(tree: Path) -> list[str]:
    """The files that get probes, and faults."""
    return [path.relative_to(tree).as_posix() for room in ROOMS for path in sorted((tree / room).rglob("*.py"))]


def list_lines(module: ast.Module) -> dict[int, bool]:
    """List the first lines of statements, and if each waits for a call or runs at import."""
    lines: dict[int, bool] = {}
    for statement in list_statements(module):
        line = statement.node.lineno
        lines[line] = lines.get(line, True) and statement.is_in_function
    return lines


def add_probes(module: ast.Module, numbers: Mapping[int, int]) -> ast.Module:
    """Each statement is preceded by one with the number of its line."""
    for node in list(ast.walk(module)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                block[:] = list_probed(block, numbers)
    return module


def list_probed(block: list[ast.stmt], numbers: Mapping[int, int]) -> Iterator[ast.stmt]:
    for place, statement in enumerate(block):
        if not has_to_be_first(place, statement):
            [probe] = ast.parse(f"{line_hits.BYTES}[{numbers[statement.lineno]}] = {line_hits.HIT}").body
            yield ast.increment_lineno(probe, statement.lineno - 1)
        yield statement


def has_to_be_first(place: int, statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Constant(str())):
            return place == 0  # a docstring
        case ast.ImportFrom("__future__"):
            return True
    return False


def put_probes(tree: Path) -> None:
    """Into all sources of a clone, and what they tell into its environment."""
    lines: list[tuple[str, int, bool]] = []
    for path in list_sources(tree):
        source = (tree / path).read_bytes()
        module = ast.parse(source)
        known = list_lines(module)
        numbers = {line: number for number, line in enumerate(known, len(lines))}
        lines += [(path, line, is_inner) for line, is_inner in known.items()]
        write_probed(tree / path, source, add_probes(module, numbers), is_text=path.startswith(FROM_TEXT))
    [site] = (tree / ".venv" / "lib").glob("python*/site-packages")
    shutil.copy(line_hits.__file__, site)
    (site / "line_hits.pth").write_text("import line_hits\n")
    folder = tree / ".venv" / line_hits.FOLDER.name
    folder.mkdir()
    (folder / line_hits.LINES.name).write_text(json.dumps(lines))


def write_probed(file: Path, source: bytes, module: ast.Module, *, is_text: bool) -> None:
    if is_text:
        file.write_text(ast.unparse(module), "utf-8")
        return
    code = marshal.dumps(compile(module, str(file), "exec", dont_inherit=True))
    kept = Path(importlib.util.cache_from_source(str(file)))
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source) + code)
