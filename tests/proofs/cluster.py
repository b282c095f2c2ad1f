"""Gateways on NATS: kills, lost bots, speed, many sessions, many nodes.

Each part can be tried alone (`--part`):

- *contract*: the tests of what an engine must do, on one server and on three. Not in the short run.
- *siege*: people on Telegram, Discord, Slack and the terminals of three gateways say numbers, all the time; a model on
  loopback answers with them, and has a guarded tool write some down. Gateways are killed, also the one that has the
  bot of Telegram, or stand still for longer than any lease and then wake; the servers through which all records go are
  killed. Whoever spoke, the networks, the files and the kernel are asked what came of it, never the journal. What a
  kill hit is said by the model (nobody waits for its answer any more), by the tool (it began and did not end) and by
  the networks (a message is shown, and who sent it is gone before the answer that says so).
  *in doubt*: Telegram can neither be asked nor told that a message is the same, so what a kill cut off in the very call
  that sends may be there twice; and what was sent while the servers elected a leader, where the kill came before it
  could be written down.
- *turns*: the node of a turn is killed, or stands still, between two runs of a tool.
- *bot*: of two gateways with one bot the one that reads it is killed, stands still, or hears the servers no more.
- *speed*: a gateway on three servers beside one on SQLite, in turn, with 16 people and a model that answers at once.
- *sessions*: a journal of a million, made by a generator, beside one of a thousand.
- *nodes*: lanes without models, ten to a process, each with a connection of its own. *requests* is all that clients
  send to the servers. A node says twice in four seconds that it is there, renews its lease and asks for work: one a
  second. What one node at a time does has leases too; these are renewed as often with few nodes as with many.

In a short run the parts run beside each other, on whatever machine: times may be longer there, and speed is not
judged. The goal that a row names is the one of that run.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import anyio

from tests.cluster import contract, lost_turns, many_nodes, many_sessions, one_bot, speed
from tests.proof_table import Row, Trial, make_row, try_whole
from tests.siege.cluster import (
    Aftermath,
    Deed,
    besiege,
    kill_any,
    kill_the_leader,
    kill_the_polling_one,
    pause_the_polling_one,
)

COLUMNS = ("what", "goal", "came")
WIDEST = 50
MOST_TOLD = 5
RATE, MANY = 60, 20
TAKE_OVER, BUSY = 12.0, 8.0  # the machine may do something else meanwhile
BUSY_TOGETHER = 60.0  # as well, where the parts run beside each other


def prove(trial: Trial) -> Iterator[Row]:
    """The parts of a short run mostly wait, so they run beside each other; a whole one measures one at a time."""
    names = trial.parts or (*PARTS,)
    if not trial.is_short:
        for name in names:
            yield from prove_part(trial, name)
        return
    with ThreadPoolExecutor(len(names)) as threads:
        for found in threads.map(lambda name: [*prove_part(trial, name)], names):
            yield from found


def prove_part(trial: Trial, name: str) -> Iterator[Row]:
    """One that breaks off takes nothing from the others."""
    yield from try_whole(name, COLUMNS, PARTS[name], trial)


def prove_siege(trial: Trial) -> Iterator[Row]:
    deeds = list_deeds(trial)
    aftermath = anyio.run(besiege, trial, trial.folder, deeds, trial.amount(16, 2))
    yield from rows(deeds, aftermath, TAKE_OVER + (BUSY_TOGETHER if trial.is_short else 0.0))


def list_deeds(trial: Trial) -> list[Deed]:
    """Mixed, so that each meets what another has left."""
    many = [kill_any] * trial.amount(80, 2) + [kill_the_polling_one] * trial.amount(20, 1)
    few = [kill_the_leader] * trial.amount(20, 1) + [pause_the_polling_one] * trial.amount(5, 1)
    step = max(1, len(many) // len(few))
    mixed = list[Deed]()
    while many or few:
        mixed += many[:step]
        del many[:step]
        mixed += [few.pop()] if few else []
    return mixed


def rows(deeds: Sequence[Deed], found: Aftermath, take_over: float) -> Iterator[Row]:
    cluster, verdict = found.cluster, found.verdict
    kills, leaders = sum(one in (kill_any, kill_the_polling_one) for one in deeds), deeds.count(kill_the_leader)
    yield Row(("kills -9 of gateways", str(kills), str(kills)))
    for where, hit in found.count_hit().items():
        is_judged = kills >= MANY
        yield make_row(f"  of these, {where}", "> 0" if is_judged else "-", str(hit), hit > 0 or not is_judged)
    yield Row(("kills -9 of the leading server", str(leaders), str(leaders)))
    slow = (
        ()
        if found.rate >= RATE
        else (f"this machine answers no {RATE} messages a second; people say more when it does",)
    )
    yield Row(("messages, and how many a second", f"{RATE}/s", f"{verdict.said}, {found.rate:.1f}/s"), remarks=slow)
    for name, what in NAMED.items():
        listed = getattr(verdict, name)
        told = [*listed[:MOST_TOLD], *([f"and {len(listed) - MOST_TOLD} more"] if len(listed) > MOST_TOLD else [])]
        yield Row((what, "0", str(len(listed))), tuple(f"{what}: {one}" for one in told))
    remarks = tuple(f"people {text}" for text in sorted(verdict.strange))
    yield Row(("shown twice on Telegram, in doubt", "-", str(verdict.in_doubt)), remarks=remarks)
    at_once = cluster.crowd.wires[0].overlaps
    faults = (f"Telegram was asked by two at once, {at_once} times",) if at_once else ()
    yield Row(("two polls at once of one bot", "0", str(at_once)), faults)
    longest = max(cluster.gaps, default=0.0)
    faults = () if longest <= take_over + BUSY else (f"nobody asked Telegram for {longest:.1f} s",)
    yield Row(("a lost bot is taken over within", f"<= {take_over:.0f} s", f"{longest:.1f} s"), faults)
    yield Row(("what else broke", "0", str(len(cluster.faults))), tuple(cluster.faults))


NAMED = {
    "lost": "lost",
    "twice": "answered twice, or a tool that ran twice",
    "order": "out of order",
    "given_up": "given up with an apology",
    "untold": "owed to a durable hook and never told",
    "skipped": "tools that ran unguarded",
}
PARTS: dict[str, Callable[[Trial], Iterator[Row]]] = {
    "contract": contract.prove,
    "siege": prove_siege,
    "turns": lost_turns.prove,
    "bot": one_bot.prove,
    "speed": speed.prove,
    "sessions": many_sessions.prove,
    "nodes": many_nodes.prove,
}
