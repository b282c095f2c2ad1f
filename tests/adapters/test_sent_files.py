"""Files that the agent sends: by its tool, or by a line of its answer; on each network, and once, whatever happens."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.adapters.discord.transport import LARGEST as DISCORD
from gateway.adapters.slack.transport import LARGEST as SLACK
from gateway.adapters.telegram.transport import LARGEST as TELEGRAM
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, Shown, Wire
from tests.adapters.telegram_wire import TelegramWire
from tests.adapters.wires import WIRES
from tests.spine import until

CHART = b"a chart"
NETWORKS = {"telegram": TELEGRAM, "discord": DISCORD, "slack": SLACK}
PATIENCE = 60.0


def calling(name: str, **args: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "args": args}]}


SCRIPT = (
    {"user": "draw it", "answers": [calling("send_file", path="chart.csv", caption="The chart."), {"text": "Done."}]},
    {
        "user": "vote on it",
        "answers": [
            calling("send_file", path="chart.csv", caption="The chart."),
            calling("send_poll", question="Shall we?", options=["yes", "no"]),
            {"text": "Done."},
        ],
    },
    {"user": "show it", "chunks": ["Here it is.\n", "MED", "IA:chart", ".csv\n", "Look ", "at it."], "delay": "400ms"},
    {"user": "only it", "text": "MEDIA: `chart.csv`"},
    {"user": "all of it", "text": "All of it.\nMEDIA:chart.csv\nMEDIA:notes.txt\nMEDIA:barn.png\nMEDIA:roof.jpg"},
    {"user": "what is", "text": "It is 42."},
)


@pytest.fixture(params=[*NETWORKS, "web", "terminal"])
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    wire = WIRES[request.param](tmp_path / "home")
    async with wire.serving():
        yield wire


@pytest.fixture
async def house(wire: Wire, tmp_path: Path) -> AsyncIterator[House]:
    """Yield a home in which Ann is the owner, with a chart in her workspace, and none in Ben's folder."""
    settings = "" if wire.network == "terminal" else wire.own(ANN)
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        await anyio.Path(workspace_of(house) / "chart.csv").write_bytes(CHART)
        yield house


def workspace_of(house: House) -> Path:
    return house.gateway.home.own_folder / "workspace"


def files_of(wire: Wire) -> list[Shown]:
    return [one for one in wire.shown if one.file]


async def test_a_tool_sends_a_file_and_words_with_it(house: House) -> None:
    """In one message."""
    await house.wire.write("draw it")
    await house.shows("Done.")
    (shown,) = await house.shows("The chart.")
    if house.wire.network == "terminal":
        await house.shows(f"[file chart.csv: {workspace_of(house) / 'chart.csv'}]")
    else:
        await until(lambda: bool(files_of(house.wire)), "the file")
        shown = files_of(house.wire)[0] if house.wire.network == "web" else shown  # it fetches what it shows
        assert (shown.file, shown.file_name, shown.chat) == (CHART, "chart.csv", ANN)
        assert len(files_of(house.wire)) == 1
    (after,) = await house.hears("tool:after")
    assert after["result"] == "chart.csv (7 bytes) is being sent."


@pytest.mark.parametrize("wire", ["telegram", "web", "terminal"], indirect=True)
async def test_a_line_of_an_answer_names_a_file_and_is_never_shown(house: House) -> None:
    """Not while it is written either."""
    seen: list[str] = []
    house.gateway.registry.on("message:sending", lambda event: seen.extend(one["name"] for one in event["attachments"]))
    wire = house.wire
    await wire.write("show it")
    while not house.told("message:sent"):
        assert "MEDIA" not in str([one.text for one in wire.shown])
        await anyio.sleep(0.02)
    await house.shows("Look at it.")
    assert not house.with_text("MEDIA")
    if wire.network != "terminal":
        await until(lambda: bool(files_of(wire)), "the file")
        assert [(one.file, one.file_name) for one in files_of(wire)] == [(CHART, "chart.csv")]
    assert seen == ["chart.csv"]
    (sent,) = await house.hears("message:sent")
    assert (sent["text"], sent["attachments"][0]["kind"]) == ("Here it is.\nLook at it.", "document")


async def test_several_files_are_an_album(house: House) -> None:
    """Telegram has albums of one kind each."""
    wire, folder = house.wire, workspace_of(house)
    for name in ("notes.txt", "barn.png", "roof.jpg"):
        await anyio.Path(folder / name).write_bytes(name.encode())
    await wire.write("all of it")
    (first,) = await house.shows("All of it.")
    await house.hears("message:sent")
    if wire.network in ("web", "terminal"):  # they show all of a reply at once anyway
        await until(lambda: wire.network == "terminal" or len(wire.shown[-1].more_files) == 3, "the last file")
        return
    albums = [[(one.file_name, one.file), *one.more_files] for one in files_of(wire)]
    named = [[name for name, _ in album] for album in albums]
    together = [["chart.csv", "notes.txt"], ["barn.png", "roof.jpg"]]
    assert named == (together if wire.network == "telegram" else [[*together[0], *together[1]]])
    assert first is files_of(wire)[0]
    assert all(data == (CHART if name == "chart.csv" else name.encode()) for album in albums for name, data in album)


