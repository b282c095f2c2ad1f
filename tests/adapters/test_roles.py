"""An agent's tools depend on the person: the model sees only those of the author's role."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.daemon.notices import list_all_notices
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, STRANGER, Wire
from tests.adapters.telegram_wire import TelegramWire
from tests.spine import until

ASKS = {"tool_calls": [{"name": "shell", "args": {"command": "echo kingfisher"}}]}
SCRIPT = ({"user": "do it", "answers": [ASKS, {"text": "I did not."}]}, *({"text": "I heard you."},) * 20)
MODEL_TOOLS = {"time", "calculate", "list_hooks", "count_slowly", "fail_on_purpose", "delegate", "transfer"}
OWN_FOLDER = {"read_file", "write_file", "edit_file", "list_files"}
DISPATCHES = """
def register(ctx):
    def use(raw_args):
        return ctx.dispatch_tool("terminal", {"command": "echo king" + "fisher"})

    ctx.register_command("errand", use)
"""
ALONE = {"web_fetch", "remember", "recall", "schedule", "scheduled", "unschedule", "send_message", "send_file"}


@pytest.fixture
async def wire() -> AsyncIterator[TelegramWire]:
    wire = TelegramWire()
    async with wire.serving():
        yield wire


def access_of(wire: Wire) -> str:
    return (
        f"access: {{owners: {{{wire.network}: ['{wire.known_as(ANN)}']}}, everybody: [{wire.network}], rate: 100}}\n"
        "tools: {shell: allow}\n"
    )


async def shown_tools(house: House, wire: Wire, by: str) -> tuple[set[str], str]:
    """Return the tools that the model saw for a person's message, and its system prompt."""
    before = len(house.told("llm:before"))
    await wire.write("hello", by=by)
    await until(lambda: len(house.told("llm:before")) > before, f"the model's turn for {by}")
    fields = house.told("llm:before")[-1]
    assert fields["user_id"] == wire.known_as(by)
    return {one["name"] for one in fields["tools"]}, str(fields["system"])


@pytest.mark.row("T17", "T18")
async def test_the_model_is_shown_the_tools_that_are_given_to_who_writes(wire: Wire, tmp_path: Path) -> None:
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=access_of(wire)) as house:
        owners, told = await shown_tools(house, wire, ANN)
        assert owners >= {"shell", *OWN_FOLDER, *ALONE, *MODEL_TOOLS, "load_skill"}
        assert "access.tools" not in told
        users, told = await shown_tools(house, wire, BEN)
        assert users == owners - {"shell", "list_hooks"}
        assert "access.tools" in told
        guests, told = await shown_tools(house, wire, STRANGER)
        assert guests == {"web_fetch", "load_skill", "unload_skill"}
        assert "access.tools" in told
        roles = {fields["user_id"]: (fields["role"], fields["scope"]) for fields in house.told("llm:before")}
        assert roles == {
            wire.known_as(ANN): ("owner", "owner"),
            wire.known_as(BEN): ("user", "user"),
            wire.known_as(STRANGER): ("guest", "user"),
        }


@pytest.mark.row("T18")
@pytest.mark.parametrize("by", [BEN, STRANGER])
async def test_what_is_not_given_does_not_run_though_the_model_calls_it(wire: Wire, tmp_path: Path, by: str) -> None:
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=access_of(wire)) as house:
        await wire.write("do it", by=by)
        await house.shows("I did not.")
        (after,) = house.told("tool:after")
        assert "not given to the person" in str(after["error"])
        assert after["result"] is None


async def test_a_home_that_was_there_before_is_told_the_line_that_gives_all_back(wire: Wire, tmp_path: Path) -> None:
    settings = access_of(wire)
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        assert (await house.gateway.engine.health()).records > 0
        assert not house.gateway.groups.bind(list_all_notices)()
        # As a home that was used before there was such a record.
        await house.gateway.engine.purge("gw.keep.>")
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        (said,) = house.gateway.groups.bind(list_all_notices)()
        assert "access: {tools: {user: all, guest: all}}" in said
    settings = settings.replace("rate: 100", "rate: 100, tools: {user: all, guest: all}")
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        assert not house.gateway.groups.bind(list_all_notices)()
        assert (await shown_tools(house, wire, STRANGER))[0] == (await shown_tools(house, wire, ANN))[0]


@pytest.mark.row("T18")
@pytest.mark.parametrize("by", [BEN, STRANGER])
async def test_a_plugin_uses_no_tool_for_somebody_to_whom_it_is_not_given(wire: Wire, tmp_path: Path, by: str) -> None:
    folder = tmp_path / "home" / "plugins" / "errands"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(DISPATCHES)
    (folder / "plugin.yaml").write_text("name: errands\n")
    settings = f"{access_of(wire)}hooks: {{enabled: [errands]}}\n"
    async with housed(wire, tmp_path / "home", *SCRIPT, settings=settings) as house:
        await wire.write("/errand", by=by)
        await house.shows("not given to the person")
        assert not [one for one in house.told("tool:after") if "kingfisher" in json.dumps(one["result"])]
        await wire.write("/errand", by=ANN)
        await house.shows("kingfisher")
