"""Pictures and files reach the model in their own form: from the page, in place of all networks, to the request."""

import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from http.server import ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest
from anyio import to_thread
from PIL import Image

from gateway.agent.media import SIDE
from gateway.sessions.removal import forget_sessions
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, BEN, GROUP, STRANGER
from tests.adapters.page_wire import PageWire
from tests.adapters.slack_web import BOT, Refused
from tests.adapters.slack_wire import CHANNEL, SlackWire
from tests.adapters.telegram_wire import TelegramWire
from tests.http_server import QuietHandler, serving
from tests.parser.media_files import noisy_jpeg, picture, scanned_pdf, text_pdf
from tests.spine import until

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7Ru0jCAApBwEyyIYo"
    "iAAAAABJRU5ErkJggg=="
)
GIF = b64decode(
    "R0lGODdhJQAXAIEAAMgeHgAAAAAAAAAAACwAAAAAJQAXAEAIMQABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatzIsaPHjyBDihxJsqTJkyg/"
    "BgQAOw=="
)
SAID = json.dumps({"choices": [{"index": 0, "delta": {"content": "I see."}, "finish_reason": "stop"}]})


class SeeingModel(QuietHandler):
    """A model that keeps the messages of each request; `calls` are the tools that it wants first."""

    def do_POST(self) -> None:  # noqa: N802 - as the library calls it
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if body["model"] == "eyes":
            self.server.described.append(body["messages"][-1])  # type: ignore[attr-defined]
            self.answer(f"data: {BARN}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")
            return
        self.server.asked.append(body["messages"])  # type: ignore[attr-defined]
        if not self.server.may_answer.wait(60):  # type: ignore[attr-defined]
            return
        calls = self.server.calls  # type: ignore[attr-defined]
        said = make_call(*calls.pop(0)(body["messages"])) if calls else SAID
        self.answer(f"data: {said}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")


BARN = json.dumps(
    {
        "choices": [{"index": 0, "delta": {"content": "A red barn."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 70, "completion_tokens": 5},
    }
)


def make_call(name: str, args: dict[str, Any]) -> str:
    call = {"index": 0, "id": name, "function": {"name": name, "arguments": json.dumps(args)}}
    return json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})


@pytest.fixture
def model() -> Iterator[ThreadingHTTPServer]:
    with serving(SeeingModel) as server:
        server.asked, server.calls, server.described = [], [], []  # type: ignore[attr-defined]
        server.may_answer = Event()  # type: ignore[attr-defined]
        server.may_answer.set()  # type: ignore[attr-defined]
        yield server
        server.may_answer.set()  # type: ignore[attr-defined]


def settings_of(model: ThreadingHTTPServer) -> str:
    return f'model: {{provider: openai, name: m, base_url: "http://127.0.0.1:{model.server_address[1]}/v1"}}\n'


async def asked(house: House, model: Any) -> list[dict[str, Any]]:
    """The messages of the newest request, once it is answered."""
    await until(lambda: bool(house.told("message:sent")), "the answer")
    messages: list[dict[str, Any]] = model.asked[-1]
    return messages


def shown(message: dict[str, Any]) -> list[str]:
    """Return the pictures of a message, in the model's form."""
    content: str | Sequence[dict[str, Any]] | None = message["content"]
    return [] if content is None or isinstance(content, str) else [one["image_url"]["url"] for one in content[1:]]


