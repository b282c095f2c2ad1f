"""The origin of events: their ids are their own, whatever process they are made in."""

import subprocess
import sys

FORKS = """
import os, sys
from gateway.hooks.cause import stamp_event
def make(who):
    for _ in range(100):
        stamp_event(fields := {}, None)
        os.write(1, f"{fields['id']}\\n".encode())
make("before")
children = [os.fork()]
children += [os.fork()] if children[0] else []
make("after")
for child in filter(None, children if all(children) else []):
    os.waitpid(child, 0)
"""


def test_a_process_that_forks_gives_no_id_twice() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    ids = done.stdout.split()
    assert (len(ids), len({*ids})) == (400, 400)
