"""The process is killed again and again; the journal and the network show that nothing was lost or done twice."""

from pathlib import Path

import pytest

from tests.chaos.siege import besiege

KILLS = 6


@pytest.mark.process
@pytest.mark.timeout(180)
def test_a_gateway_that_is_killed_again_and_again_answers_everything_once(tmp_path: Path) -> None:
    siege = besiege(tmp_path, messages=240, conversations=20, kills=KILLS, seed=4)
    assert siege.found.faults == []
    assert siege.found.inbound == siege.found.turns == siege.found.replies == siege.found.sent == 240
    assert siege.done_twice == 0, "a tool that may not be repeated was"
    # A network that can neither be asked nor told a nonce shows a part twice at most where a call was cut off: one
    # in each place, at each kill.
    assert siege.shown_twice <= siege.kills * 8
    assert siege.is_in_order
    assert siege.kills == KILLS, "it was over too soon to mean anything"