def url_of(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{b64encode(data).decode()}"


async def test_an_album_is_seen_by_the_model_and_outlives_a_restart(tmp_path: Path, model: ThreadingHTTPServer) -> None:
    wire: Any = PageWire(tmp_path / "home")
    async with wire.serving():
        async with housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
            await wire.upload(("barn.jpg", PNG), ("roof.jpg", GIF), caption="what is this?")
            first = (await asked(house, model))[-1]
            assert shown(first) == [url_of(PNG, "image/png"), url_of(GIF, "image/gif")]
            text = first["content"][0]["text"]
            assert "what is this?" in text
            assert "you are not shown" not in text
            files = [one["path"] for one in house.told("message:received")[-1]["attachments"]]
            assert [await anyio.Path(one).read_bytes() for one in files] == [PNG, GIF]
            assert all(one in text for one in files)
            parts = house.told("llm:before")[-1]["messages"][-1]["parts"]
            assert [part["path"] for part in parts] == files
        async with housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
            await wire.write("and which colour has it?")
            seen = [one for message in await asked(house, model) for one in shown(message)]
            assert seen == [url_of(PNG, "image/png"), url_of(GIF, "image/gif")]


def decoded(url: str) -> Image.Image:
    """A picture that the model was shown."""
    return Image.open(BytesIO(b64decode(url.partition(",")[2])))


async def test_what_models_do_not_take_is_made_such(tmp_path: Path, model: ThreadingHTTPServer) -> None:
    """A photograph of many pixels, and a picture of a kind that no model knows."""
    wire: Any = PageWire(tmp_path / "home")
    files = (("barn.jpg", noisy_jpeg(5000, 1200)), ("roof.bmp", picture("BMP", 300, 200)))
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
        await wire.upload(*files, caption="what is this?")
        first = (await asked(house, model))[-1]
        barn, *others = [decoded(one) for one in shown(first)]
        assert (barn.format, barn.size) == ("JPEG", (SIDE, 376))
        received = house.told("message:received")[-1]["attachments"]
        (roof,) = others
        assert roof.size == (300, 200)
        assert "you are not shown" not in first["content"][0]["text"]
        parts = house.told("llm:before")[-1]["messages"][-1]["parts"]
        folder = Path(received[0]["path"]).parent
        assert {Path(part["path"]).parent for part in parts} == {folder}
        key = house.told("message:received")[-1]["session_key"]
        assert await forget_sessions(house.gateway.engine, house.gateway.sessions, key)
        await until(lambda: not [one for one in folder.iterdir() if one.is_file()], "the end of the files")


async def test_documents_are_read(tmp_path: Path, model: ThreadingHTTPServer) -> None:
    wire: Any = PageWire(tmp_path / "home")
    files = (
        ("letter.pdf", text_pdf("Dear Ann,", "yours, Ben")),
        ("scan.pdf", scanned_pdf(1)),
        ("notes.txt", "Zwölf Äpfel".encode()),
        ("tool.bin", bytes(range(256))),
    )
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
        await wire.upload(*files, caption="what is this?")
        first = (await asked(house, model))[-1]
        text = first["content"][0]["text"]
        letter, scan, notes, tool = [one["path"] for one in house.told("message:received")[-1]["attachments"]]
        assert "; 2 pages, of which you are shown the first 2 as pictures; its text:]\n[page 1]\nDear Ann,\n\n" in text
        assert "[page 2]\nyours, Ben\n[end of letter.pdf]\n" in text
        assert f"in {scan}; 1 page, of which you are shown the first as pictures; it has no text of its own]\n" in text
        assert f"in {notes}; its text:]\nZwölf Äpfel\n[end of notes.txt]\n" in text
        assert text.endswith(f"in {tool}]")
        assert [decoded(one).size[1] for one in shown(first)] == [SIDE] * 3
        parts = house.told("llm:before")[-1]["messages"][-1]["parts"]
        assert parts[0]["path"] == letter.replace(".pdf", "-1.jpg")


async def test_what_a_thread_hangs_on_is_seen_by_whoever_is_called_into_it_on_slack(
    tmp_path: Path, model: ThreadingHTTPServer
) -> None:
    """Once; nothing of it is fetched for strangers."""
    wire = SlackWire()
    settings = settings_of(model) + "platforms: {slack: {require_mention: true}}\n"
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings) as house:
        parent = wire.attach(BEN, CHANNEL, ("barn.jpg", PNG), ("cry.ogg", b"OggS"))
        for person in (STRANGER, ANN):
            wire.told(wire.message(person, CHANNEL, f"<@{BOT}> what is this?", parent))
        (question,) = [one for one in await asked(house, model) if one["role"] == "user"]
        assert shown(question) == [url_of(PNG, "image/png")]
        assert "[the message that this answers has the image: " in question["content"][0]["text"]
        (file,) = house.told("message:received")[-1]["attachments"]
        assert file["is_quoted"]
        await wire.write("and its colour?", chat=GROUP, thread=parent)
        await until(lambda: len(house.told("message:received")) == 2, "the second question")
        assert house.told("message:received")[-1]["attachments"] == []
        assert [name for name, _ in wire.calls].count("conversations.replies") == 1


async def test_a_thread_whose_beginning_cannot_be_read_is_answered_all_the_same(
    tmp_path: Path, model: ThreadingHTTPServer
) -> None:
    wire = SlackWire()
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
        parent = wire.attach(BEN, CHANNEL, ("barn.jpg", PNG))
        wire.ills["conversations.replies"] = [Refused("missing_scope")]
        wire.told(wire.message(ANN, CHANNEL, f"<@{BOT}> what is this?", parent))
        (question,) = [one for one in await asked(house, model) if one["role"] == "user"]
        assert question["content"] == "what is this?"


async def test_what_no_model_can_be_shown_is_named_with_its_path_and_the_reason(
    tmp_path: Path, model: ThreadingHTTPServer
) -> None:
    wire = TelegramWire()
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
        await wire.upload(("barn.jpg", b"no picture at all"), caption="what is this?")
        first = (await asked(house, model))[-1]
        (file,) = house.told("message:received")[-1]["attachments"]
        assert first["content"].startswith("what is this?\n[attached image: photo.jpg")
        why = "the picture could not be read: it is not a picture of a kind that can be read here"
        assert first["content"].endswith(f"in {file['path']}; you are not shown it: {why}]")


SERVER = Path(__file__).parent.parent / "agent" / "mcp" / "toolserver.py"


def path_in(messages: list[dict[str, Any]]) -> str:
    """Return the path of the picture that the newest tool result names."""
    told: str = next(one["content"] for one in reversed(messages) if one["role"] == "tool")
    return told.rpartition(", in ")[2].removesuffix("]")


