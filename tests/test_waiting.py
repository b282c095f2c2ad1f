"""How a test waits: for a condition, never for a while. Each rule is shown a sin first."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SLEEPS = {"anyio.sleep", "asyncio.sleep", "time.sleep"}
# So many are left: the pace of somebody who is played, a lease that has to be over, and what must not happen where
# nothing comes after it. It only falls: whoever takes one away writes the new number here.
MOST_SLEEPS = 187
INSTEAD = (
    "a sleep too many: wait for the condition, by `until` of tests/spine.py or `wait_until` of "
    "gateway/testing/patience.py; what must not happen is waited for by what comes after it on the same way"
)


def list_calls(source: str, names: set[str]) -> Iterator[ast.Call]:
    """Those of these functions, but for a pause of no length."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names and ast.unparse(node.args[0]) != "0":
            yield node


def find_calls(*names: str) -> list[str]:
    """Where they are, in all that belongs to tests; sieges and proofs keep a pace, and the simulation takes no time."""
    return [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.parent.name not in {"simulation", "siege", "proofs"} or path.name.startswith("test_")
        for call in list_calls(path.read_text("utf-8"), {*names})
    ]


def test_a_sleep_is_seen_where_it_is_code() -> None:
    source = "async def test():\n    await anyio.sleep(0.3)\n    await anyio.sleep(0)\n    run('time.sleep(1)')\n"
    assert [call.lineno for call in list_calls(source, SLEEPS)] == [2]


def test_no_test_sleeps_that_did_not_before() -> None:
    count = len(find_calls(*SLEEPS))
    assert count <= MOST_SLEEPS, INSTEAD
    assert count == MOST_SLEEPS, "there are fewer: write that number, so that it stays so"


def test_what_could_hang_is_left_to_the_timeout_of_its_test() -> None:
    found = find_calls("anyio.fail_after")
    assert not found, "leave it out: the timeout says where all of it waits, and counts the time in which it could run"
