"""Count calls, records, SQL, turns of the loop and memory of the gateway: no busy machine changes these.

`.venv/bin/python -m bench.trips [TREE...] [--scene NAME] [--functions ROW] [--drawing ROW] [--lower]`. Each scene is
a real gateway of its own, whose model answers at once; see `bench/peers/counted_gateway.py` for what each count is.
`bench/bounds.toml` has the most that each row may be and, where that is not reached yet, its goal;
`tests/test_trips.py` holds the bounds. `--functions alone.entries` lists what a row is made of, `--drawing
alone.entries` draws its rooms in the order in which they are entered. `--lower` writes the bounds that can be lower.
Below the counts stands how many functions, files and rooms of `gateway/` a message, a verb and a folder cross.

`alone` is the median of 15 messages, each counted until a moment after its answer; `brisk` is 15 of one person without
a pause, from turn 10 of a conversation on, `long` the same from turn 300 on, beside that; `many` is 16 people at a
time. Of the last three it is the median of three rounds, or one.
"""

import argparse
import asyncio
import itertools
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from bench import start, whole
from bench.options import parse_options
from bench.processes import descendants, memory
from bench.whole import COUNTED, MANY, ROOT, TreeGateway, read_report, run_gateway
from gateway.control.client import ControlClient
from gateway.testing.gateway_process import CALL_SECONDS
from gateway.testing.live_gateway import until
from gateway.testing.networks.wire import ANN, Wire
from tests.adapters.discord_wire import DiscordWire
from tests.adapters.slack_wire import SlackWire
from tests.adapters.telegram_wire import TelegramWire

BOUNDS = ROOT / "bench" / "bounds.toml"
ENDPOINT = ROOT / "bench" / "peers" / "endpoint.py"
MESSAGES, ASKED = 15, 5
WARM, SHORT_TURN, LONG_TURN = 20, 10, 300
ROUNDS, TURNS_EACH = 3, 8
SETTLE = 0.2  # seconds after an answer, in which the rest of its message is done
IDLE, LONG_IDLE = 2.0, 10.0
DELIVERY = 3.0  # seconds until a durable hook has the events of a few messages
LOOKS = 10.0  # seconds in which an idle gateway looks at everything once
HOOKS = 1000
ENTRIES_A_BLOCK = 25  # in a drawing
VERBS = ("hooks.list", "status", "keys.list")
SDKS = ("openai", "httpx2", "pydantic", "mcp", "anthropic")
COUNTS = (
    *("calls", "entries", "appends", "records", "commits", "statements"),
    *("turns", "hops", "tasks", "timers", "scopes", "copies"),
)
DEAF = {"HOOK.yaml": "events: ['session:reset']\n", "handler.py": "def handle(event_type, context):\n    pass\n"}
# A bound is the count and this much more; some counts differ from run to run, by what happens to meet.
SPARE, LOOSE_SPARE, MEMORY_SPARE = 1.05, 1.25, 1.02
LOOSE = ("turns", "hops", "timers", "alone.statements", "written", "wakeups", "reads", "kept", "idle.entries")
EXACT = ("appends", "records", "commits", "sdks")
# How many messages share a round of the journal's thread, and its wakings, depends on the disk and on the load: these
# bounds tell only that they do. One alone has three hops, four tasks and five timers.
SHARED = {"many.hops": 1.0, "many.tasks": 3.6, "many.timers": 3.0}

Found = dict[str, float]  # by row


@dataclass
class CountedGateway:
    """A gateway that says what it has counted."""

    gateway: TreeGateway
    report: Path

    def read(self) -> dict[str, Any]:
        """Return the counts since the last call."""
        return read_report(self.gateway, self.report)

    def during(self, act: Callable[[], object], settle: float = SETTLE) -> dict[str, Any]:
        """Return the counts of an act, and of a moment after it; its report is not among what it wrote."""
        self.read()
        before = self._read_written()
        act()
        time.sleep(settle)
        written = self._read_written() - before
        return {**self.read(), "written": written}

    def is_up(self, network: str) -> bool:
        return bool(self.gateway.call("status")["platforms"][network]["up"])

    def _read_written(self) -> int:
        """Bytes that went to the disk so far."""
        io = Path(f"/proc/{self.gateway.pid}/io").read_text("utf-8")
        return int(io.partition("\nwrite_bytes: ")[2].split()[0])


