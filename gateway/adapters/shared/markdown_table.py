"""The columns of a table, aligned in plain text, for networks that show no tables."""

from collections.abc import Sequence

MOST_BLANKS = 8  # times the length of all cells; in addition:
FREE_BLANKS = 4000


def fit_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Pad the cells of each row to the width of their column, and add a row of dashes below the first.

    The cells stay as they are if most of the table would be blanks: one wide cell above a thousand narrow ones would
    become as many wide ones.
    """
    widths = [0] * max(map(len, rows))
    for row in rows:
        for column, cell in enumerate(row):
            widths[column] = max(widths[column], len(cell))
    if sum(widths) * len(rows) > MOST_BLANKS * sum(len(cell) for row in rows for cell in row) + FREE_BLANKS:
        widths = [len(cell) for cell in rows[0]]
        return [[*rows[0]], ["-" * width for width in widths], *([*row] for row in rows[1:])]
    aligned = [[cell.ljust(width) for cell, width in zip(row, widths, strict=False)] for row in rows]
    return [aligned[0], ["-" * width for width in widths], *aligned[1:]]