async def test_words_that_do_not_fit_below_files_stand_above_them(tmp_path: Path) -> None:
    long = {"telegram": "long " * 300, "slack": "It is *this*."}
    for network, text in long.items():
        wire = WIRES[network](tmp_path / network)
        said = {"user": "say it", "text": f"{text}\nMEDIA:chart.csv"}
        async with wire.serving(), housed(wire, tmp_path / network, said, settings=wire.own(ANN)) as house:
            await anyio.Path(workspace_of(house) / "chart.csv").write_bytes(CHART)
            await wire.write("say it")
            await house.hears("message:sent")
            above, below = wire.shown
            assert (above.file, below.file, below.text) == (b"", CHART, "")


async def test_an_answer_may_be_a_file_alone(house: House) -> None:
    await house.wire.write("only it")
    if house.wire.network == "terminal":
        await house.shows("[file chart.csv: ")
        return
    await until(lambda: bool(files_of(house.wire)), "the file")
    await house.hears("message:sent")
    assert [one.file for one in house.wire.shown] == [CHART]


@pytest.mark.parametrize("wire", ["web"], indirect=True)
async def test_nobody_gets_a_file_that_is_not_theirs(house: House) -> None:
    """Ben's turn has his own folder; the chart lies in the workspace of owners and admins."""
    await house.wire.write("show it", by=BEN)
    await house.shows("[the file chart.csv is not sent: it is not there, or may not be taken from there]")
    await house.wire.write("draw it", by=BEN)
    await house.shows("Done.")
    (after,) = await house.hears("tool:after")
    assert "chart.csv not found" in str(after["error"])
    assert not files_of(house.wire)


@pytest.mark.parametrize(
    ("settings", "writer"),
    [
        ("agents: {main: {tools: [read_file, list_files]}}\n", ANN),
        ("access: {owners: {telegram: ['1']}, admins: {telegram: ['2']}, tools: {admin: [read_file]}}\n", BEN),
    ],
    ids=["the agent has no such tool", "the person is given none"],
)
async def test_whoever_cannot_send_a_file_names_none_either(settings: str, writer: str, tmp_path: Path) -> None:
    wire = TelegramWire()
    settings = settings.replace("'1'", repr(ANN)).replace("'2'", repr(BEN))
    settings = settings if "access" in settings else settings + wire.own(ANN)
    async with wire.serving(), housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        await anyio.Path(workspace_of(house) / "chart.csv").write_bytes(CHART)
        for count, text in enumerate(("show it", "only it"), 1):
            await wire.write(text, by=writer)
            await house.shows("[no file is sent: the agent has no tool for that when you ask]", count)
        assert not files_of(wire)


@pytest.mark.parametrize("wire", NETWORKS, indirect=True)
async def test_what_the_network_does_not_take_is_said_with_its_place(house: House) -> None:
    chart = workspace_of(house) / "chart.csv"
    with chart.open("wb") as file:
        file.truncate(NETWORKS[house.wire.network] + 1)
    await house.wire.write("draw it")
    (said,) = await house.shows("A file is not sent: chart.csv has")
    assert str(chart) in said.text
    await house.shows("Done.")
    assert not house.told("message:failed")


@pytest.mark.parametrize("wire", NETWORKS, indirect=True)
async def test_a_file_and_a_poll_that_are_owed_survive_kills_and_are_sent_once(wire: Any, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*SCRIPT, settings=wire.own(ANN) + wire.settings)
        gateway.environ |= wire.environ
        folder = anyio.Path(gateway.home.own_folder / "workspace")
        await folder.mkdir()
        await (folder / "chart.csv").write_bytes(CHART)
        await anyio.to_thread.run_sync(gateway.start)
        await until(lambda: is_up(gateway), "the network", PATIENCE)
        wire.flood(3)
        await wire.write("vote on it")
        await until(lambda: not has_ills(wire), "the refusal", PATIENCE)
        await anyio.to_thread.run_sync(gateway.kill)
        assert not wire.shown
        await anyio.to_thread.run_sync(gateway.start)
        await until(lambda: has_text(wire, "Done."), "what was owed", PATIENCE)
        await anyio.to_thread.run_sync(gateway.kill)
        await anyio.to_thread.run_sync(gateway.start)
        await wire.write("what is it?")
        await until(lambda: has_text(wire, "It is 42."), "the next answer", PATIENCE)
        assert [one.file for one in files_of(wire)] == [CHART]
        polls = [one for one in wire.shown if "Shall we?" in one.text]
        assert len(polls) == int(wire.network != "slack"), "which has none, and whose agents have no tool for it"


async def is_up(gateway: GatewayProcess) -> bool:
    served = await anyio.to_thread.run_sync(gateway.call, "platform.list")
    return all(one["up"] for one in served["platforms"])


def has_ills(wire: Any) -> bool:
    return any(wire.ills.values()) if isinstance(wire.ills, dict) else bool(wire.ills)


def has_text(wire: Wire, text: str) -> bool:
    return any(text in one.text for one in wire.shown)
