"""Pictures of an entry: what may go to a model as it is, in which form it goes, and where words stand in its place."""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from gateway.agent import run_turn
from gateway.agent.model import ModelRequest, estimate_tokens
from gateway.agent.models.anthropic import AnthropicModel
from gateway.agent.models.openai import OpenAIModel
from gateway.agent.pictures import LARGEST, LARGEST_SUM, WIDEST, find_picture, load_pictures, read_header
from gateway.events import Deny
from gateway.messages import Attachment
from gateway.transcript import Entry, Picture, as_message, entry_from
from tests.agent.endpoint import Endpoint, serving
from tests.agent.stage import Stage

WRITTEN = {  # 37 x 23 pixels each, by Pillow
    "exif": "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAqRXhpZgAATU0AKgAAAAgAAQEOAAIAAAAHAAAAGgAAAABhIGJhcm4AAP/bAEMAoG54jHhkoIyC"
    "jLSqoL7w///w3Nzw///////////////////////////////////////////////////////////bAEMBqrS08NLw////////////////////////"
    "///////////////////////////////////////////////////////AABEIABcAJQMBIgACEQEDEQH/xAAf",
    "progressive": "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAKBueIx4ZKCMgoy0qqC+8P//8Nzc8P////////////////////////////"
    "//////////"
    "////////////////////2wBDAaq0tPDS8P//////////////////////////////////////////////////////////////////////////////"
    "wgARCAAXACUDASIAAhEBAxEB/8QAFQAB",
    "png": "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW"
    "/UvlH7Ru0jCAApBwEy"
    "yIYoiAAAAABJRU5ErkJggg==",
    "gif": "R0lGODdhJQAXAIEAAMgeHgAAAAAAAAAAACwAAAAAJQAXAEAIMQABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzat"
    "zIsaPHjyBDihxJsqTJ"
    "kyg/BgQAOw==",
    "lossy": "UklGRkIAAABXRUJQVlA4IDYAAAAwAwCdASolABcAP83m7XA/uDIrJWgD8DmJZwDIIBJjuugAAP7Qym79v3Z2i0xsRjzGh9AAAAA=",
    "lossless": "UklGRh4AAABXRUJQVlA4TBEAAAAvJIAFAAdQjyLXo/+BiOh/AAA=",
    "extended": "UklGRpAAAABXRUJQVlA4WAoAAAAYAAAAJAAAFgAAQUxQSAoAAAABB1CyiAhERP8DVlA4IDYAAAAwAwCdASolABcAP83m7XA/uDIr",
}
TYPES = {"exif": "jpeg", "progressive": "jpeg", "png": "png", "gif": "gif"}
PNG = b64decode(WRITTEN["png"])
SAID = json.dumps({"choices": [{"index": 0, "delta": {"content": "I see."}, "finish_reason": "stop"}]})
ANTHROPIC_SAID = (
    json.dumps({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I see."}}),
    json.dumps({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
    json.dumps({"type": "message_stop"}),
)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with serving() as server:
        yield server


@pytest.fixture
async def model(endpoint: Endpoint) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("gpt", api_key="key", base_url=endpoint.url)
    yield model
    await model.aclose()


def kept(path: Path, data: bytes = PNG) -> Attachment:
    path.write_bytes(data)
    return Attachment("image", str(path), "photo.jpg", "image/jpeg", len(data))


def found(path: Path, data: bytes = PNG) -> Picture:
    picture = find_picture(kept(path, data))
    assert isinstance(picture, Picture), picture
    return picture


def wide_png(width: int, height: int) -> bytes:
    return PNG[:16] + width.to_bytes(4, "big") + height.to_bytes(4, "big") + PNG[24:]


def url_of(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{b64encode(data).decode()}"}}


async def show(stage: Stage, model: Any, entry: Entry, history: tuple[Entry, ...] = (), **more: Any) -> Any:
    stage.new_scope()
    return await run_turn(stage.agent(model=model, **more), history, entry, stage.ports())


@pytest.mark.parametrize("name", WRITTEN)
def test_the_header_says_type_and_size(name: str) -> None:
    data = b64decode(WRITTEN[name])
    assert read_header(data) == (f"image/{TYPES.get(name, 'webp')}", 37, 23)
    for length in range(len(data)):
        assert read_header(data[:length]) in (None, read_header(data))  # a file that was cut off raises nothing


def test_what_is_no_picture_or_too_large_goes_as_words(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    assert find_picture(kept(path, b"%PDF-1.7")) == "it is no JPEG, PNG, GIF or WebP"
    assert find_picture(kept(path, wide_png(WIDEST + 1, 1))) == (
        f"it has {WIDEST + 1} x 1 pixels, and {WIDEST} a side are shown at most"
    )
    assert find_picture(kept(path, PNG + bytes(LARGEST))) == "it has more than 1.5 MB"
    assert found(path, wide_png(WIDEST, WIDEST)).mime == "image/png"  # whatever it is called
    path.unlink()
    assert find_picture(Attachment("image", str(path))) == "it cannot be read"


def test_a_link_or_another_file_in_its_place_is_not_shown(tmp_path: Path) -> None:
    picture = found(tmp_path / "a.jpg")
    other = tmp_path / "other.jpg"
    other.write_bytes(b64decode(WRITTEN["gif"]))
    entries = (Entry("user", "look", parts=(picture,)),)
    assert load_pictures(entries) == {hashlib.sha256(PNG).hexdigest(): b64encode(PNG).decode()}
    other.replace(picture.path)
    assert load_pictures(entries) == {}
    other.write_bytes(PNG)
    Path(picture.path).unlink()
    Path(picture.path).symlink_to(other)
    assert load_pictures(entries) == {}
    assert find_picture(Attachment("image", picture.path)) == "it cannot be read"


def test_the_newest_pictures_go_first(tmp_path: Path) -> None:
    count = LARGEST_SUM // LARGEST + 1
    pictures = [found(tmp_path / f"{n}.png", PNG + bytes([n]) * (LARGEST - len(PNG))) for n in range(count)]
    entries = [Entry("user", "look", parts=(one,)) for one in pictures]
    assert set(load_pictures(entries)) == {one.digest for one in pictures[1:]}


async def test_a_picture_goes_beside_the_text_in_the_request_alone(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path
) -> None:
    endpoint.stream(SAID, "[DONE]")
    picture = found(tmp_path / "a.jpg")
    result = await show(stage, model, Entry("user", "what is it?", parts=(picture,)))
    (body,) = (body for _, body in endpoint.requests)
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, url_of(PNG)]}]
    assert result.entries[0] == Entry("user", "what is it?", parts=(picture,))
    told = stage.fields("llm:before")["messages"]
    about = {"kind": "image", "path": picture.path, "digest": picture.digest, "size": len(PNG), "mime": "image/png"}
    assert told == [{"role": "user", "content": "what is it?", "parts": [about]}]
    assert b64encode(PNG).decode() not in json.dumps(stage.fired, default=str)


async def test_anthropic_has_a_form_of_its_own(stage: Stage, endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.stream(*ANTHROPIC_SAID)
    model = AnthropicModel("claude", api_key="key", base_url=endpoint.url.removesuffix("/v1"))
    await show(stage, model, Entry("user", "what is it?", parts=(found(tmp_path / "a.jpg"),)))
    await model.aclose()
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()}
    assert endpoint.requests[0][1]["messages"] == [
        {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "what is it?"}]}
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "unknown variant `image_url`, expected `text`"),
        (500, "image input is not supported - hint: you may need to provide the mmproj"),
        (400, "messages[0].content must be a string"),
        (413, "request entity too large"),
    ],
)
async def test_a_model_without_eyes_is_told_where_the_picture_lies(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path, status: int, words: str
) -> None:
    endpoint.answer(status, json.dumps({"error": {"message": words}}).encode())
    endpoint.stream(SAID, "[DONE]")
    picture = found(tmp_path / "a.jpg")
    result = await show(stage, model, Entry("user", "what is it?", parts=(picture,)))
    assert result.reply == "I see."
    said = f"what is it?\n[you are not shown the picture in {picture.path}]"
    assert endpoint.requests[1][1]["messages"] == [{"role": "user", "content": said}]


