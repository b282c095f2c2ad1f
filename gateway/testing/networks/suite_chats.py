"""What holds for every chat network that has groups: each chat and thread has rules of its own.

Like `suite`, of which its tests are a part.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from gateway.config.settings import ChatSettings
from gateway.testing.live_gateway import until
from gateway.testing.networks.house import SCRIPT, housed
from gateway.testing.networks.suite_groups import admitting
from gateway.testing.networks.wire import ANN, GROUP, Shown, Wire

ANSWERS = {"never": 0, "mention": 1, "quiet": 1, "always": 2}  # how much of a word to all and one to us is answered
THREAD = "5"
pytestmark = pytest.mark.anyio


async def find_places(wire: Wire, root: Path) -> tuple[str, str]:
    """How the configuration calls the group, and a thread in it."""
    async with housed(wire, root) as house:
        for count, thread in enumerate(("", THREAD), 1):
            await wire.write("/whoami", chat=GROUP, thread=thread)
            await house.hears("message:received", count)
        above, below = house.told("message:received")
        chat = f"{wire.network}:{above['chat_id']}"
        return chat, f"{chat}:{below['thread_id']}"


async def has_buttons(shown: Shown) -> None:
    """Wait until all are there: a network may put them below the message one by one."""
    await until(lambda: "typing" in shown.buttons, "the last button")


async def test_what_the_configuration_says_of_a_chat_is_shown_as_fixed_and_not_changed_there(
    wire: Wire, tmp_path: Path
) -> None:
    chat, _ = await find_places(wire, tmp_path / "home")
    async with housed(wire, tmp_path / "home", settings=admitting(wire)) as house:
        answered = 0
        for number, (answer, count) in enumerate(ANSWERS.items(), 1):
            chats = {chat: msgspec.convert({"answer": answer}, ChatSettings)}
            house.gateway.chats.apply_settings(msgspec.structs.replace(house.gateway.settings, chats=chats))
            await wire.write("/settings", chat=GROUP)
            (shown,) = [one for one in await house.shows("What holds in", number) if f"group): {answer}," in one.text]
            assert f"{answer}, by config.yaml: chats.{chat}, which is fixed" in shown.text
            await has_buttons(shown)
            assert ("answer" in shown.buttons, "typing" in shown.buttons) == (False, True)
            await wire.write("/settings answer default", chat=GROUP)
            await house.shows(f"answer is fixed here: {answer}, by config.yaml")
            await wire.write("what is it, Ben?", chat=GROUP)
            await wire.mention("what is it, you?")
            answered += count
            await house.shows("It is 42.", answered)
        assert len(house.with_text("It is 42.")) == answered
        assert not house.gateway.chats.kept.chats


async def test_a_chat_and_a_thread_have_an_agent_a_model_and_a_language_of_their_own(
    wire: Wire, tmp_path: Path
) -> None:
    second = tmp_path / "second.yaml"
    await anyio.Path(second).write_text(json.dumps({"turns": [{"user": "what is", "text": "Es ist 42."}]}))
    chat, thread = await find_places(wire, tmp_path / "home")
    chats = {chat: {"model": "second", "language": "de-AT"}, thread: {"answer": "always", "agent": "science"}}
    settings = {
        "agents": {"science": {}},
        "models": {"second": {"provider": "demo", "script": str(second)}},
        "chats": chats,
    }
    lines = "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
    async with housed(wire, tmp_path / "home", settings=lines) as house:
        await wire.write("what is it?")
        await house.shows("It is 42.")
        assert "de-AT" not in str(house.told("llm:before")[-1])
        await wire.mention("what is it?")
        await house.shows("Es ist 42.")
        assert "de-AT" in str(house.told("llm:before")[-1])
        await wire.write("what is it?", chat=GROUP, thread=THREAD)
        (_, shown) = await house.shows("Es ist 42.", 2)
        assert (shown.chat, shown.thread) == (GROUP, THREAD)
        assert [one["agent"] for one in house.told("agent:end")] == ["main", "main", "science"]


async def test_a_chat_is_shown_what_the_tools_do_where_that_is_its_rule(wire: Wire, tmp_path: Path) -> None:
    chat, _ = await find_places(wire, tmp_path / "home")
    go = tmp_path / "go"
    waits = {"tool_calls": [{"name": "shell", "args": {"command": f"until [ -e {go} ]; do sleep 0.05; done"}}]}
    script: dict[str, Any] = {"user": "do it", "answers": [waits, {"text": "Did."}] * 2}
    rules = json.dumps({chat: {"progress": "all"}})
    settings = f"chats: {rules}\ntools: {{shell: allow}}\n{wire.own(ANN)}"
    async with housed(wire, tmp_path / "home", script, *SCRIPT, settings=settings) as house:
        await wire.write("do it")
        await until(lambda: len(house.told("tool:before")) == 1, "the tool")
        await wire.mention("do it")
        (line,) = await house.shows("until")
        assert line.chat == GROUP
        await anyio.Path(go).touch()
        await house.shows("Did.", 2)
        await until(lambda: not house.with_text("until"), "the end of the line")
