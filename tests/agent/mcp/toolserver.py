"""A server of tools as others write them, with the official library: a process of its own, by stdio or by HTTP.

python toolserver.py stdio NOTES | python toolserver.py http PORT NOTES
"""

import os
import sys
from base64 import b64decode, b64encode
from pathlib import Path

import anyio
import mcp.server.mcpserver
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

server = mcp.server.mcpserver.MCPServer("shop")
NOTES = Path(sys.argv[-1])


def note(text: str) -> None:
    with NOTES.open("a") as notes:
        notes.write(f"{text}\n")


WORDS = NOTES.with_name("words")  # what `price` says of itself, where there is such a file


@server.tool(
    annotations=ToolAnnotations(read_only_hint=True), description=WORDS.read_text() if WORDS.exists() else None
)
def price(article: str, pieces: int = 1) -> str:
    """What an article costs."""
    return f"{article}: {pieces * 5} francs"


@server.tool()
def refuse() -> str:
    """Refuse."""
    raise ToolError("we are closed")


@server.tool()
def environment() -> str:
    """Which of some variables are set."""
    return ", ".join(name for name in ("GIVEN", "SECRET_OF_THE_GATEWAY", "PATH") if name in os.environ)


@server.tool()
async def wait() -> str:
    """Wait for a long time."""
    note("waiting")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    return "over"


@server.tool()
def tell(size: int) -> str:
    """A text of so many characters."""
    return "x" * size


@server.tool()
def picture(size: int) -> ImageContent:
    """A picture of so many characters."""
    return ImageContent(type="image", data="x" * size, mime_type="image/png")


DRAWN = (
    "iVBORw0KGgoAAAANSUhEUgAAACUAAAAXCAIAAAADThHyAAAAKElEQVR4nGM8ISfHQEfARE/LRu0btW/UvlH7Ru0btW/UvlH7Ru0jCAApBwEyyIYo"
    "iAAAAABJRU5ErkJggg=="
)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def draw(pictures: int = 1, padding: int = 0) -> list[TextContent | ImageContent]:
    """Draw so many pictures, of so many bytes more than they need."""
    drawn = [b64encode(b64decode(DRAWN) + bytes(padding) + bytes([number])).decode() for number in range(pictures)]
    images = [ImageContent(type="image", data=data, mime_type="image/jpeg") for data in drawn]
    return [TextContent(type="text", text="Here it is:"), *images]


class Article(BaseModel):
    """What is hard to check."""

    name: str = Field(pattern="^(a+)+$|!")


@server.tool()
def describe() -> Article:
    """What an article is called."""
    return Article(name="a" * 64 + "!")


@server.tool()
def die() -> str:
    """End the server."""
    os.write(2, b"I am out of memory\n")
    os._exit(1)


@server.tool()
async def grow(context: mcp.server.mcpserver.Context) -> str:
    """Offer another tool."""

    def grown() -> str:
        """The new one."""
        return "I am new"

    server.add_tool(grown)
    await context.notify_tools_changed()
    return "grown"


note(f"started {os.getpid()}")
if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
