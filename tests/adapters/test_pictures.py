"""What people send reaches the model as what it is, on each network: from the network's own library to the request."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.testing.networks.house import House, housed
from tests.adapters.wires import WIRES
from tests.http_server import QuietHandler, serving
from tests.spine import until

NETWORKS = ("telegram", "discord", "slack", "web")
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
    """It keeps the messages of each request that it is asked with."""

    def do_POST(self) -> None:  # noqa: N802 - as the library calls it
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(body["messages"])  # type: ignore[attr-defined]
        self.answer(f"data: {SAID}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")


@pytest.fixture
def model() -> Iterator[ThreadingHTTPServer]:
    with serving(SeeingModel) as server:
        server.asked = []  # type: ignore[attr-defined]
        yield server


def settings_of(model: ThreadingHTTPServer) -> str:
    return f'model: {{provider: openai, name: m, base_url: "http://127.0.0.1:{model.server_address[1]}/v1"}}\n'


async def asked(house: House, model: Any) -> list[dict[str, Any]]:
    """The messages of the newest request, once it is answered."""
    await until(lambda: bool(house.told("message:sent")), "the answer")
    messages: list[dict[str, Any]] = model.asked[-1]
    return messages


def shown(message: dict[str, Any]) -> list[str]:
    """The pictures of a message, as the model is given them."""
    content: str | Sequence[dict[str, Any]] = message["content"]
    return [] if isinstance(content, str) else [one["image_url"]["url"] for one in content[1:]]


def url_of(data: bytes, mime: str) -> str:
    return f"data:{mime};base64,{b64encode(data).decode()}"


@pytest.mark.parametrize("network", NETWORKS)
async def test_an_album_is_seen_by_the_model_and_outlives_a_restart(
    network: str, tmp_path: Path, model: ThreadingHTTPServer
) -> None:
    wire = WIRES[network](tmp_path / "home")
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


async def test_what_no_model_can_be_shown_is_named_with_its_path_and_the_reason(
    tmp_path: Path, model: ThreadingHTTPServer
) -> None:
    wire = WIRES["telegram"](tmp_path / "home")
    async with wire.serving(), housed(wire, tmp_path / "home", settings=settings_of(model)) as house:
        await wire.upload(("barn.jpg", b"no picture at all"), caption="what is this?")
        first = (await asked(house, model))[-1]
        (file,) = house.told("message:received")[-1]["attachments"]
        assert first["content"].startswith("what is this?\n[attached image: photo.jpg")
        assert first["content"].endswith(f"in {file['path']}; you are not shown it: it is no JPEG, PNG, GIF or WebP]")
