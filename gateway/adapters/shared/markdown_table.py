"""The columns of a table, one below the other, for networks that show none."""

from collections.abc import Sequence

MOST_BLANKS = 8  # times what stands in the cells; besides:
FREE_BLANKS = 4000


def fit_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The cells of each row, as wide as those of its column, and a row of dashes below the first.

    They are left as they are where most of the table would be blanks: one wide cell above a thousand narrow ones would
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
