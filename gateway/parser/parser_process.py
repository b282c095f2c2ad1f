"""The process in which foreign pages, long JSON and foreign patterns are read, for all.

A text can be written so that reading it takes for ever: tags that a parser of HTML looks for again and again, a regular
expression that tries all ways to fail.
"""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.hooks.wires.fork_client import ForkServerClient
from gateway.parser.parser_worker import IDLE_LIMIT, ParserLimits, ParserWorker

HANDLER = Path(__file__).with_name("handler.py")
TIME_LIMIT = 2.0  # seconds for one page or pattern
WAIT_LIMIT = 5.0
MEMORY_LIMIT = 256_000_000  # bytes of data, where a page has two million at most
MOST_MATCHES = 10_000  # results that are remembered


class ParserProcess:
    """The parser of pages, long messages and patterns; its methods raise AgentError, in words for the caller."""

    def __init__(self, fork_server: ForkServerClient, log: Path, idle: float = IDLE_LIMIT) -> None:
        limits = ParserLimits(MEMORY_LIMIT, TIME_LIMIT, WAIT_LIMIT)
        self._worker = ParserWorker(fork_server, HANDLER, log, limits, idle)
        self._matches: dict[tuple[str, str], bool] = {}

    @property
    def pid(self) -> int:
        return self._worker.pid

    async def read_page(self, body: bytes, kind: str, charset: str, limit: int) -> str:
        """Return the text of a document of this media type, HTML without its tags; at most so many characters of it."""
        return await self._ask("page", "the page", body, {"kind": kind, "charset": charset, "limit": limit})

    async def compact(self, message: bytes, limit: int) -> bytes:
        """Shorten the texts of the JSON-RPC message to so many characters."""
        return (await self._ask("message", "the answer", message, {"limit": limit})).encode()

    async def match(self, pattern: str, names: Sequence[str]) -> bool:
        """Return True if this regular expression matches the whole of one of these names."""
        unknown = [name for name in names if (pattern, name) not in self._matches]
        if unknown:
            about = {"pattern": pattern, "names": unknown}
            if len(self._matches) > MOST_MATCHES:
                self._matches.clear()
            matching = await self._ask("pattern", f"the pattern {pattern[:200]!r}", b"", about)
            self._matches |= {(pattern, name): name in matching.split("\n") for name in unknown}
        return any(self._matches.get((pattern, name)) for name in names)

    async def _ask(self, verb: str, what: str, data: bytes, about: Mapping[str, Any]) -> str:
        result = await self._worker.ask(verb, what, data, about)
        # In base64 no text can look like a message of many values, which the wire refuses.
        return base64.b64decode(result["text"]).decode("utf-8", "replace")
