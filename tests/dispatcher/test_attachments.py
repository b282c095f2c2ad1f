"""Files that hooks put beside a reply come from the folders that are open to the agent, however they are spelled."""

import os
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.toolbox.workspace import Workspace
from gateway.dispatcher.attachments import find_hooks_by_file
from gateway.hooks.field_watcher import FieldChange
from gateway.messages.message import Attachment, Reply
from tests.dispatcher.room import ROOM, chat

pytestmark = pytest.mark.row("T20")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that is open, beside one that is not; links and all lead out of it."""
    root, secret = tmp_path / "open", tmp_path / "secret"
    (root / "deep").mkdir(parents=True)
    secret.mkdir()
    (root / "chart.png").write_bytes(b"chart")
    (root / "a b.png").write_bytes(b"chart")
    (secret / "key.pem").write_bytes(b"key")
    (root / "link.pem").symlink_to(secret / "key.pem")
    (root / "folder").symlink_to(secret)
    (root / "inside.png").symlink_to(root / "chart.png")
    (root / "hooks").mkdir()
    (root / "hooks" / "HOOK.yaml").write_bytes(b"events: []")
    os.mkfifo(root / "pipe")
    return root


async def sent(root: Path, path: str, **more: Any) -> Reply:
    """Return the reply when a hook attaches this."""
    async with chat("here it is", workspace=Workspace((root,), (root / "hooks",))) as room:
        room.hooks.on("message:sending", lambda event: {"attachments": [{"kind": "document", "path": path, **more}]})
        await room.write("draw it")
        await room.hear()
        return room.net.sent[0]


@pytest.mark.parametrize(
    "spelled",
    [
        "{root}/chart.png",
        "file://{root}/chart.png",
        "FILE://localhost{root}/chart.png",
        "chart.png",
        "deep/../chart.png",
        "{root}/./deep/../chart.png",
        "inside.png",
    ],
)
async def test_a_file_of_an_open_folder_goes_out_under_its_real_path(root: Path, spelled: str) -> None:
    reply = await sent(root, spelled.format(root=root), name="a chart.png")
    (attachment,) = reply.attachments
    assert (attachment.path, attachment.name, reply.text) == (str(root / "chart.png"), "a chart.png", "here it is")


async def test_an_address_is_read_as_one(root: Path) -> None:
    (attachment,) = (await sent(root, f"file://{root}/a%20b.png")).attachments
    assert (attachment.path, attachment.name) == (str(root / "a b.png"), "a b.png")


@pytest.mark.parametrize(
    "spelled",
    [
        "{root}/../secret/key.pem",
        "file://{root}/../secret/key.pem",
        "file://{root}/%2e%2e/secret/key.pem",
        "file://elsewhere{root}/chart.png",
        "../secret/key.pem",
        "/etc/passwd",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "~/.ssh/id_ed25519",
        "link.pem",
        "folder/key.pem",
        "hooks/HOOK.yaml",
        "{root}",
        "pipe",
        "/proc/self/environ",
        "chart.png\0",
        "MEDIA:/etc/passwd",
        "https://example.com/chart.png",
        "",
    ],
)
async def test_no_other_file_goes_out_and_the_answer_does(root: Path, spelled: str) -> None:
    reply = await sent(root, spelled.format(root=root), name="notes/key.pem")
    assert reply.attachments == ()
    assert reply.text == "here it is\n[the file key.pem is not sent: it is not there, or may not be taken from there]"


async def test_what_the_owner_sends_is_the_owners_to_choose(root: Path, tmp_path: Path) -> None:
    """A file given on the command line stays when a hook changes the text."""
    own = Attachment("document", str(tmp_path / "secret" / "key.pem"), "key.pem")
    async with chat(workspace=Workspace((root,))) as room:
        room.hooks.on("message:sending", lambda event: {"text": event["text"].upper()})
        await room.house.outbox.post(Reply("r1", ROOM, "mine", attachments=(own,)))
        assert await room.hear() == "MINE"
        assert room.net.sent[0].attachments == (own,)


def test_a_file_is_of_the_hook_that_put_it_there_last() -> None:
    own, shared = Attachment("document", "/own"), Attachment("document", "/shared")

    def change(hook: str, *files: Any) -> FieldChange:
        return FieldChange(hook, "attachments", [{"kind": one.kind, "path": one.path} for one in files])

    placed, restricted = "placed", "restricted"
    assert find_hooks_by_file([own], [change(placed, own, shared)]) == {shared: placed}
    moved = [change(placed, shared, own), change("other"), change(restricted, shared)]
    assert find_hooks_by_file([own], moved)[shared] == restricted, "what was taken out is put there anew"
    broken = [change(placed, shared), FieldChange("other", "attachments", "nonsense"), change("other", shared, own)]
    assert find_hooks_by_file([], broken) == {shared: placed, own: "other"}
