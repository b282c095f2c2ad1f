"""Harm upon harm, under load: nothing is lost, doubled or left behind.

Twelve people on Telegram, Discord, Slack and the terminal say numbers, all the time; a model on loopback answers with
them, and has a guarded tool write some down. Two durable hooks (`agent:end` and `*`) note what they are told, and
another detaches processes. Whoever spoke, the networks, the files and the kernel are asked what came of it, never the
journal:

- *lost*: said, and not answered. *twice*: an answer that a chat shows again, or a tool that ran again. Telegram can
  neither be asked nor told that a message is the same: what a kill cut off in the very call that sends may be there
  twice, and is counted apart. *order*: an answer before that to what the person had said before.
- *untold*: what a durable hook was owed and never told. *given up*: an apology instead of the answer. *skipped*: a tool
  that ran though the guard was not asked, or had denied it. *left*: processes that live when all is over.
"""

from collections.abc import Iterator

import anyio

from tests.proof_table import Row, Trial
from tests.siege import deeds
from tests.siege.siege import NoSmallDisk, Stage, besiege
from tests.siege.verdict import Verdict

COLUMNS = ("harm", "times", "said", "lost", "twice", "order", "untold", "given up", "skipped", "left")
WIDEST = 11
MOST_TOLD = 5  # of one kind


def prove(trial: Trial) -> Iterator[Row]:
    for stage in stages(trial):
        folder = trial.folder / stage.name.replace(" ", "-")
        folder.mkdir()
        try:
            found, faults = anyio.run(besiege, stage, trial, folder)
        except NoSmallDisk as error:
            yield Row((stage.name, "0", *["-"] * 8), remarks=(f"{stage.name}: not tried here: {error}",))
            continue
        yield row_of(stage, found, faults)


def row_of(stage: Stage, found: Verdict, faults: list[str]) -> Row:
    counts = [str(len(of_kind)) for of_kind in found.lists.values()]
    remarks = [f"{stage.name}: people {text}" for text in sorted(found.strange)]
    if found.in_doubt:
        remarks.append(f"{stage.name}: {found.in_doubt} shown twice on Telegram, as a kill cut off the call that sent")
    told = [f"{stage.name}: {one}" for one in said(found.lists, faults)]
    return Row((stage.name, str(stage.times), str(found.said), *counts), tuple(told), tuple(remarks))


def stages(trial: Trial) -> list[Stage]:
    return [
        Stage("daemon", deeds.kill_daemon, trial.amount(200, 20)),
        Stage("fork server", deeds.kill_fork_server, trial.amount(100, 5)),
        Stage("workers", deeds.kill_worker, trial.amount(100, 8)),
        Stage("SIGTERM", deeds.stop_daemon, trial.amount(20, 3)),
        Stage("clock", deeds.set_the_clock, trial.amount(20, 4)),
        Stage("full disk", deeds.fill_the_disk, trial.amount(6, 3), doubt=10.0, needs_disk=True),
    ]


def said(kinds: dict[str, list[str]], faults: list[str]) -> Iterator[str]:
    for kind, of_kind in kinds.items():
        yield from (f"{kind}: {one}" for one in of_kind[:MOST_TOLD])
        if len(of_kind) > MOST_TOLD:
            yield f"{kind}: and {len(of_kind) - MOST_TOLD} more"
    yield from faults
