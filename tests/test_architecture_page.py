"""The page about the way of a message tells the truth: the stops of a message are there, and passed in that order."""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import anyio
import pytest

from gateway.testing import gateway_in

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "contributing" / "message-path.md"
MOST_FILES = 32  # between the network and the agent, both ways


class Stop(NamedTuple):
    """A function, in a file, by the name that a frame has for it (`Class.method`)."""

    file: str
    function: str


def read_stops(heading: str) -> list[Stop]:
    """The list under a heading: each item begins with `file:function`."""
    part = PAGE.read_text("utf-8").partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    return [Stop(*found) for found in re.findall(r"^\d+\. `(gateway/[\w/]+\.py):([\w.]+)`", part, re.MULTILINE)]


WAY_IN, WAY_OUT = read_stops("In"), read_stops("Out")


def list_functions(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from list_functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}"


def find_missed_stops(calls: list[Stop], stops: list[Stop]) -> list[Stop]:
    """Returns the stops that are not passed when they should be: each after the one before it."""
    missed, place = [], -1
    for stop in stops:
        after = [number for number, call in enumerate(calls) if call == stop and number > place]
        if not after:
            missed.append(stop)
        else:
            place = after[0]
    return missed


@contextmanager
def recorded_calls() -> Iterator[list[Stop]]:
    """Every call of a function of the gateway, while inside."""
    calls: list[Stop] = []

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(f"{ROOT}/gateway/"):
            calls.append(Stop(path.removeprefix(f"{ROOT}/"), frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("stop", [*WAY_IN, *WAY_OUT], ids=str)
def test_every_stop_is_a_function_of_that_file(stop: Stop) -> None:
    tree = ast.parse((ROOT / stop.file).read_text("utf-8"))
    assert stop.function in set(list_functions(tree.body))


async def test_a_message_and_its_reply_pass_the_stops_in_the_order_of_the_page(tmp_path: Path) -> None:
    async with gateway_in(tmp_path / "home", {"user": "weather", "text": "sunny"}) as gateway:
        sent = anyio.Event()
        gateway.registry.watch("message:sent", lambda _name, _fields: sent.set())
        # Without an interceptor some stops fall out.
        gateway.registry.on("message:sending", lambda _event: None)
        with recorded_calls() as calls:
            assert (await gateway.say("weather"))["reply"] == "sunny"
            await sent.wait()
    assert (len(WAY_IN) >= 13, len(WAY_OUT) >= 8) == (True, True)
    assert find_missed_stops(calls, [*WAY_IN, *WAY_OUT]) == []
    for before, after in pairwise([*WAY_IN, *WAY_OUT]):
        assert before != after, "a stop is listed twice"


async def test_a_message_passes_no_more_files_than_the_work_needs(tmp_path: Path) -> None:
    rooms = ("access/", "adapters/", "dispatcher/", "lanes/", "messages/", "outbox/")
    async with gateway_in(tmp_path / "home", {"user": "weather", "text": "sunny"}) as gateway:
        sent = anyio.Event()
        gateway.registry.watch("message:sent", lambda _name, _fields: sent.set())
        await gateway.registry.settled()  # what hooks do at the start is not on the way
        with recorded_calls() as calls:
            await gateway.say("weather")
            await sent.wait()
    passed = {call.file for call in calls if call.file.removeprefix("gateway/").startswith(rooms)}
    assert len(passed) <= MOST_FILES, "\n".join(sorted(passed))


def test_a_page_that_lies_is_caught() -> None:
    calls = [Stop("a.py", "one"), Stop("a.py", "two"), Stop("b.py", "three")]
    assert find_missed_stops(calls, calls) == []
    assert find_missed_stops(calls, calls[::-1]) == [calls[1], calls[0]]
    assert find_missed_stops(calls, [calls[0], Stop("b.py", "four")]) == [Stop("b.py", "four")]
