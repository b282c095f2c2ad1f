"""`./x prove`: the proofs that there are. `./x prove NAME...`: what takes over a minute, with its table.

`all` is every one of them. `--short` is what CI runs; `--part` tries a part of a proof that has several; `--tree DIR`
tries the gateway of another checkout, in its own environment. A whole run on this checkout writes
`docs/proofs/NAME.md`. Exit 1 when a promise breaks.
"""

import argparse
import importlib
import logging
import signal
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.proof_table import ROOT, Row, Trial, as_line, as_page, try_whole, widths_of

FOLDER = ROOT / "tests" / "proofs"
PAGES = ROOT / "docs" / "proofs"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def proof(name: str) -> ModuleType:
    return importlib.import_module(f"tests.proofs.{name}")


def about(name: str) -> str:
    return (proof(name).__doc__ or "").strip()


def describe_run(tree: Path, seconds: float) -> str:
    """Describe the trial: the version and the day, which stay meaningful whatever becomes of the commits."""
    version = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    day, minutes = time.strftime("%Y-%m-%d"), round(seconds / 60)
    lasted = "1 minute" if minutes == 1 else f"{minutes} minutes"
    return f"version {version}, {day}, {lasted}"


def is_kept(name: str, trial: Trial) -> bool:
    """Try it, and print the rows as they come."""
    module, rows, begun = proof(name), list[Row](), time.monotonic()
    widths = widths_of(module.COLUMNS, [], module.WIDEST)
    print(
        f"== {name}: {describe_run(trial.tree, 0).rpartition(',')[0]}{', short' if trial.is_short else ''}", flush=True
    )
    print(as_line(module.COLUMNS, widths), flush=True)
    for row in try_whole(name, module.COLUMNS, module.prove, trial):
        rows.append(row)
        trial.tell("")
        print(as_line(row.cells, widths), flush=True)
        for line in [*(f"  ! {one}" for one in row.faults), *(f"  {one}" for one in row.remarks)]:
            print(line, flush=True)
    seconds = time.monotonic() - begun
    if not trial.is_short and not trial.parts and trial.tree == ROOT:
        PAGES.mkdir(exist_ok=True)
        page = as_page(name, about(name), module.COLUMNS, rows, describe_run(trial.tree, seconds))
        (PAGES / f"{name}.md").write_text(page, "utf-8")
    faults = sum(len(row.faults) for row in rows)
    print(f"{name}: {f'{faults} broken promises' if faults else 'holds'} ({seconds:.0f} s)", flush=True)
    return not faults


def check_part(parser: argparse.ArgumentParser, given: list[str], part: str) -> None:
    for name in given:
        parts = [] if name == "all" else [*getattr(proof(name), "PARTS", {})]
        if part not in parts:
            parser.error(f"{name} has no part {part!r}; it has {', '.join(parts) or 'none'}")


def tell(what: str) -> None:
    """Print the state on one line that the next one replaces; a log has no such line."""
    if sys.stdout.isatty():
        print(f"\r\033[K{what[:79]}", end="", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./x prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*names(), "all", []])
    parser.add_argument("--short", action="store_true", help="what CI runs")
    parser.add_argument("--part", action="append", default=[], metavar="PART", help="of one proof; may be repeated")
    parser.add_argument("--tree", type=Path, default=ROOT, metavar="DIR", help="another checkout, with its .venv")
    options = parser.parse_args()
    for part in options.part:
        check_part(parser, options.names, part)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.getLogger().addHandler(logging.NullHandler())  # lines that break are no news here
    if not options.names:
        print("\n".join(f"{name:<8} {about(name).splitlines()[0]}" for name in names()))
        return 0
    kept = True
    for name in names() if "all" in options.names else options.names:
        with tempfile.TemporaryDirectory(prefix="prove-") as folder:
            kept &= is_kept(name, Trial(Path(folder), options.tree.resolve(), options.short, (*options.part,), tell))
    return 0 if kept else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("ended before it was over")
