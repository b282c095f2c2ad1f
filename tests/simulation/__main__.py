"""`PYTHONHASHSEED=0 python -m tests.simulation PLAN SEED`: simulate one seed.

The output is one line: `{"seed", "counts", "faults", "digest"}`. The same seed gives the same digest, to the last byte
of the journal.
"""

import json
import logging
import os
import sys
import traceback

from tests.simulation.world import install

install()

from tests.simulation.plans import PLANS  # noqa: E402
from tests.simulation.stage import Outcome, simulate  # noqa: E402 - the clocks come first


def main() -> None:
    name, seed = sys.argv[1], int(sys.argv[2])
    logging.getLogger().addHandler(logging.NullHandler())  # a clock that was set is no news here
    try:
        outcome = simulate(seed, PLANS[name])
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a fault of this seed
        outcome = Outcome(seed=seed, faults=[f"{error!r} in {traceback.format_exc()[-800:]}"])
    print(json.dumps(outcome.__dict__), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
