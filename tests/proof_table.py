"""The input of a proof, and its output: a table whose rows come one after the other, each of which holds or not.

A proof is a module in `tests/proofs`: its docstring says what it proves, `COLUMNS` names the columns of its table, and
`prove(trial)` yields the rows as they are known, so that a long one is not lost when it is ended. One that has several
parts names them in `PARTS`, each with a function that yields its rows, so that one of them can be tried alone.
"""

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import describe_error, unwrap_error

ROOT = Path(__file__).parent.parent
WIDTH = 80
CALLS_TOLD = 3


@dataclass(frozen=True)
class Trial:
    """The gateway to try, the duration, and the folder of its leftovers; `parts`: those to try, () for all."""

    folder: Path
    tree: Path = ROOT
    is_short: bool = False
    parts: tuple[str, ...] = ()
    tell: Callable[[str], None] = print

    def amount(self, full: int, short: int) -> int:
        return short if self.is_short else full


@dataclass(frozen=True)
class Row:
    """One line; `faults` say what breaks which promise, `remarks` what should be known beside."""

    cells: tuple[str, ...]
    faults: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def make_row(what: str, goal: str, came: str, is_met: bool = True, remarks: tuple[str, ...] = ()) -> Row:
    """Make a row of a table whose second column names the promise."""
    return Row((what, goal, came), () if is_met else (f"{what}: {came}, and promised was {goal}",), remarks)


def try_whole(
    what: str, columns: Sequence[str], prove: Callable[[Trial], Iterator[Row]], trial: Trial
) -> Iterator[Row]:
    """Its rows; where it broke off before its end, the last one says by what, and where that was."""
    try:
        yield from prove(trial)
    except Exception as error:  # noqa: BLE001 - it may be anything, and what else is proved goes on
        calls = traceback.extract_tb(unwrap_error(error).__traceback__)[-CALLS_TOLD:]
        places = [f"{Path(one.filename).name}:{one.lineno}, {one.name}" for one in reversed(calls)]
        faults = f"{what} broke off: {describe_error(error)}", f"in {', called by '.join(places)}"
        yield Row((f"{what} broke off", *[""] * (len(columns) - 1)), faults)


def as_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    first, *others = cells
    return "  ".join([first.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(others, widths[1:], strict=True))])


def widths_of(columns: Sequence[str], rows: Sequence[Row], first: int) -> list[int]:
    """How wide each column is; the first one is at least so wide."""
    table = [columns, *(row.cells for row in rows)]
    widths = [max(len(line[at]) for line in table) for at in range(len(columns))]
    return [max(widths[0], first), *widths[1:]]


def as_page(name: str, about: str, columns: Sequence[str], rows: Sequence[Row], of: str) -> str:
    """The page that keeps the table; `of` says of which commit it is, and when it was made."""
    lines = [" | ".join(one) for one in (columns, ["---"] * len(columns), *(row.cells for row in rows))]
    table = "\n".join(f"| {line} |" for line in lines)
    faults = [f"- {fault}" for row in rows for fault in row.faults]
    remarks = [f"- {remark}" for row in rows for remark in row.remarks]
    end = "\n".join(["Broken promises:", "", *faults] if faults else ["Every promise held.", "", *remarks]).rstrip()
    return f"# {name}\n\n{about}\n\n`./x prove {name}`, {of}:\n\n{table}\n\n{end}\n"