@contextmanager
def run_counted(tree: Path, **more: Any) -> Iterator[CountedGateway]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        with run_gateway(tree, str(COUNTED), str(report), **more) as gateway:
            yield CountedGateway(gateway, report)


@contextmanager
def talking(gateway: TreeGateway, session: str) -> Iterator[Callable[[], object]]:
    """Yield a function that says one more thing in a session, on one connection."""
    with ControlClient(gateway.home.socket, CALL_SECONDS) as client:
        yield lambda: client.call("chat.say", {"text": "hello", "session": session})


def middle(found: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(statistics.median(one.get(name, 0) for one in found))


def rows_of(scene: str, found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Found:
    return {f"{scene}.{name}": middle(found, name) for name in names}


class Functions(dict[str, Counter[str]]):
    """By row of entries, which functions they are of."""

    def note(self, row: str, found: Sequence[Mapping[str, Any]]) -> None:
        self[row] = Counter(found[len(found) // 2].get("functions", {}))

    def list_crossed(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield each row, with how many functions, files and rooms are entered for it."""
        for row, found in self.items():
            yield row, len(found), len({name.partition(":")[0] for name in found}), len({*map(room_of, found)})


FUNCTIONS = Functions()


def room_of(function: str) -> str:
    """Return the folder directly in `gateway/` that a function is in, or its module."""
    return function.partition(":")[0].partition("/")[0].removesuffix(".py")


def count_alone(tree: Path) -> Found:
    """One person: a message, the verbs, an idle gateway, turn 300, the first folder."""
    with run_counted(tree) as counted:
        with talking(counted.gateway, "warm") as speak:
            repeat(speak, WARM)
        with talking(counted.gateway, "long") as speak:
            repeat(speak, SHORT_TURN)
            brisk = [count_brisk(counted, speak)]
            alone = [counted.during(speak) for _ in range(MESSAGES)]
            found = rows_of("alone", alone, (*COUNTS, "written"))
            FUNCTIONS.note("alone.entries", alone)
            for verb in VERBS:
                asked = [counted.during(partial(counted.gateway.call, verb)) for _ in range(ASKED)]
                found |= rows_of(verb.replace(".", "_"), asked, ("entries",))
                FUNCTIONS.note(f"{verb.replace('.', '_')}.entries", asked)
            idle = counted.during(lambda: time.sleep(LOOKS), 0)
            found["idle.entries"] = idle["entries"] * IDLE / LOOKS
            FUNCTIONS.note("idle.entries", [idle])
            repeat(speak, LONG_TURN - SHORT_TURN - 2 * MESSAGES)
            late = count_brisk(counted, speak)
        for number in range(1, ROUNDS):
            with talking(counted.gateway, f"brisk-{number}") as speak:
                repeat(speak, SHORT_TURN)
                brisk.append(count_brisk(counted, speak))
        found |= rows_of("brisk", brisk, ("calls", "entries"))
        found["long.calls"] = late["calls"] / found["brisk.calls"]
        said = WARM + LONG_TURN + MESSAGES + (ROUNDS - 1) * (SHORT_TURN + MESSAGES)
        counted.gateway.call("sessions.list")  # the index of what was said is made with it
        placed = count_placing(counted)
        found |= rows_of("first_folder", placed, ("entries",))
        FUNCTIONS.note("first_folder.entries", placed)
        counted.gateway.stop()
        kept = sum(path.stat().st_size for path in (counted.gateway.home.journal, counted.gateway.home.search))
        return {**found, "alone.kept": kept / said}


def count_brisk(counted: CountedGateway, speak: Callable[[], object]) -> dict[str, float]:
    """A message of some without a pause between them."""
    found = counted.during(lambda: repeat(speak, MESSAGES))
    return {name: found.get(name, 0) / MESSAGES for name in COUNTS}


def repeat(act: Callable[[], object], times: int) -> None:
    for _ in range(times):
        act()


def count_placing(counted: CountedGateway, key: str = "events") -> list[dict[str, Any]]:
    """Count the first folder, between two looks at clocks and leases: they come together (`find_pause`)."""
    time.sleep(LOOKS - time.monotonic() % LOOKS + SETTLE)
    return [counted.during(lambda: place_hook(counted.gateway, key))]


def place_hook(gateway: TreeGateway, key: str) -> None:
    """Until it is loaded."""
    loaded = gateway.home.root.parent / "loaded"
    source = f"open({str(loaded)!r}, 'w').close()\n\ndef handle(event_type, context):\n    print(1)\n"
    gateway.add_hook("hello", {"HOOK.yaml": f"name: hello\n{key}: ['agent:end']\n", "handler.py": source})
    gateway.until(loaded.exists)


def count_many(tree: Path) -> Found:
    """16 people at a time, each in a conversation of their own."""
    with run_counted(tree) as counted:

        async def talk(turns: int) -> None:
            async with asyncio.TaskGroup() as talks:
                for number in range(MANY):
                    talks.create_task(whole.say(counted.gateway.home.socket, f"p{number}", turns))

        asyncio.run(talk(2))
        found = [counted.during(lambda: asyncio.run(talk(TURNS_EACH))) for _ in range(ROUNDS)]
    names = ("calls", "entries", "hops", "tasks", "timers", "scopes", "copies")
    FUNCTIONS.note("many.entries", found)
    return {row: value / MANY / TURNS_EACH for row, value in rows_of("many", found, names).items()}


def count_own_folder(tree: Path) -> Found:
    """Count the first folder, if it has a key of ours."""
    with run_counted(tree) as counted:
        with talking(counted.gateway, "warm") as speak:
            repeat(speak, WARM)
        counted.gateway.call("sessions.list")
        placed = count_placing(counted, "intercepts")
    FUNCTIONS.note("own_folder.entries", placed)
    return rows_of("own_folder", placed, ("entries",))


def count_owed(tree: Path) -> Found:
    """Count a message and its delivery to a durable hook of all events, one message after the other."""
    hook = {"HOOK.yaml": "events: ['*']\ndelivery: durable\n", "handler.py": DEAF["handler.py"]}
    with run_counted(tree, hooks={"keeps": hook}) as counted, talking(counted.gateway, "owed") as speak:
        repeat(speak, WARM)
        found = counted.during(lambda: repeat(speak, MESSAGES), DELIVERY)
    FUNCTIONS.note("owed.entries", [found])
    return {row: value / MESSAGES for row, value in rows_of("owed", [found], ("entries", "statements")).items()}


def count_deaf_hooks(tree: Path) -> Found:
    """Calls of a message beside a thousand hooks that hear nothing of it."""
    hooks = {f"hook-{number}": DEAF for number in range(HOOKS)}
    with (
        run_counted(tree, settings="hooks: {eager: 0}\n", hooks=hooks) as counted,
        talking(counted.gateway, "deaf") as speak,
    ):
        repeat(speak, WARM)
        found = [counted.during(speak) for _ in range(MESSAGES)]
    return rows_of("deaf_hooks", found, ("calls",))


async def count_on_network(tree: Path, wire: Wire, messages: int) -> list[dict[str, Any]]:
    """Count each message until a moment after its answer."""
    async with wire.serving():
        environ = {**wire.environ, f"{wire.network.upper()}_ALLOWED_USERS": wire.known_as(ANN)}
        running = run_counted(tree, settings=wire.settings, environ=environ)
        counted = await asyncio.to_thread(running.__enter__)
        try:
            await asyncio.to_thread(counted.gateway.until, lambda: counted.is_up(wire.network))
            found: list[dict[str, Any]] = []
            for _ in range(messages):
                await asyncio.to_thread(counted.read)
                await wire.write("hello")
                await until(lambda: len(wire.shown) > len(found), "the answer")
                await asyncio.sleep(SETTLE)
                found.append(await asyncio.to_thread(counted.read))
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
    return found


def count_telegram(tree: Path) -> Found:
    found = asyncio.run(count_on_network(tree, TelegramWire(), WARM + MESSAGES))[WARM:]
    FUNCTIONS.note("telegram.entries", found)
    counts = rows_of("telegram", found, ("entries", "appends", "records", "commits"))
    return {**counts, **count_modules("telegram", found[-1]["modules"])}


def count_imports(tree: Path, wire: Wire) -> Found:
    """Count the modules that are imported once a network has answered."""
    found = asyncio.run(count_on_network(tree, wire, 1))
    return count_modules(wire.network, found[-1]["modules"])


def count_modules(scene: str, modules: Sequence[str]) -> Found:
    return {f"{scene}.modules": float(len(modules)), f"{scene}.sdks": float(sum(name in SDKS for name in modules))}


def count_idle(tree: Path) -> Found:
    """Count an idle gateway, without anything that counts in it."""
    with run_counted(tree) as counted:
        modules = count_modules("idle", counted.read()["modules"])
    [lives] = whole.measure_lives([tree], ROUNDS)
    with run_gateway(tree, "-m", "gateway.cli") as gateway:
        time.sleep(1)
        family = [gateway.pid, *descendants(gateway.pid)]
        before = look(family)
        time.sleep(LONG_IDLE)
        woken, read, written = (after - early for after, early in zip(look(family), before, strict=True))
    rates = {"idle.wakeups": woken / LONG_IDLE, "idle.reads": read / LONG_IDLE, "idle.written": written}
    return {"idle.anon": start.median(lives, "anon"), **modules, **rates}


def look(family: Sequence[int]) -> tuple[int, int, int]:
    """How often their threads waited and were woken, how often they read, and the bytes that they wrote, so far."""
    states = [path.read_text("utf-8") for pid in family for path in Path(f"/proc/{pid}/task").glob("*/status")]
    woken = sum(int(state.partition("\nvoluntary_ctxt_switches:")[2].split()[0]) for state in states)
    io = [Path(f"/proc/{pid}/io").read_text("utf-8") for pid in family]
    read, written = (
        sum(int(one.partition(f"\n{name}: ")[2].split()[0]) for one in io) for name in ("syscr", "write_bytes")
    )
    return woken, read, written


def count_model(tree: Path) -> Found:
    """An OpenAI-compatible model in use."""
    endpoint = subprocess.Popen([sys.executable, str(ENDPOINT)], stdout=subprocess.PIPE, text=True)
    try:
        assert endpoint.stdout
        url = f"http://127.0.0.1:{int(endpoint.stdout.readline())}/v1"
        model = f"model: {{provider: openai, name: text, base_url: '{url}'}}\n"
        with run_counted(tree, model=model) as counted:
            counted.gateway.say("hello")
            modules = count_modules("model", counted.read()["modules"])
        with run_gateway(tree, "-m", "gateway.cli", model=model) as gateway:
            gateway.say("hello")
            time.sleep(start.IDLE)
            return {"model.anon": memory([gateway.pid, *descendants(gateway.pid)]).anon, **modules}
    finally:
        endpoint.kill()
        endpoint.communicate()


SCENES: dict[str, Callable[[Path], Found]] = {
    "alone": count_alone,
    "many": count_many,
    "telegram": count_telegram,
    "discord": lambda tree: count_imports(tree, DiscordWire()),
    "slack": lambda tree: count_imports(tree, SlackWire()),
    "owed": count_owed,
    "deaf_hooks": count_deaf_hooks,
    "own_folder": count_own_folder,
    "idle": count_idle,
    "model": count_model,
}


def count(tree: Path, scenes: Sequence[str] = ()) -> Found:
    """All rows of these scenes, or of all of them."""
    found: Found = {}
    for scene in scenes or SCENES:
        found |= SCENES[scene](tree)
    if {"alone.calls", "deaf_hooks.calls"} <= found.keys():
        found["deaf_hooks.calls"] /= found["alone.calls"]
    return {row: shorten(value) for row, value in found.items()}


@dataclass(frozen=True)
class Bound:
    """The most that a row may be, and what it is to become."""

    most: float
    goal: float | None = None


def read_bounds() -> dict[str, Bound]:
    scenes = tomllib.loads(BOUNDS.read_text("utf-8"))
    return {f"{scene}.{name}": Bound(**bound) for scene, bounds in scenes.items() for name, bound in bounds.items()}


def find_broken(found: Found, bounds: Mapping[str, Bound]) -> list[str]:
    """A line for each row that is more than it may be."""
    over = {row: value for row, value in found.items() if value > bounds[row].most}
    return [f"{row}: {value:,g}, and may be {bounds[row].most:,g}" for row, value in over.items()]


def list_other_packages() -> list[str]:
    """List the packages that are here in another version than in requirements.lock, for which the bounds hold."""
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    wanted = dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock, re.MULTILINE))
    here = {one.name.lower().replace("_", "-"): one.version for one in metadata.distributions()}
    found = [f"{name} {here[name]}" for name, version in wanted.items() if here.get(name, version) != version]
    return found if sys.version_info[:2] == (3, 11) else ["Python {}.{}".format(*sys.version_info), *found]


def give_room(row: str, value: float) -> float:
    """The bound of what was counted once."""
    if row.endswith(EXACT) or row in SHARED:
        return SHARED.get(row, value)
    spare = MEMORY_SPARE if row.endswith("anon") else LOOSE_SPARE if row.endswith(LOOSE) else SPARE
    one_more = value + 1 if value == int(value) and row.startswith("alone.") else 0  # for what is few
    return shorten(max(math.ceil(value * spare * 100) / 100, one_more))


def shorten(value: float) -> float:
    """To four digits or so."""
    return round(value, 2 if value < 10 else 1) if value < 100 else round(value)


def lower(found: Found) -> None:
    """Write the bounds that can be lower."""
    bounds, scene, lines = read_bounds(), "", []
    for line in BOUNDS.read_text("utf-8").splitlines():
        scene = line.strip("[]") if line.startswith("[") else scene
        row = f"{scene}.{line.partition(' = ')[0]}"
        if row in bounds and row in found and (wanted := give_room(row, found[row])) < bounds[row].most:
            line = re.sub(r"most = [\d_.]+", f"most = {wanted:_}".removesuffix(".0"), line)
        lines.append(line)
    BOUNDS.write_text("\n".join(lines) + "\n", "utf-8")


def show(trees: Sequence[Path], found: Sequence[Found], bounds: Mapping[str, Bound]) -> None:
    print(f"{'':24}" + "".join(f"{whole.name_of(tree):>24}" for tree in trees) + f"{'bound':>12}{'goal':>12}")
    for row in dict.fromkeys(itertools.chain(*found)):
        cells = "".join(f"{one[row]:>24,g}" if row in one else f"{'-':>24}" for one in found)
        bound = bounds.get(row, Bound(0))
        print(f"{row:24}{cells}{bound.most:>12,g}" + (f"{bound.goal:>12,g}" if bound.goal is not None else ""))
    if FUNCTIONS:
        show_crossed(trees[-1])


def show_crossed(tree: Path) -> None:
    print(f"\ncrossed in {whole.name_of(tree):13}{'functions':>24}{'files':>12}{'rooms':>12}")
    for row, functions, files, rooms in FUNCTIONS.list_crossed():
        print(f"{row:24}{functions:>24,}{files:>12,}{rooms:>12,}")


def draw(found: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each room in the order in which it is entered: its weight, and its door."""
    rooms: dict[str, list[str]] = {}
    for function in found:
        rooms.setdefault(room_of(function), []).append(function)
    for room, functions in rooms.items():
        files = len({function.partition(":")[0] for function in functions})
        entries = sum(found[function] for function in functions)
        weight = f"{files:3} file{'s' * (files > 1):1} {entries:4} {'█' * math.ceil(entries / ENTRIES_A_BLOCK):14}"
        yield f"{room:12} {weight} {functions[0].removeprefix(f'{room}/')}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="*", metavar="TREE", default=[ROOT])
    parser.add_argument("--scene", action="append", choices=SCENES, default=[])
    parser.add_argument("--functions", metavar="ROW", help="what the entries of a row are")
    parser.add_argument("--drawing", metavar="ROW", help="the rooms of a row, in their order")
    parser.add_argument("--lower", action="store_true", help="write the bounds that can be lower")
    options = parse_options(parser, scene=["model"])
    trees = [tree.resolve() for tree in options.trees]
    for tree in trees:
        whole.python_of(tree)
    found = [count(tree, options.scene) for tree in trees]
    show(trees, found, read_bounds())
    for name, times in FUNCTIONS.get(options.functions, Counter[str]()).most_common():
        print(f"{times:6}  {name}")
    print(*draw(FUNCTIONS.get(options.drawing, {})), sep="\n")
    if options.lower:
        lower(found[-1])


if __name__ == "__main__":
    main()