async def test_what_a_tool_draws_is_seen_by_the_model_and_sent_to_the_chat(tmp_path: Path, model: Any) -> None:
    """By a server of tools; and it goes with its conversation."""
    wire: Any = PageWire(tmp_path / "home")
    shop = {"command": sys.executable, "args": [str(SERVER), "stdio", str(tmp_path / "notes")], "trust": "read"}
    settings = f"{settings_of(model)}mcp_servers: {json.dumps({'shop': shop})}\n{wire.own(ANN)}"
    model.calls += [
        lambda _: ("mcp_shop_draw", {}),
        lambda messages: ("send_file", {"path": path_in(messages), "caption": "drawn for you"}),
    ]
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings) as house:
        await wire.write("draw me a barn")
        await until(lambda: len(house.told("message:sent")) == 2, "the picture and the answer")
        _, second, third = model.asked
        assert [one["role"] for one in second[-3:]] == ["assistant", "tool", "user"]
        (picture,) = [decoded(one) for one in shown(second[-1])]
        assert picture.size == (37, 23)
        assert shown(third[-3]) == shown(second[-1])  # it is shown again with the next hop
        path = Path(path_in(second))
        assert second[-2]["content"] == f"Here it is:\n[a picture (image/png, {len(PNG) + 1} bytes), in {path}]"
        (file,) = [one for one in wire.shown if one.file]
        assert file.file == await anyio.Path(path).read_bytes() == PNG + bytes(1)
        await wire.write("what did you draw?")
        await until(lambda: len(model.asked) == 4, "the question")
        assert [one for message in model.asked[-1] for one in shown(message)] == shown(second[-1])
        await until(lambda: len(house.told("message:sent")) == 3, "the answer")
        key = house.told("message:received")[-1]["session_key"]
        assert await forget_sessions(house.gateway.engine, house.gateway.sessions, key)
        await until(lambda: not path.exists(), "the end of the picture")


async def test_an_agent_sees_a_picture_that_it_reads(tmp_path: Path, model: Any) -> None:
    wire = TelegramWire()
    model.calls.append(lambda _: ("read_file", {"path": "barn.png"}))
    settings = settings_of(model) + wire.own(ANN)
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings) as house:
        await anyio.Path(house.gateway.home.own_folder / "workspace" / "barn.png").write_bytes(PNG)
        await wire.write("look at barn.png")
        last = (await asked(house, model))[-1]
        assert shown(last) == [url_of(PNG, "image/png")]
        (after,) = house.told("tool:after")
        assert [(part["mime"], await anyio.Path(part["path"]).read_bytes()) for part in after["parts"]] == [
            ("image/png", PNG)
        ]


def blind_settings_of(model: Any) -> str:
    """A model without eyes, and another one that tells it what is to be seen."""
    url = f"http://127.0.0.1:{model.server_address[1]}/v1"
    eyes = f'models: {{eyes: {{provider: openai, name: eyes, base_url: "{url}"}}}}\n'
    blind = f'model: {{provider: openai, name: m, pictures: false, base_url: "{url}"}}\n'
    return f"{blind}{eyes}agents: {{main: {{vision: eyes}}}}\n"


async def test_another_model_describes_pictures_for_one_without_eyes(tmp_path: Path, model: Any) -> None:
    wire: Any = PageWire(tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home", settings=blind_settings_of(model)) as house:
        await wire.upload(("barn.jpg", PNG), ("roof.jpg", GIF), caption="what is this?")
        first = (await asked(house, model))[-1]
        (described,) = model.described
        assert shown(described) == [url_of(PNG, "image/png"), url_of(GIF, "image/gif")]
        assert described["content"][0]["text"].startswith("what is this?")
        end = "[you are not shown what is pictured; eyes says of it:]\nA red barn.\n[end of what eyes says]"
        assert first["content"].endswith(end)
        assert all(one["path"] in first["content"] for one in house.told("message:received")[-1]["attachments"])
        assert house.told("agent:end")[-1]["usage"]["input_tokens"] >= 70
        await wire.write("and which colour has it?")
        await until(lambda: len(house.told("message:sent")) == 2, "the second answer")
        assert len(model.described) == 1
        assert [one for one in model.asked[-1] if str(one["content"]).endswith(end)]


async def test_a_gateway_that_is_killed_does_not_have_the_same_picture_described_again(
    tmp_path: Path, model: Any
) -> None:
    wire = TelegramWire()
    model.may_answer.clear()
    async with wire.serving():
        with GatewayProcess(tmp_path / "home") as gateway:
            gateway.configure(blind_settings_of(model) + wire.settings)
            gateway.environ |= {**wire.environ, "TELEGRAM_ALLOWED_USERS": ANN}
            await to_thread.run_sync(gateway.start)
            await wire.upload(("barn.jpg", PNG), caption="what is this?")
            await until(lambda: bool(model.asked), "the question")
            await to_thread.run_sync(gateway.kill)
            model.may_answer.set()
            await to_thread.run_sync(gateway.start)
            await until(lambda: bool([one for one in wire.shown if "I see." in one.text]), "the answer")
            assert (len(model.described), "A red barn." in model.asked[-1][-1]["content"]) == (1, True)