async def test_another_error_is_not_tried_again_without_pictures(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path
) -> None:
    endpoint.answer(401, b'{"error": {"message": "wrong key"}}')
    result = await show(stage, model, Entry("user", "what is it?", parts=(found(tmp_path / "a.jpg"),)))
    assert (result.status, len(endpoint.requests)) == ("failed", 1)


@pytest.mark.parametrize("turns", [0, 1, 3])
async def test_a_picture_goes_with_its_turn_and_the_next_ones(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path, turns: int
) -> None:
    history: tuple[Entry, ...] = ()
    entry = Entry("user", "what is it?", parts=(found(tmp_path / "a.jpg"),))
    for _ in range(turns + 2):
        endpoint.stream(SAID, "[DONE]")
        history += (await show(stage, model, entry, history, picture_turns=turns)).entries
        entry = Entry("user", "and now?")
    assert ["image_url" in json.dumps(body) for _, body in endpoint.requests] == [True] * (turns + 1) + [False]
    assert history[0].parts  # the record of it stays


async def test_who_withholds_the_message_withholds_its_pictures(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path
) -> None:
    endpoint.stream(SAID, "[DONE]")
    stage.on("message:add")(lambda event: Deny("not this"))
    await show(stage, model, Entry("user", "what is it?", parts=(found(tmp_path / "a.jpg"),)))
    assert endpoint.requests[0][1]["messages"] == [{"role": "user", "content": "not this"}]


async def test_a_hook_takes_a_picture_away_and_can_show_none_that_it_does_not_know(
    stage: Stage, endpoint: Endpoint, model: OpenAIModel, tmp_path: Path
) -> None:
    secret = found(tmp_path / "secret.jpg", b64decode(WRITTEN["gif"]))

    @stage.on("llm:before")
    def change(event: Any) -> None:
        (message,) = event["messages"]
        event["messages"] = [message | {"parts": [message["parts"][0] | {"path": secret.path}]}]

    endpoint.stream(SAID, "[DONE]")
    await show(stage, model, Entry("user", "what is it?", parts=(found(tmp_path / "a.jpg"),)))
    assert "image_url" not in json.dumps(endpoint.requests[0][1])


def test_a_picture_counts_as_tokens_and_survives_the_way_through_hooks(tmp_path: Path) -> None:
    plain, entry = Entry("user", "look"), Entry("user", "look", parts=(found(tmp_path / "a.jpg"),))
    assert estimate_tokens(ModelRequest((entry,))) - estimate_tokens(ModelRequest((plain,))) == 1500
    assert entry_from(json.loads(json.dumps(as_message(entry)))) == entry
