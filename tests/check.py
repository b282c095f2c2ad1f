"""`./x check`: format, lint, types, floors, names, prose, house rules and docs. `./x check lint docs`: some of them."""

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
TYPED = ("gateway", "tests", "bench", "docs/adapters")
HOOK_FOLDERS = ("hooks_builtin", "sample_hooks")


@dataclass(frozen=True, slots=True)
class Outcome:
    ok: bool
    seconds: float
    said: str


def commands() -> dict[str, Sequence[Sequence[str]]]:
    python, ruff, mypy = str(BIN / "python"), str(BIN / "ruff"), str(BIN / "mypy")
    pytest = [python, "-m", "pytest", "-q"]
    return {
        "format": [[ruff, "format", "--check", "--quiet", "--diff", "."]],
        "lint": [[ruff, "check", "--quiet", "."]],
        "types": [
            [mypy, "--no-error-summary", "gateway", "tests", "bench", "docs/adapters"],
            *map(hook_types, hooks()),
        ],
        "floors": [[str(BIN / "lint-imports"), "--no-logo"]],
        "names": [[*pytest, "tests/test_names.py"]],
        "prose": [[python, "tests/prose.py"]],
        "house": [[*pytest, "tests/test_architecture.py"]],
        "docs": [[*pytest, "tests/test_docs.py"]],
    }


def hooks() -> list[Path]:
    return sorted(code for folder in HOOK_FOLDERS for code in (ROOT / folder).rglob("*.py"))


def hook_types(code: Path) -> list[str]:
    """A hook folder is not a package, and its handler has no annotations unless its author likes them."""
    return [str(BIN / "mypy"), "--no-error-summary", "--allow-untyped-defs", "--allow-untyped-calls", str(code)]


def run(steps: Sequence[Sequence[str]]) -> Outcome:
    """Run all steps: people who mend things want to see them all."""
    begun = time.monotonic()
    done = [subprocess.run(step, cwd=ROOT, capture_output=True, text=True, check=False) for step in steps]
    said = "".join(step.stdout + step.stderr for step in done if step.returncode)
    return Outcome(not any(step.returncode for step in done), time.monotonic() - begun, said)


def main(wanted: Sequence[str]) -> int:
    known = commands()
    if strange := [name for name in wanted if name not in known]:
        print(f"no such check: {', '.join(strange)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    names = list(wanted or known)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(run, (known[name] for name in names)))
    for name, outcome in zip(names, outcomes, strict=True):
        print(f"{name:<8} {'ok' if outcome.ok else 'FAILED':<7} {outcome.seconds:5.1f} s")
        print(outcome.said, end="")
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
