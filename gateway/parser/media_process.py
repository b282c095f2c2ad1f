"""The process that reads pictures and PDFs, with the libraries of the extra `media` if they are installed.

It has time and memory for a photograph of a good camera, and no more. Its results are small.
"""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.agent.libraries import describe_install, is_installed
from gateway.agent.media import SIDE, DocumentText
from gateway.errors import AgentError
from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.parser_worker import IDLE_LIMIT, ParserLimits, ParserWorker

HANDLER = Path(__file__).with_name("media_handler.py")
LIMITS = ParserLimits(memory=700_000_000, time=6.0, wait=20.0)
EXTRA = "media"
LOG = "media.log"


class MediaProcess:
    """The reader of pictures and PDFs in its process; it implements `MediaReader`."""

    def __init__(self, fork_server: ForkServerClient, logs: Path, idle: float = IDLE_LIMIT) -> None:
        self._worker = ParserWorker(fork_server, HANDLER, logs / LOG, LIMITS, idle)

    @property
    def pid(self) -> int:
        return self._worker.pid

    @property
    def missing(self) -> str:
        return "" if is_installed(EXTRA) else describe_install(EXTRA)

    async def fit_picture(self, data: bytes) -> bytes:
        return _decode(await self._ask("picture", "the picture", data, {"side": SIDE}))

    async def read_document(self, data: bytes, limit: int) -> DocumentText:
        found = await self._ask("pdf", "the PDF", data, {"limit": limit})
        return DocumentText(base64.b64decode(found["text"]).decode("utf-8", "replace"), found["pages"])

    async def render_page(self, data: bytes, number: int) -> bytes:
        return _decode(await self._ask("page", "a page of the PDF", data, {"number": number, "side": SIDE}))

    async def _ask(self, verb: str, what: str, data: bytes, about: Mapping[str, Any]) -> Mapping[str, Any]:
        found = await self._worker.ask(verb, what, data, about)
        if error := found.get("error"):
            raise AgentError(f"{what} could not be read: {error}")
        return found


def _decode(found: Mapping[str, Any]) -> bytes:
    return base64.b64decode(found["data"])
