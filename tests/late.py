"""A journal as a process sees it that can be paused, or dies: while the gate is shut, none of its calls gets through.

What it had begun arrives late, when the process is continued, as the calls of a stopped process do.
"""

import inspect
from typing import Any

import anyio
import anyio.lowlevel


class Late:
    """An engine (or what one gave us) behind a gate."""

    def __init__(self, inner: Any, gate: "Gate") -> None:
        self._inner = inner
        self._gate = gate

    async def serve(self, _subject: str, _answer: Any) -> Any:
        """Serve nothing: it is another process, and shared requests reach the one that is here."""
        return anyio.lowlevel.checkpoint

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def call(*args: Any, **more: Any) -> Any:
            if name in ("ack", "nak", "progress") and not self._gate.is_open:
                return None  # as if it were lost on the way: nothing depends on them
            await self._gate.passed()
            answer = await found(*args, **more)
            await self._gate.passed()
            if isinstance(answer, list) and name == "fetch":
                return [Late(one, self._gate) for one in answer]
            return Late(answer, self._gate) if name in ("lease", "consumer") and answer else answer

        return call


class Gate:
    """Open, until the process is paused."""

    def __init__(self) -> None:
        self._open = anyio.Event()
        self._open.set()

    def pause(self) -> None:
        self._open = anyio.Event()

    def go_on(self) -> None:
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def passed(self) -> None:
        await self._open.wait()
