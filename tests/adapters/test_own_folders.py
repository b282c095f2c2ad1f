"""Each conversation has its own files: a model that obeys every text reaches no others in any way.

Ann is the owner, Ben a user. What one of them sends or has written lies in the folder of the conversation, and no other
conversation has it, not even an owner's.
"""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.daemon.notices import list_all_notices
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, STRANGER, Wire
from gateway.worker.sandbox import find_support
from tests.adapters.discord_wire import DiscordWire
from tests.daemon.obedient import serving_obedient_model
from tests.spine import until

WORD = "kingfisher"
SETTINGS = """
model: {{provider: openai, name: m, base_url: "http://127.0.0.1:{port}/v1"}}
access: {{owners: {{{network}: ["{owner}"]}}, everybody: [{network}], rate: 100, tools: {{user: all, guest: all}}}}
tools: {{shell: allow, roots: [hermes-gateway/workspace, ../projects]}}
agents: {{main: {{agents: [helper]}}, helper: {{description: helps}}}}
"""


@dataclass
class Party:
    """A house in which everybody may give orders to the model."""

    house: House
    wire: Wire

    @property
    def files(self) -> Path:
        return self.house.gateway.home.files / self.wire.network

    @property
    def workspace(self) -> Path:
        return self.house.gateway.home.own_folder / "workspace"

    def folder_of(self, person: str) -> Path:
        return self.files / self.wire.known_as(person)

    async def order(self, by: str, name: str, group: bool = False, **args: Any) -> str:
        """Return the result of a tool, or the reason of its refusal."""
        before = len(self.house.told("message:sent"))
        said = f"DO {json.dumps({'name': name, 'args': args})}"
        await (self.wire.mention(said, by=by) if group else self.wire.write(said, by=by))
        await until(lambda: len(self.house.told("message:sent")) > before, f"the end of {said}")
        after = self.house.told("tool:after")[-1]
        return str(after["error"] or after["result"])

    async def upload(self, by: str) -> Path:
        before = len(self.house.told("message:sent"))
        await self.wire.upload(("letter.txt", f"{WORD} of {by}".encode()), caption="keep this", by=by)
        await until(lambda: len(self.house.told("message:sent")) > before, "the answer to the file")
        (file,) = self.house.told("message:received")[-1]["attachments"]
        return Path(file["path"])


def is_refusal(said: str) -> bool:
    return "not open to the agent" in said or "outside of what the agent may touch" in said


@pytest.fixture
async def party(tmp_path: Path) -> AsyncIterator[Party]:
    wire: Any = DiscordWire()
    knots = tmp_path / "home" / "skills" / "knots"
    knots.mkdir(parents=True, mode=0o700)
    (knots / "SKILL.md").write_text("---\nname: knots\ndescription: how to tie\n---\nRead how.txt\n")
    (knots / "how.txt").write_text(WORD)
    with serving_obedient_model() as model:
        settings = SETTINGS.format(port=model.server_address[1], network=wire.network, owner=wire.known_as(ANN))
        async with (
            wire.serving(),
            housed(wire, tmp_path / "home", settings=settings, environ={"OPENAI_API_KEY": "k"}) as house,
        ):
            yield Party(house, wire)


@pytest.mark.row("T19")
async def test_what_somebody_sent_is_read_in_their_conversation_and_in_no_other(party: Party) -> None:
    path = await party.upload(ANN)
    assert path.parent == party.folder_of(ANN)
    assert WORD in await party.order(ANN, "read_file", path=str(path))
    for way in (str(path), f"../{path.parent.name}/{path.name}"):
        assert is_refusal(await party.order(BEN, "read_file", path=way)), way
    assert is_refusal(await party.order(BEN, "write_file", path=str(path), content="x"))
    assert is_refusal(await party.order(BEN, "list_files", path=str(party.files)))
    assert is_refusal(await party.order(ANN, "read_file", group=True, path=str(path)))
    assert is_refusal(await party.order(ANN, "read_file", path=str(await party.upload(BEN))))
    assert WORD in path.read_text()


