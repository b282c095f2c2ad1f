"""`./x test`: is a change right? The answer takes minutes. `./x test --all`: everything, as CI runs it.

The checks come first, and it ends there when one fails. Then five workers run the tests, and what failed is run once
more, alone: a test that passes then is *unsteady*. Up to three of those do not fail the run; whoever sees one mends it,
or enters it in `tests/unsteady.toml` with the day and what is known. `./x test ARGUMENT...` is pytest alone: no checks,
no workers, and each test that is named runs.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.check import main as check

ROOT = Path(__file__).parent.parent
CACHE = ROOT / ".pytest_cache" / "v" / "gateway"
UNSTEADY = ROOT / "tests" / "unsteady.toml"
CHECKS = ("format", "lint", "types", "floors", "names")
WORKERS = 5  # on two cores, since much of it is waiting
ALONE = "tests/chaos"  # kills, and sets back clocks, in time: it wants the machine for itself
MOST_UNSTEADY = 3
FAILED = 1  # as pytest ends when tests failed
ENDED = (0, FAILED)  # after all tests; else it broke off
MOST_TRIED_AGAIN = 25  # more than that is no bad luck

# program: what brings it, what is not tried without it
PROGRAMS = {
    "chromium": ("apt install chromium", "the page"),
    "node": ("Node 22 or newer, with npm", "adapters and models of others"),
    "systemd-analyze": ("apt install systemd", "the service's unit"),
    "flite": ("apt install flite opus-tools", "voice"),
    "sshd": ("apt install openssh-server", "hooks from git over ssh"),
    "nginx": ("apt install nginx", "the page behind it"),
    "caddy": ("apt install caddy", "the page behind it"),
}


def main(args: Sequence[str]) -> int:
    if args not in ([], ["--all"]):
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *args])
    begun = time.monotonic()
    chosen = [f"--ignore={ALONE}", *([] if args else ["-m", "not thorough"])]
    collection = [sys.executable, "-m", "pytest", "-qq", "--collect-only", *chosen]
    # Beside the checks, which keep one core busy: in a new clone, each worker would compile each file.
    with subprocess.Popen(collection, cwd=ROOT, stdout=subprocess.DEVNULL):
        code = check(CHECKS)
    if code:
        return code
    print(describe_left_out(is_whole=bool(args)), flush=True)
    runs = [["-n", str(WORKERS), "--dist", "loadfile", "--no-loadscope-reorder", *chosen]]
    if args:
        runs.append([ALONE])
    failures: dict[str, str] = {}
    is_broken = False
    for words in runs:
        code, failed = run_pytest(words)
        is_broken |= code not in ENDED or (code == FAILED and not failed)
        failures |= failed
    lasting = try_again(failures)
    unsteady = {name: said for name, said in failures.items() if name not in lasting}
    report_unsteady(unsteady)
    print(note_cost(time.monotonic() - begun))
    return 1 if is_broken or lasting or len(unsteady) > MOST_UNSTEADY else 0


def describe_left_out(is_whole: bool) -> str:
    missing = [
        f"{without} (no {program}: {how})" for program, (how, without) in PROGRAMS.items() if not shutil.which(program)
    ]
    left = (
        []
        if is_whole
        else ["what `./x test --all` runs besides (Hermes and servers of others beside us, sieges, the page)"]
    )
    return f"left out: {'; '.join([*left, *missing]) or 'nothing'}"


def run_pytest(words: Sequence[str]) -> tuple[int, dict[str, str]]:
    """Return the exit code, and the output of each test or file that failed."""
    told = CACHE / "failures"
    told.unlink(missing_ok=True)  # a run that breaks off writes none
    code = subprocess.run([sys.executable, "-m", "pytest", "-q", *words], cwd=ROOT, check=False).returncode
    return code, json.loads(told.read_text("utf-8")) if told.exists() else {}


def try_again(failures: Mapping[str, str]) -> Mapping[str, str]:
    """Return the tests that fail alone, too."""
    if not failures or len(failures) > MOST_TRIED_AGAIN:
        return failures
    print(f"\nonce more, alone: {len(failures)}", flush=True)
    code, lasting = run_pytest([*failures])
    return lasting if code in ENDED and (lasting or code != FAILED) else failures


def report_unsteady(unsteady: Mapping[str, str]) -> None:
    known = tomllib.loads(UNSTEADY.read_text("utf-8"))
    for name, said in unsteady.items():
        print(f"\nunsteady: {name}\n{known.get(name, {}).get('known', 'not in tests/unsteady.toml')}\n{said}")


def note_cost(wall: float) -> str:
    """What it took, said and kept: `python -m bench.whole` reads it."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = spent.ru_utime + spent.ru_stime
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "last_run").write_text(json.dumps({"processor": processor, "wall": wall}))
    return f"{processor / 60:.1f} minutes of processor, {wall / 60:.1f} of time"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
