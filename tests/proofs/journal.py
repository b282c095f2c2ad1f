"""Two hundred people, and kills: the journal answers each message once.

The real daemon is killed, stopped, crowded and put on another day at random instants, while people talk to it on
Telegram's server on loopback and at the terminal; at the end the journal itself is read, and what the network shows is
compared with what the journal owes. Telegram can neither be asked nor told a nonce: a kill leaves a doubt about the
calls that were under way.
"""

import math
from collections.abc import Iterator

import anyio

from tests.chaos.daemon import Plan, Siege, besiege
from tests.proof_table import ROOT, Row, Trial

COLUMNS = ("what", "promised", "came")
WIDEST = 44
MOST_TWICE = 8  # at each kill


def prove(trial: Trial) -> Iterator[Row]:
    if trial.tree != ROOT:
        raise SystemExit("journal reads the journal itself, so it tries this checkout alone")
    plan = Plan(chats=100, typists=100, each=50, kills=200, seed=1, longest=math.inf)
    if trial.is_short:
        plan = Plan(chats=50, typists=150, each=8, kills=20, seed=11, longest_life=1.0)
    yield from rows(anyio.run(besiege, trial.folder / "home", plan))


def rows(siege: Siege) -> Iterator[Row]:
    plan, found = siege.plan, siege.found
    told = sum(len(typist.answers) for typist in siege.typists)
    yield equal("kills", plan.kills, siege.done["kills"])
    for deed in ("stops", "jumps", "crowds"):
        yield equal(deed, plan.kills // 5, siege.done[deed])
    yield equal("messages in the journal", plan.said, found.inbound)
    yield equal("answers at the terminal", plan.typists * plan.each, told)
    yield empty("faults of the journal", found.faults)
    yield empty("wrong answers at the terminal", siege.unanswered())
    yield equal("given up with an apology", 0, siege.given_up())
    yield empty("shown too often, too early or not at all", siege.unexplained())
    most = plan.kills * MOST_TWICE
    is_few = siege.twice() <= most
    faults = () if is_few else (f"{siege.twice()} messages are shown twice",)
    yield Row(("shown twice, as a kill cut off a call", f"<= {most}", str(siege.twice())), faults)
    faults = () if found.retries else ("no kill cut a turn off: it meant nothing",)
    yield Row(("turns tried again after a kill", "> 0", str(found.retries)), faults)


def equal(what: str, promised: int, came: int) -> Row:
    faults = () if came == promised else (f"{what}: {came}, and not {promised}",)
    return Row((what, str(promised), str(came)), faults)


def empty(what: str, found: list[str]) -> Row:
    return Row((what, "0", str(len(found))), tuple(f"{what}: {one}" for one in found[:5]))