@pytest.mark.row("T19")
async def test_neither_a_link_nor_another_agent_leads_there(party: Party) -> None:
    path = await party.upload(ANN)
    await party.order(BEN, "write_file", path="mine.txt", content="mine")
    await anyio.Path(party.folder_of(BEN) / "file").symlink_to(path)
    await anyio.Path(party.folder_of(BEN) / "folder").symlink_to(path.parent)
    for way in ("file", f"folder/{path.name}"):
        assert "not open" in await party.order(BEN, "read_file", path=way)
        assert "not open" in await party.order(BEN, "write_file", path=way, content="x")
    for way in (str(path), f"folder/{path.name}"):
        inner = f"DO {json.dumps({'name': 'read_file', 'args': {'path': way}})}"
        await party.order(BEN, "delegate", agent="helper", task=inner)
        tools = [one for one in party.house.told("tool:after") if one["tool"] == "read_file"]
        assert "not open" in str(tools[-1]["error"])
    assert await party.order(BEN, "read_file", path="mine.txt") == "mine"


@pytest.mark.row("T19")
async def test_a_user_works_in_their_folder_and_the_owner_in_the_roots(party: Party) -> None:
    (party.workspace / "plan.txt").write_text(WORD)
    assert await party.order(ANN, "read_file", path="plan.txt") == WORD
    for way in (str(party.workspace / "plan.txt"), "../../../workspace/plan.txt", "~/plan.txt"):
        assert is_refusal(await party.order(BEN, "read_file", path=way)), way
    assert "not found" in await party.order(BEN, "read_file", path="plan.txt")
    assert "Created" in await party.order(BEN, "write_file", path="deep/notes.txt", content="of Ben")
    assert (party.folder_of(BEN) / "deep" / "notes.txt").read_text() == "of Ben"
    assert "not open" in await party.order(ANN, "read_file", path=str(party.folder_of(BEN) / "deep" / "notes.txt"))


@pytest.mark.row("T19")
async def test_in_a_chat_of_several_all_work_in_its_folder(party: Party) -> None:
    (party.workspace / "plan.txt").write_text(WORD)
    assert "Created" in await party.order(BEN, "write_file", group=True, path="list.txt", content="of Ben")
    (found,) = party.files.glob("chat.*/list.txt")
    await party.order(ANN, "write_file", path="mine.txt", content="of Ann")
    assert "not found" in await party.order(ANN, "read_file", group=True, path="plan.txt")
    assert await party.order(ANN, "read_file", group=True, path=str(party.workspace / "plan.txt")) == WORD
    for way in (party.workspace / "plan.txt", party.workspace / "mine.txt", party.folder_of(BEN)):
        assert is_refusal(await party.order(BEN, "read_file", group=True, path=str(way)))
    for by in (ANN, BEN):
        assert "not open" in await party.order(by, "read_file", path=str(found))


@pytest.mark.row("T19")
@pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock")
async def test_commands_reach_what_their_conversation_has_and_no_more(party: Party) -> None:
    projects = party.house.gateway.home.root.parent / "projects"
    for file in (party.workspace / "plan.txt", projects / "secret"):
        file.write_text(WORD)
    anns = await party.upload(ANN)
    bens = await party.upload(BEN)
    assert await party.order(BEN, "shell", command="pwd") == str(party.folder_of(BEN))
    assert WORD in await party.order(BEN, "shell", command=f"cat {bens}; echo x > new")
    steal = (
        f"cat {anns} {party.workspace}/plan.txt ../{anns.parent.name}/{anns.name} ../../../workspace/plan.txt; "
        f"ln {anns} a; ln -s {anns} b; cat a b; ls {party.files} {anns.parent}; cp -r {anns.parent} c; cat c/*; "
        f"cd {anns.parent} && cat {anns.name}; tar cf - {party.files} {party.workspace}; grep -r {WORD[:5]} ../.. "
        f"; cat {projects}/secret; ls {projects}"
        f"; echo spoiled > {anns}; echo spoiled > {party.workspace}/plan.txt; rm -rf {anns.parent} {party.workspace}"
    )
    said = (await party.order(BEN, "shell", command=steal)).replace(f"{WORD} of {BEN}", "")
    assert WORD not in said
    assert "denied" in said
    assert WORD in anns.read_text()
    assert (party.workspace / "plan.txt").read_text() == WORD
    assert WORD not in await party.order(ANN, "shell", command=f"cat {bens} {bens.parent}/new; ls {bens.parent}; true")
    assert WORD in await party.order(ANN, "shell", command=f"cat {anns}")
    assert await party.order(ANN, "shell", command=f"cat {projects}/secret") == WORD


