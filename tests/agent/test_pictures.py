"""Pictures of an entry: which may go to a model, in which form, and which are replaced by words."""

import hashlib
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.agent import ToolContext, run_turn, tool
from gateway.agent.media import keep_tool_picture
from gateway.agent.model import ModelRequest, estimate_tokens
from gateway.agent.models.anthropic import AnthropicModel
from gateway.agent.models.openai import OpenAIModel
from gateway.agent.pictures import LARGEST, LARGEST_SUM, WIDEST, find_picture, load_pictures, read_header
from gateway.events import Deny
from gateway.files.folders import RECEIVED_NAME
from gateway.messages.message import Attachment
from gateway.messages.steps import ToolFinished
from gateway.messages.transcript import Entry, Picture, ToolCall, as_message, entry_from
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
    assert find_picture(kept(path, b"%PDF-1.7")) == "it is not a JPEG, PNG, GIF or WebP"
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


def of_tool(picture: Picture, name: str = "draw", call_id: str = "c1") -> Entry:
    return Entry("tool", "drawn", call_id=call_id, name=name, parts=(picture,))


CALLS = Entry("assistant", tool_calls=(ToolCall("c1", "draw"), ToolCall("c2", "weather")))


async def encoded(model: Any, *entries: Entry) -> list[dict[str, Any]]:
    """The messages of a request, as they go to the endpoint."""
    body = model.encode_request(ModelRequest(entries), load_pictures(entries))
    await model.aclose()
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    return messages


async def test_the_pictures_of_tools_follow_all_results_of_their_batch(tmp_path: Path) -> None:
    """For OpenAI's endpoint refuses them in a result, and anything between two results."""
    picture, weather = found(tmp_path / "a.png"), Entry("tool", "sunny", call_id="c2", name="weather")
    sent = await encoded(OpenAIModel("gpt"), Entry("user", "draw"), CALLS, of_tool(picture), weather, CALLS)
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool", "user", "assistant"]
    assert (sent[2]["content"], sent[3]["content"]) == ("drawn", "sunny")
    assert sent[4]["content"] == [{"type": "text", "text": "[what draw gave as pictures]"}, url_of(PNG)]
    await anyio.Path(picture.path).unlink()
    (*_, last) = await encoded(OpenAIModel("gpt"), Entry("user", "draw"), CALLS, weather, of_tool(picture))
    assert last["content"] == f"drawn\n[you are not shown the picture in {picture.path}]"


async def test_anthropic_takes_the_pictures_of_tools_in_their_results(tmp_path: Path) -> None:
    weather = Entry("tool", "sunny", call_id="c2", name="weather")
    model = AnthropicModel("claude", api_key="key")
    sent = await encoded(model, Entry("user", "draw"), CALLS, of_tool(found(tmp_path / "a.png")), weather)
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(PNG).decode()}
    image, text = {"type": "image", "source": source}, {"type": "text", "text": "drawn"}
    assert sent[-1]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text, image]},
        {"type": "tool_result", "tool_use_id": "c2", "content": "sunny"},
    ]


class NoReader:
    """Nothing that could read other pictures is installed."""

    missing = "it needs more"

    async def fit_picture(self, data: bytes) -> bytes:
        raise AssertionError

    async def read_document(self, data: bytes, limit: int) -> Any:
        raise AssertionError

    async def render_page(self, data: bytes, number: int) -> bytes:
        raise AssertionError


@tool(repeatable=True)
async def draw(context: ToolContext) -> str:
    """Draw something."""
    assert context.show
    return f"drawn: {await context.show(PNG)}"


DRAW = {"tool_calls": [{"name": "draw", "args": {}, "id": "c1"}]}


def only_file_in(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


def drawing(folder: Path) -> Any:
    return partial(keep_tool_picture, folder, NoReader())


async def test_a_tool_shows_a_picture_which_is_kept_as_a_file_and_in_the_record(stage: Stage, tmp_path: Path) -> None:
    result = await stage.play(stage.agent(DRAW, "nice", tools=[draw]), keep_picture=drawing(tmp_path))
    made = only_file_in(tmp_path)
    assert (made.read_bytes(), made.suffix, bool(RECEIVED_NAME.fullmatch(made.name))) == (PNG, ".png", True)
    (entry,) = [one for one in result.entries if one.role == "tool"]
    about = f"drawn: [a picture (image/png, {len(PNG)} bytes), in {made}]"
    assert (entry.content, [one.path for one in entry.parts]) == (about, [str(made)])
    assert stage.sent().messages[-1] == entry
    (finished,) = [step for step in stage.steps if isinstance(step, ToolFinished)]
    assert finished.entry == entry
    assert stage.fields("tool:after")["parts"] == as_message(entry)["parts"]
    again = await stage.again(stage.agent("nice", tools=[draw]), keep_picture=drawing(tmp_path / "none"))
    assert [one for one in again.entries if one.role == "tool"] == [entry]  # and it is not drawn again


@pytest.mark.parametrize("left", ["nothing", "another result", "an error"])
async def test_hooks_take_the_pictures_of_a_tool_away(stage: Stage, tmp_path: Path, left: str) -> None:
    secret = found(tmp_path / "secret.png", b64decode(WRITTEN["gif"]))

    @stage.on("tool:after")
    def change(event: Any) -> Deny | None:
        if left == "nothing":
            event["parts"] = [event["parts"][0] | {"path": secret.path, "digest": secret.digest}]
        if left == "another result":
            event["result"] = "a secret"
        return Deny("not this") if left == "an error" else None

    result = await stage.play(stage.agent(DRAW, "nice", tools=[draw]), keep_picture=drawing(tmp_path))
    (entry,) = [one for one in result.entries if one.role == "tool"]
    assert len(entry.parts) == (left == "another result")
    assert entry.error == (left == "an error")


async def test_a_picture_that_cannot_be_shown_or_kept_is_said_so(tmp_path: Path) -> None:
    words, picture = await keep_tool_picture(tmp_path, NoReader(), b"BM no picture that models know")
    made = only_file_in(tmp_path)
    why = "it is not a JPEG, PNG, GIF or WebP; it needs more"
    assert words == f"[a picture (application/octet-stream, 30 bytes), in {made}; you are not shown it: {why}]"
    assert picture is None
    words, picture = await keep_tool_picture(made / "below a file", NoReader(), PNG)
    assert (words, picture) == (
        f"[a picture (image/png, {len(PNG)} bytes) that cannot be kept: Not a directory]",
        None,
    )


async def test_a_model_that_is_said_to_have_no_eyes_is_not_even_asked_with_pictures(
    stage: Stage, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.stream(SAID, "[DONE]")
    blind = OpenAIModel("gpt", api_key="key", base_url=endpoint.url, pictures=False)
    picture = found(tmp_path / "a.jpg")
    await show(stage, blind, Entry("user", "what is it?", parts=(picture,)))
    await blind.aclose()
    said = f"what is it?\n[you are not shown the picture in {picture.path}]"
    assert [body["messages"] for _, body in endpoint.requests] == [[{"role": "user", "content": said}]]
