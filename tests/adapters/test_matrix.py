"""The example of an adapter of somebody else's, Matrix, held to what our own are held to, on a real homeserver.

It is written on the adapter kit alone, and found as a stranger's is: by `adapters.dirs`.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio.to_thread
import pytest

from gateway.messages.pieces import DELETED
from gateway.sessions.export import as_json
from gateway.testing import GatewayProcess
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.suite import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.suite_groups import admitting, make_quiet, remembers
from gateway.testing.networks.suite_media import *  # noqa: F403 - each test of it is one of this file
from gateway.testing.networks.wire import ANN, BEN, GROUP
from tests.adapters.matrix_server import serving_matrix
from tests.adapters.matrix_wire import MatrixWire
from tests.environments import install

LEFT_OUT = {
    "Matrix has no albums": ("test_an_album_is_one_message",),
    "Matrix has no contacts": ("test_a_contact_comes_as_what_it_is",),
}
# The homeserver is installed within the first test.
pytestmark = [pytest.mark.timeout(600), pytest.mark.thorough]  # type: ignore[assignment] # in place of the suite's
MANY = 25  # more than a homeserver tells at once of one room


@pytest.fixture(scope="session")
def homeserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    python = install("matrix-synapse", Path(__file__).parent)
    with serving_matrix(python, tmp_path_factory.mktemp("synapse")) as url:
        yield url


@pytest.fixture
async def wire(homeserver: str) -> AsyncIterator[MatrixWire]:
    wire = MatrixWire(homeserver)
    async with wire.serving():
        yield wire


async def test_of_much_that_was_said_meanwhile_nothing_is_left_out(wire: MatrixWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home") as house:
        await wire.write("and you?")
        await house.shows("I heard you.")
    said = [f"what is it? {number}" for number in range(MANY)]
    for text in said:
        await wire.write(text)
    async with housed(wire, tmp_path / "home", settings="access: {rate: 600}\n") as house:
        received = await house.hears("message:received", MANY)
        assert [one["text"] for one in received] == said


async def test_what_was_said_before_we_were_asked_in_is_not_for_us(house: House, wire: MatrixWire) -> None:
    await wire.invite_late("what is it?", *("nothing",) * MANY, "what is it?")
    await wire.write("and you?")
    await house.shows("I heard you.")
    (received,) = await house.hears("message:received")
    assert received["text"] == "and you?"


async def test_what_older_clients_repeat_of_what_they_answer_is_not_said_by_them(
    house: House, wire: MatrixWire
) -> None:
    first = await wire.write("and you?")
    await house.shows("I heard you.")
    wire.quoting = f"> <{wire.known_as(ANN)}> and you?\n> really\n\n"
    second = await wire.write("what is it?\n> as you say", reply_to=first)
    (shown,) = await house.shows("It is 42.")
    await wire.write("!whoami", reply_to=second)
    await house.shows(f"user {wire.known_as(ANN)}")
    wire.quoting = f"> <{wire.known_as('bot')}> It is 42.\n\n"
    await wire.write("what is it then?", reply_to=shown.id)
    await house.shows("It is 42.", 2)
    texts = [one["text"] for one in house.told("message:received")]
    assert "[in reply to: and you?]\nwhat is it?\n> as you say" in texts
    assert "what is it then?" in texts
    assert not [one for one in texts if "<@" in one]


async def test_an_edit_that_leaves_no_words_takes_them_back(wire: MatrixWire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        await make_quiet(house)
        message = await wire.write("the word is mellon", by=BEN, chat=GROUP)
        await remembers(house, "the word is mellon")
        await wire.edit(message, "", by=BEN)
        await remembers(house)
        own = await wire.write("the word is mellon")
        await house.shows("I heard you.")
        received = house.told("message:received")[-1]
        await wire.edit(own, " ")

        async def is_gone() -> bool:
            return DELETED in as_json(await house.gateway.sessions.open(received["session_key"]))

        await until(is_gone, "the deletion")
        assert len(house.told("agent:end")) == 1


async def test_nothing_in_an_answer_is_html_but_what_its_marks_say(wire: MatrixWire, tmp_path: Path) -> None:
    answer = "**so** <b>it</b> `<i>`\n\n<div onclick='x'>\n*is*\n</div>"
    async with housed(wire, tmp_path / "home", {"text": answer}) as house:
        await wire.write("hello")
        (shown,) = await house.shows("onclick")
        assert shown.text == answer
        look = wire.looks[shown.id]
        assert look.startswith("<p><strong>so</strong> &lt;b&gt;it&lt;/b&gt; <code>&lt;i&gt;</code></p>")
        assert "<div" not in look


async def test_an_encrypted_room_is_told_with_what_helps(house: House, wire: MatrixWire) -> None:
    await wire.encrypt()
    await until(lambda: bool(house.presence.complaints), "the complaint")
    assert f"talk in one that is not ({wire.room_of(ANN)})" in house.presence.complaints[0]
    await wire.write("what is it?")
    await house.shows("It is 42.")


@pytest.mark.process
async def test_setup_asks_the_homeserver_and_greets_the_home_channel(wire: MatrixWire, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.configure("")
        gateway.environ["GATEWAY_ADAPTERS_DIRS"] = wire.environ["GATEWAY_ADAPTERS_DIRS"]
        told = ("--homeserver", wire.there, "--allow", wire.known_as(ANN), "--home-channel", wire.room_of(GROUP))
        token = wire.environ["MATRIX_ACCESS_TOKEN"]
        bad = await anyio.to_thread.run_sync(
            lambda: gateway.cli("setup", "matrix", *told, "--access-token", "syt_no_no")
        )
        assert (bad.returncode, "the access token is not good any more" in bad.stderr) == (1, True), bad
        done = await anyio.to_thread.run_sync(lambda: gateway.cli("setup", "matrix", *told, "--access-token", token))
        assert done.returncode == 0, done
        assert f"ok  {wire.known_as('bot')}" in done.stdout
        assert token not in done.stdout
        await until(lambda: any(one.chat == GROUP for one in wire.shown), "the greeting")
