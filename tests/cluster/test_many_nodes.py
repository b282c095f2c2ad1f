"""The judgement of the counted requests in the rows of many nodes."""

from collections import Counter

from tests.audit import Audit
from tests.cluster.many_nodes import SHARED, Counted, Findings, request_rows

NODES, SECONDS = 8, 10.0


def list_faults(idle: float, most: int = 100) -> list[str]:
    """List the faults for so many requests a second of an idle node, and so many in the worst second."""
    asked = Counted(SECONDS, Counter({"lease": round(SECONDS * (SHARED + NODES * idle))}), 0)
    busy = Counted(SECONDS, asked.requests + Counter({"append": 100}), 20)
    changing = Counted(SECONDS, Counter(), 20)
    changing.note(Counter({"pull": most}), 1.0)
    changing.note(Counter({"pull": 2 * most}), 4.0)  # the machine did something else meanwhile
    found = Findings(NODES, 20, Audit(), [], [], 1, (8.0, 8.0), asked, busy, changing, Counter())
    return [fault.partition(":")[0] for row in request_rows(found) for fault in row.faults]


def test_what_all_nodes_share_is_not_asked_of_each() -> None:
    assert list_faults(idle=1.0) == []
    assert list_faults(idle=2.1) == ["requests a second of an idle node"]


def test_the_worst_second_is_one_second() -> None:
    assert list_faults(idle=1.0, most=600) == []
    assert list_faults(idle=1.0, most=700) == ["most in a second, as nodes come and go"]