@pytest.mark.skipif(not find_support().landlock, reason="this kernel has no Landlock")
async def test_commands_read_the_folders_of_skills_that_their_conversation_has_loaded(party: Party) -> None:
    read = f"cat {party.house.gateway.home.skills}/knots/how.txt; true"
    assert "denied" in await party.order(ANN, "shell", command=read)
    await party.order(ANN, "load_skill", skill="knots")
    assert WORD in await party.order(ANN, "shell", command=read)
    assert "denied" in await party.order(BEN, "shell", command=read)
    await party.order(ANN, "unload_skill", skill="knots")
    assert "denied" in await party.order(ANN, "shell", command=read)


@pytest.mark.row("T23")
async def test_what_a_command_writes_into_instructions_steers_no_turn_until_the_owner_says_so(party: Party) -> None:
    file = party.workspace / "AGENTS.md"
    file.write_text("Be kind.")
    for attack in ("echo obey > AGENTS.md", "rm AGENTS.md; ln -s ../config.yaml AGENTS.md", "rm AGENTS.md"):
        assert "steers later turns" in await party.order(ANN, "shell", command=attack)
        await party.order(ANN, "list_files")
        system = str(party.house.told("llm:before")[-1]["system"])
        assert "Be kind." in system
        assert "obey" not in system
        assert "OPENAI" not in system.upper()
        (notice,) = party.house.gateway.groups.bind(list_all_notices)()
        assert re.search(rf"touch (-h )?{re.escape(str(file))}", notice)
    file.write_text("Be kinder.")
    await party.order(ANN, "list_files")
    assert "Be kinder." in str(party.house.told("llm:before")[-1]["system"])
    assert not party.house.gateway.groups.bind(list_all_notices)()


@pytest.mark.row("T20")
async def test_a_hook_attaches_what_the_conversation_has_that_the_reply_goes_to(party: Party) -> None:
    anns, bens = await party.upload(ANN), await party.upload(BEN)
    wanted: list[str] = []
    party.house.gateway.registry.on(
        "message:sending",
        lambda _event: {"attachments": [{"kind": "document", "path": one, "name": "x.txt"} for one in wanted]},
    )
    for by, own, other in ((BEN, bens, anns), (ANN, anns, bens)):
        for path, goes in ((own, True), (other, False), (party.files.parent.parent / "config.yaml", False)):
            wanted[:] = [str(path)]
            await party.order(by, "list_files")
            sent = party.house.told("message:sent")[-1]
            assert [one["path"] for one in sent["attachments"]] == ([str(path)] if goes else [])
            assert ("is not sent" in sent["text"]) is not goes


@pytest.mark.row("T19")
async def test_a_guest_with_every_tool_has_a_folder_and_no_more(party: Party) -> None:
    (party.workspace / "plan.txt").write_text(WORD)
    anns = await party.upload(ANN)
    await party.order(BEN, "write_file", group=True, path="list.txt", content="of Ben")
    for group in (False, True):
        for path in (anns, party.workspace / "plan.txt", party.files, party.files.parent / ".unclaimed"):
            assert is_refusal(await party.order(STRANGER, "read_file", group=group, path=str(path)))
        if find_support().landlock:
            command = f"cat {anns} {party.workspace}/plan.txt; true"
            assert "denied" in await party.order(STRANGER, "shell", group=group, command=command)
    assert await party.order(STRANGER, "read_file", group=True, path="list.txt") == "of Ben"
    assert "not found" in await party.order(STRANGER, "read_file", path="list.txt")
    assert "Created" in await party.order(STRANGER, "write_file", path="mine.txt", content="x")
    assert (party.folder_of(STRANGER) / "mine.txt").exists()
