"""The gate of a batch of tool calls: all its questions are answered before any call acts, and approved calls act first.

A person who approves `sh build.sh` has the present file in mind; a call beside it that writes the file must not run
while the question is open, nor before the script has run. So the calls of a batch that change something wait for each
other: each comes to the gate when its own questions are answered. When the last one has come, or has ended another way,
the gate opens:

- One of them waits for an answer: none goes through. The turn stops with all questions together, and runs again with
  all answers.
- Otherwise the approved calls go through at once, and the others when these have ended.

A call that only reads does not wait. A sub-agent has batches of its own. Its questions come when its batch runs, so the
turn as a whole counts (`Ports.open_questions`): while one of its questions is open, no call that changes something
begins.
"""

from collections.abc import Iterable

import anyio

from gateway.events import Pause


class BatchGate:
    """Opens when every call of a batch has come to it, or has ended."""

    def __init__(self, calls: Iterable[str], questions: set[str]) -> None:
        self._missing = set(calls)
        self._allowed: set[str] = set()  # approved calls that have not ended
        self._questions = questions
        self._open = anyio.Event()
        self._open_to_all = anyio.Event()

    async def pass_through(self, call_id: str, *, needed_yes: bool) -> None:
        """Wait for the others.

        Raises:
            Pause: another call waits for an answer; this one has no question of its own.
        """
        if needed_yes:
            self._allowed.add(call_id)
        self._missing.discard(call_id)
        self._look()
        await (self._open if needed_yes else self._open_to_all).wait()
        if self._questions:
            raise Pause(())

    def end(self, call_id: str, asked: Iterable[str] = ()) -> None:
        """End this call; `asked` are the questions that it waits for."""
        self._questions.update(asked)
        self._missing.discard(call_id)
        self._allowed.discard(call_id)
        self._look()

    def _look(self) -> None:
        if not self._missing:
            self._open.set()
            if self._questions or not self._allowed:
                self._open_to_all.set()
