"""How much code there is, counted by its tokens, without blank lines, comments, docstrings and imports.

    python -m bench.code_lines            # each room of gateway/, and the sum
    python -m bench.code_lines FOLDER     # of another tree
    python -m bench.code_lines --budgets  # write what is there now to tests/budgets.toml

Lines are those that hold a token; a longer name makes more of them, and denser formatting fewer. Statements (lines as
Python counts them) and tokens do not change with the formatting.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

HOUSE = Path(__file__).parent.parent / "gateway"
BUDGETS = HOUSE.parent / "tests" / "budgets.toml"
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
COUNTED = ("files", "lines", "statements", "tokens")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_code(text: str) -> Counter[str]:
    """Returns the lines, statements and tokens of code in this source."""
    skipped = lines_passed_over(ast.parse(text))
    tokens = [one for one in tokenize.generate_tokens(io.StringIO(text).readline) if one.start[0] not in skipped]
    found = [token for token in tokens if token.type not in SILENT]
    lines = {line for token in found for line in range(token.start[0], token.end[0] + 1)}
    statements = sum(token.type == tokenize.NEWLINE for token in tokens)
    return Counter(files=1, lines=len(lines), statements=statements, tokens=len(found))


def lines_passed_over(tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of docstrings and imports."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        passed: list[ast.stmt] = [node] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            passed.append(node.body[0])
        for statement in passed:
            skipped.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return skipped


def count_rooms(top: Path) -> dict[str, Counter[str]]:
    """The counts of each folder directly below `top`; "." has the modules beside them."""
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(top.rglob("*.py")):
        inside = path.relative_to(top)
        room = inside.parts[0] if len(inside.parts) > 1 else "."
        rooms.setdefault(room, Counter()).update(count_code(path.read_text("utf-8")))
    return rooms


def write_budgets(rooms: Mapping[str, Counter[str]]) -> None:
    lines = [
        f'"{room}" = {{ files = {count["files"]}, lines = {count["lines"]} }}' for room, count in sorted(rooms.items())
    ]
    head = BUDGETS.read_text("utf-8").partition("\n\n")[0]
    BUDGETS.write_text("\n".join([head, "", *lines, ""]), "utf-8")


def main(top: Path) -> None:
    rooms = dict(sorted(count_rooms(top).items(), key=lambda one: -one[1]["tokens"]))
    for room, count in {**rooms, "all": sum(rooms.values(), Counter())}.items():
        print(f"{room:<14}" + "".join(f"{count[what]:>8} {what}" for what in COUNTED))


if __name__ == "__main__":
    if sys.argv[1:] == ["--budgets"]:
        write_budgets(count_rooms(HOUSE))
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else HOUSE)
