"""The line about a turn's tools: the chats that show it, its text, and its removal after a kill."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic
from typing import Any

import anyio
import pytest
from anyio import to_thread

from gateway.dispatcher.tool_progress import LONGEST_ARGS, ToolProgress
from gateway.events import Event
from gateway.messages.steps import ToolFinished, ToolStarted
from gateway.messages.transcript import Entry
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import housed
from gateway.testing.networks.suite import tooling, wait_for
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.wires import ROOMS, WIRES

ON_ONE = pytest.mark.parametrize("wire", ["discord"], indirect=True)  # what no network does in its own way


@pytest.fixture(params=list(ROOMS))
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    wire = WIRES[request.param](tmp_path / "home")
    async with wire.serving():
        yield wire


def started(wire: Any, root: Path, script: dict[str, Any], settings: str) -> GatewayProcess:
    """By edits: a draft is not a message, and passes by itself."""
    gateway = GatewayProcess(root)
    settings += f"platforms: {{{wire.network}: {{streaming: edit}}}}\n"
    gateway.script(script, *({"text": "I heard you."},) * 5, settings=settings + wire.settings)
    people = ",".join(wire.known_as(person) for person in (ANN, BEN))
    gateway.environ |= {f"{wire.network.upper()}_ALLOWED_USERS": people, **wire.environ}
    return gateway


async def show_line(wire: Any, gateway: GatewayProcess, root: Path) -> None:
    """A gateway that runs, and whose line has been edited: so it knows what it has shown."""
    await to_thread.run_sync(gateway.start)
    await to_thread.run_sync(gateway.until, lambda: is_up(gateway, wire))
    await wire.write("do it")
    await until(lambda: any("shell" in one.text for one in wire.shown), "the line")
    await anyio.Path(root / "go").touch()
    await until(lambda: any("\u00d72" in one.text for one in wire.shown), "the next line")


def is_up(gateway: GatewayProcess, wire: Any) -> bool:
    return bool(gateway.call("status")["platforms"][wire.network]["up"])


async def test_a_line_that_a_kill_left_goes_or_is_the_answer_in_the_next_life(wire: Any, tmp_path: Path) -> None:
    """The tool may have run, so it is not run again; the model is told that, and answers."""
    script, settings = tooling(wire, tmp_path / "go", wait_for(tmp_path / "gone"), {"text": "Did."})
    final = "edit" if wire.network == "discord" else "new"
    settings = settings.replace("display: {", f"display: {{final: {final}, ")
    with started(wire, tmp_path / "home", script, settings) as gateway:
        await show_line(wire, gateway, tmp_path)
        await to_thread.run_sync(gateway.kill)
        (line,) = wire.shown
        await to_thread.run_sync(gateway.start)
        await until(lambda: [one.text.strip() for one in wire.shown] == ["Did."], f"the answer, not {wire.shown},")
        assert (wire.shown[0].id == line.id) == (final == "edit")


@ON_ONE
async def test_a_line_goes_when_its_person_may_no_longer_speak_in_the_next_life(wire: Any, tmp_path: Path) -> None:
    script, settings = tooling(wire, tmp_path / "go", wait_for(tmp_path / "gone"), {"text": "Did."})
    with started(wire, tmp_path / "home", script, settings) as gateway:
        await show_line(wire, gateway, tmp_path)
        await to_thread.run_sync(gateway.kill)
        config = gateway.home.config
        config.write_text(config.read_text().replace(wire.own(ANN), ""))
        gateway.environ[f"{wire.network.upper()}_ALLOWED_USERS"] = wire.known_as(BEN)
        await to_thread.run_sync(gateway.start)
        await until(lambda: not wire.shown, "its end")


@ON_ONE
async def test_whoever_may_still_change_what_is_sent_sees_it_before_any_line(wire: Any, tmp_path: Path) -> None:
    script, settings = tooling(wire, tmp_path / "go", {"text": "Did."}, progress="all")
    async with housed(wire, tmp_path / "home", script, settings=settings) as house:

        def look(event: Event) -> None:
            event["text"] = event["text"].upper()

        house.gateway.registry.on("message:sending", look)
        await wire.write("do it")
        await until(lambda: bool(house.told("tool:before")), "the tool")
        await anyio.sleep(1.5)  # longer than a line takes to be shown
        assert not wire.shown
        await anyio.Path(tmp_path / "go").touch()
        await house.shows("DID.")
        assert len(wire.shown) == 1


@ON_ONE
@pytest.mark.timeout(240)
async def test_two_hundred_tools_are_one_line_at_the_pace_of_the_network(wire: Any, tmp_path: Path) -> None:
    """A message that is begun, and edited a few times at once and then once a second at most; then it is the answer."""
    calls = [{"name": "calculate", "args": {"expression": f"{number} * 2"}} for number in range(200)]
    asked = [{"tool_calls": calls[at : at + 5]} for at in range(0, 200, 5)]
    script, settings = tooling(wire, tmp_path / "go", *asked, {"text": "Did it all."}, progress="all")
    settings += f"platforms: {{{wire.network}: {{streaming: edit}}}}\n"
    async with housed(wire, tmp_path / "home", script, settings=settings) as house:
        began = monotonic()
        await wire.write("do it")
        await house.shows("shell")
        await anyio.Path(tmp_path / "go").touch()
        await house.shows("Did it all.")
        (sent,) = await house.hears("message:sent")
        await until(lambda: len(wire.shown) == 1, "the end of the line of tools")
        changes, took = [one for one in wire.calls if is_change(one)], monotonic() - began
        assert len(house.told("tool:after")) == 201
        assert [one.id for one in wire.shown] == sent["message_ids"], wire.shown
        assert 1 < len(changes) <= 6 + took, changes


def is_change(call: tuple[Any, ...]) -> bool:
    """Return True if Discord's bot wrote a message, or changed one."""
    return call[0] in ("POST", "PATCH") and "/messages" in call[1]


