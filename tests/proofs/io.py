"""Each call of the journal fails once: nothing is lost or doubled.

A library lies between SQLite and the system. Of a script that writes ten messages, each call fails once with EIO, once
with ENOSPC, and once ends the process; then the journal is opened again. After that sixty of the calls that the whole
daemon makes, drawn by a seed, while somebody says ten things, each until it is answered.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import anyio

from gateway.control.client import ControlError
from gateway.errors import GatewayError
from gateway.testing import GatewayProcess
from tests.engine.faulty_disk import KINDS, NO_COMPILER, FaultyDisk, ForkedScripts, find_fault, make_faulty_disk
from tests.proof_table import ROOT, Row, Trial, make_row

COLUMNS = ("what fails once", "promised", "came")
WIDEST = 44
PROMISED = "0 lost, 0 twice"
AT_ONCE = 4
MESSAGES = 10
SEED = 39
ANSWER = "I hear you."
KEY = "agent:main:terminal:dm:main"
Found: TypeAlias = dict[int, str]
"""The fault that each failed call left behind, by its number; "" for none."""


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("io opens the journal itself, so it tries this checkout alone")
    disk = make_faulty_disk(trial.folder)
    if disk is None:
        yield make_row("calls of the journal", PROMISED, "left out", remarks=(NO_COMPILER,))
        return
    chance = random.Random(SEED)
    calls = range(1, disk.calls + 1)
    for kind in KINDS:
        tried = chance.sample(calls, trial.amount(len(calls), 10))
        yield row(kind, try_at_once(partial(try_scripts, trial, disk, kind), tried))
    made = count_calls(make_folder(trial), disk)
    runs = chance.sample([*product(range(1, made + 1), KINDS)], trial.amount(60, 3))
    for kind in KINDS:
        tried = [at for at, how in runs if how == kind]
        yield row(f"{kind}, in the daemon", try_at_once(partial(try_daemons, trial, disk, kind), tried))


def try_at_once(try_some: Callable[[Sequence[int]], Found], tried: Sequence[int]) -> Found:
    """Some of them beside each other: each waits most of its time, for a start or for the disk to be well again."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(try_some, [tried[first::AT_ONCE] for first in range(AT_ONCE)])
        return {at: fault for part in parts for at, fault in part.items()}


def try_scripts(trial: Trial, disk: FaultyDisk, kind: str, tried: Sequence[int]) -> Found:
    with ForkedScripts(disk) as scripts:
        return {at: anyio.run(find_fault, scripts, make_folder(trial) / "journal.db", at, kind) for at in tried}


def try_daemons(trial: Trial, disk: FaultyDisk, kind: str, tried: Sequence[int]) -> Found:
    return {at: try_daemon(make_folder(trial), disk, at, kind) for at in tried}


def row(what: str, found: Found) -> Row:
    faults = tuple(f"{what}, call {at}: {fault}" for at, fault in found.items() if fault)
    return Row((what, PROMISED, f"{len(faults)} of {len(found)}"), faults)


def make_folder(trial: Trial) -> Path:
    return Path(tempfile.mkdtemp(dir=trial.folder))


def make_gateway(folder: Path) -> GatewayProcess:
    gateway = GatewayProcess(folder / "home", forks=False)
    gateway.script({"user": "number", "text": ANSWER}, settings="web: {enabled: false}\n")
    return gateway


def count_calls(folder: Path, disk: FaultyDisk) -> int:
    """How many the daemon makes while all is well."""
    count = folder / "count"
    with make_gateway(folder) as gateway:
        gateway.start(environ=disk.counting(count))
        for number in range(MESSAGES):
            say(gateway, number)
        gateway.stop()
    return int(count.read_text())


def say(gateway: GatewayProcess, number: int) -> bool:
    """Say it, by the same id each time; whether it was answered."""
    said = {"text": f"number {number}", "session": "main", "id": f"m{number}"}
    with suppress(GatewayError, OSError):
        return ANSWER in gateway.call("chat.say", said)["reply"]
    return False


def try_daemon(folder: Path, disk: FaultyDisk, at: int, kind: str) -> str:
    """Return the fault after this call of a daemon has failed; "" without one."""
    with make_gateway(folder) as gateway:
        with suppress(GatewayError):
            gateway.start(environ=disk.environ_of(at, kind))
        for number in range(MESSAGES):
            gateway.until(partial(is_answered, gateway, number))
        gateway.kill()  # the call may be yet to come
        gateway.start()
        return find_loss(gateway)


def is_answered(gateway: GatewayProcess, number: int) -> bool:
    """Say it once more, to the next gateway where this one has ended."""
    if gateway.process is None or gateway.process.poll() is not None:
        gateway.start()
    return say(gateway, number)


def find_loss(gateway: GatewayProcess) -> str:
    try:
        entries = gateway.call("sessions.show", {"session": KEY})["entries"]
    except ControlError as error:
        return str(error)
    texts = [entry["content"] for entry in entries if entry["role"] == "user"]
    lost = [f"number {number}" for number in range(MESSAGES) if f"number {number}" not in texts]
    twice = sorted({text for text in texts if texts.count(text) > 1})
    attention = [line for line in gateway.call("status")["attention"] if "journal" in line]
    faults = {"lost": lost, "twice": twice, "still said": attention}
    return "; ".join(f"{what}: {found}" for what, found in faults.items() if found)
