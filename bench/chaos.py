"""A long siege of the real daemon: how often it was killed, and what the journal says afterwards.

`.venv/bin/python -m bench.chaos [--kills N] [--chats N] [--typists N] [--each N] [--seed N] [--folder DIR]`. Exit 1
where a message was lost, answered twice or out of order, or the network has something twice that nothing explains.
"""

import argparse
import logging
import math
import sys
import tempfile
from pathlib import Path

import anyio

from tests.chaos.daemon import Plan, Siege, besiege


def verdict(siege: Siege) -> list[str]:
    """All that is wrong."""
    lost = siege.plan.said - siege.found.inbound
    missing = [f"{lost} messages are not in the journal"] if lost else []
    blamed = [f"{siege.given_up()} turns were given up, and none is to blame"] if siege.given_up() else []
    return [*missing, *blamed, *siege.found.faults, *siege.unanswered(), *siege.unexplained()]


def told(siege: Siege) -> str:
    deeds = ", ".join(f"{count} {deed}" for deed, count in siege.done.items())
    again = sum(count - 1 for typist in siege.typists for count in typist.tries.values())
    return (
        f"{siege.plan.said} messages in {siege.plan.chats + siege.plan.typists} conversations, {siege.seconds:.0f} s\n"
        f"{deeds}\n"
        f"{siege.found.turns} turns, {siege.found.retries} of them tried again after a kill\n"
        f"{siege.given_up()} given up with an apology\n"
        f"{siege.found.sent} replies sent; {siege.doubts.total()} calls cut off in doubt, {siege.twice()} shown twice\n"
        f"{again} messages said again by a client that lost its line"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("kills", 200), ("chats", 100), ("typists", 100), ("each", 50), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a folder on the disk that is to suffer")
    options = parser.parse_args()
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # each kill breaks its lines
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        plan = Plan(options.chats, options.typists, options.each, options.kills, options.seed, longest=math.inf)
        siege = anyio.run(besiege, Path(folder) / "home", plan)
    print(told(siege))
    faults = verdict(siege)
    print("\n".join(faults) or "nothing lost, nothing twice without a reason, all in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