@ON_ONE
async def test_an_admin_says_where_tools_are_shown(wire: Any, tmp_path: Path) -> None:
    script, settings = tooling(wire, tmp_path / "go", {"text": "Did."}, progress="off")
    async with housed(wire, tmp_path / "home", script, settings=settings) as house:
        await wire.write("/settings progress tools", chat=GROUP)
        await house.shows("tools, by /settings")
        await wire.mention("do it", chat=GROUP)
        (line,) = await house.shows("🔧")
        assert line.chat == GROUP
        await anyio.Path(tmp_path / "go").touch()
        await house.shows("Did.")
        await wire.write("/settings progress sing", chat=GROUP)
        await house.shows("progress cannot be 'sing'. It can be: off, tools, all")
        assert not house.with_text("🔧")


def follow(*calls: tuple[str, dict[str, Any]], progress: Any = "all") -> list[str]:
    lines = list[str]()
    told = ToolProgress(progress, lambda text: text.replace("s3cret-known", "[secret]"), lines.append)
    for number, (name, args) in enumerate(calls):
        told.note(ToolStarted(turn_id="t", call_id=str(number), name=name, args=args))
    for number in range(len(calls)):
        told.note(ToolFinished(turn_id="t", call_id=str(number), entry=Entry("tool", "secret result")))
    return lines


def test_a_line_names_the_last_tools_and_counts_all() -> None:
    calls: list[tuple[str, dict[str, Any]]] = [(f"tool_{number}", {}) for number in range(10)] + [
        ("shell", {"command": "ls"})
    ] * 3
    assert follow(*calls)[-1] == "🔧 7 more, `tool_7`, `tool_8`, `tool_9`, `shell` \u00d73: `ls`"
    assert follow(("shell", {"command": "ls"}), progress="tools") == ["🔧 `shell` …", "🔧 `shell`"]


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({"command": "curl -H s3cret-known x"}, "curl -H [secret] x"),
        ({"password": "two words", "user": "ann"}, "password=[secret], user=ann"),
        ({"api_key": ["a", "b"]}, "[secret]"),
        ({"command": "a`b\n\n# c **d** @everyone"}, "a'b # c **d** @everyone"),
        ({"command": "x\x1b[2J\u202ey"}, "x\\x1b[2J\\u202ey"),
        ({}, ""),
    ],
)
def test_a_line_tells_no_secret_and_nothing_in_it_acts(args: dict[str, Any], shown: str) -> None:
    line = follow(("shell", args))[0]
    assert line == (f"🔧 `shell`: `{shown}` …" if shown else "🔧 `shell` …")


def test_a_line_is_short_whatever_a_tool_is_given() -> None:
    deep: dict[str, Any] = {"text": "x" * 5_000_000, **{f"n{number}": "y" * 1000 for number in range(1000)}}
    for args in ({"text": "x" * 5_000_000}, deep):
        (line, _) = follow(("n" * 5000, args))
        assert len(line) < LONGEST_ARGS + 80
    assert sys.getsizeof(line) < 1000
