"""How much code there is: lines that hold a token of code, without blank lines, comments, docstrings and imports.

    python -m bench.code_lines            # each room of gateway/, and the sum
    python -m bench.code_lines FOLDER     # of another tree

A line counts once however much stands in it; beside it stand the tokens, which denser formatting does not change.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_code(text: str) -> tuple[int, int]:
    """The lines of code in this source, and the tokens in them."""
    skipped = lines_passed_over(ast.parse(text))
    found = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in SILENT and token.start[0] not in skipped
    ]
    lines = {line for token in found for line in range(token.start[0], token.end[0] + 1)}
    return len(lines), len(found)


def lines_passed_over(tree: ast.Module) -> set[int]:
    """The lines of docstrings and of imports, wherever they stand."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        passed: list[ast.stmt] = [node] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            passed.append(node.body[0])
        for statement in passed:
            skipped.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return skipped


def main(top: Path) -> None:
    lines: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in sorted(top.rglob("*.py")):
        inside = path.relative_to(top)
        room = inside.parts[0] if len(inside.parts) > 1 else "."
        code, count = count_code(path.read_text("utf-8"))
        lines[room] += code
        tokens[room] += count
        files[room] += 1
    for room, code in lines.most_common():
        print(f"{room:<14}{files[room]:>5} files{code:>8} lines{tokens[room]:>9} tokens")
    print(f"{'all':<14}{files.total():>5} files{lines.total():>8} lines{tokens.total():>9} tokens")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "gateway")
