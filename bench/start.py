"""Measure start, idle time and stop, beside `hermes gateway run`: goals P5 and P7.

`.venv/bin/python -m bench.start [--rounds N] [--alone]`. Absolute figures move with the machine and the hour; ratios
within one run are what counts, so the two are started in turn. hermes-agent is installed into an environment of its
own below the user's cache directory, once. Each side runs in a temporary home that it has seen before, with nothing
to talk to: hermes-agent without any chat network, which is its lightest; ours with the model `demo`.
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.options import parse_options
from bench.processes import Life, Ready, live, notified, seconds
from gateway.cli.program import COMMANDS

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
HERMES = "hermes-agent[messaging]==0.19.0"
HOOKS = 10
IDLE = 1.5
HANDLER = "import json\n\n\nasync def handle(event_type, context):\n    return None\n"
HERMES_CONFIG = (
    "model:\n  default: none\n  provider: custom\n  base_url: http://127.0.0.1:9/v1\n  api_key: none-at-all\n"
)


@dataclass(frozen=True)
class Side:
    """One of the two gateways: how to run it in a home, and how to know that it is ready."""

    name: str
    command: Sequence[str]
    config: str
    watch: Callable[[Path], contextlib.AbstractContextManager[Ready]]

    def run(self, home: Path, measured: bool = True) -> Life:
        environment = environ(home) | ({} if measured else {"PYTHONPROFILEIMPORTTIME": "1"})
        with self.watch(home) as ready:
            return live(self.command, environment, ready, home.parent / "said", IDLE if measured else 0)


def environ(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(home.parent),
        "HERMES_HOME": str(home),
        "NOTIFY_SOCKET": str(home.parent / "notify"),
        "GATEWAY_ALLOW_ALL_USERS": "true",
        "LANG": "C.UTF-8",
    }


def our_ready(home: Path) -> contextlib.AbstractContextManager[Ready]:
    return notified(home.parent / "notify")


@contextlib.contextmanager
def hermes_ready(home: Path) -> Iterator[Ready]:
    """Its state file says `running`; the one of the run before is removed first."""
    state = home / "gateway_state.json"
    state.unlink(missing_ok=True)

    def ready() -> bool:
        time.sleep(0.001)
        with contextlib.suppress(OSError, ValueError):
            return bool(json.loads(state.read_text())["gateway_state"] == "running")
        return False

    yield ready


def add_hooks(home: Path, count: int) -> None:
    for number in range(count):
        folder = home / "hooks" / f"hook-{number}"
        folder.mkdir(parents=True)
        (folder / "HOOK.yaml").write_text(f"name: hook-{number}\ndescription: does nothing\nevents: [agent:end]\n")
        (folder / "handler.py").write_text(HANDLER)


def install_hermes() -> Path:
    """Return its environment, made if it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-gateway-bench" / HERMES
    if not (cache / "bin" / "hermes").exists():
        uv = shutil.which("uv") or str(ROOT / ".uv" / "bin" / "uv")
        print(f"installing {HERMES} into {cache}", file=sys.stderr)
        trusting = os.environ | {"UV_SYSTEM_CERTS": "1"}
        subprocess.run([uv, "venv", "-q", "--no-project", "--clear", str(cache)], env=trusting, check=True)
        into = [uv, "pip", "install", "-q", "--no-config", "--python", str(cache / "bin" / "python"), HERMES]
        subprocess.run(into, env=trusting, check=True)
    return cache / "bin" / "hermes"


def sides(alone: bool) -> list[Side]:
    ours = Side("hermes-gateway", [str(BIN / "hermes-gateway"), "run"], "", our_ready)
    if alone:
        return [ours]
    command = [str(install_hermes()), "gateway", "run"]
    return [ours, Side("hermes-agent", command, HERMES_CONFIG, hermes_ready)]


def median(lives: Sequence[Life], name: str) -> float:
    return float(statistics.median(getattr(life, name) for life in lives))


def measure(sides: Sequence[Side], hooks: int, rounds: int) -> dict[str, list[Life]]:
    """All sides in turn, after one run each that makes the home and counts the modules."""
    found: dict[str, list[Life]] = {side.name: [] for side in sides}
    with tempfile.TemporaryDirectory() as top:
        homes = {side.name: Path(top) / side.name / "home" for side in sides}
        for side in sides:
            homes[side.name].mkdir(parents=True)
            (homes[side.name] / "config.yaml").write_text(side.config)
            add_hooks(homes[side.name], hooks)
            side.run(homes[side.name])
            found[side.name].append(side.run(homes[side.name], measured=False))
        for number in range(rounds):
            for side in sides if number % 2 else reversed(sides):
                found[side.name].append(side.run(homes[side.name]))
    return found


def show(title: str, found: dict[str, list[Life]]) -> None:
    print(f"\n{title}\n{'':18}{'ready':>9}{'stop':>9}{'PSS':>10}{'RSS':>10}{'processes':>11}{'modules':>9}")
    for name, (counted, *lives) in found.items():
        ready, stop, pss, rss = (median(lives, column) for column in ("ready", "stop", "pss", "rss"))
        print(f"{name:18}{ready:7.3f} s{stop:7.3f} s{pss:7.1f} MB{rss:7.1f} MB", end="")
        print(f"{median(lives, 'processes'):11.0f}{counted.modules:9}")


def judge(what: str, value: float, most: float) -> None:
    print(f"{'met   ' if value <= most else 'MISSED'}  {what}: {value:.2f} (goal: at most {most:.2f})")


def commands(rounds: int) -> dict[str, float]:
    """Commands that end by themselves, beside an interpreter that does nothing."""
    program = str(BIN / "hermes-gateway")
    bare = [str(BIN / "python"), "-c", "pass"]
    wanted = {"python": bare, "--help": [program, "--help"]}
    if "hooks" in COMMANDS:
        wanted["hooks list"] = [program, "hooks", "list"]
    with tempfile.TemporaryDirectory() as top:
        home = Path(top) / "home"
        add_hooks(home, HOOKS)
        times = {name: [seconds(line, environ(home)) for _ in range(rounds)] for name, line in wanted.items()}
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--alone", action="store_true", help="without hermes-agent, and so without ratios")
    options = parse_options(parser, rounds=1, alone=True)
    both = sides(options.alone)
    empty, full = (measure(both, hooks, options.rounds) for hooks in (0, HOOKS))
    show("No hooks", empty)
    show(f"{HOOKS} hooks", full)
    ours = "hermes-gateway"
    print()
    judge("P7 idle, no hooks, all processes, MB PSS", median(empty[ours][1:], "pss"), 85)
    judge("P7 each hook, MB PSS", (median(full[ours][1:], "pss") - median(empty[ours][1:], "pss")) / HOOKS, 4)
    for name in full.keys() - {ours}:
        ratio = median(full[ours][1:], "ready") / median(full[name][1:], "ready")
        judge(f"P5 ready with {HOOKS} hooks, as a part of {name}", ratio, 0.35)
    times = commands(options.rounds)
    for name in times.keys() - {"python"}:
        judge(f"P5 {name} ({times[name]:.3f} s), in bare interpreters", times[name] / times["python"], 4)


if __name__ == "__main__":
    main()
