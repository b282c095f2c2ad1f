"""Before the tools of one answer act, all questions about them are answered.

Who says yes to `sh build.sh` has the file in mind as it is; a call beside it that writes the file must not run while
the question is open. So the calls of a batch that change something wait for each other: each comes to the gate when
nothing is left to be asked about it, and the gate opens when the last one has come or has ended another way. Did one of
them ask, then none goes through: the turn stops with all questions together, and runs again with all answers. What only
reads waits for nobody.

A sub-agent has batches of its own. What it asks comes when its batch runs, so there the turn as a whole counts
(`Ports.open_questions`): while one of its questions is open, nothing that changes something begins.
"""

from collections.abc import Iterable

import anyio

from gateway.events import Pause


class BatchGate:
    """Opens when every call of a batch has come to it, or has ended."""

    def __init__(self, calls: Iterable[str], questions: set[str]) -> None:
        self._missing = set(calls)
        self._questions = questions
        self._open = anyio.Event()

    def settle(self, call_id: str, asked: Iterable[str] = ()) -> None:
        """This call is past its questions, or has ended; `asked`: it waits for answers to these."""
        self._questions.update(asked)
        self._missing.discard(call_id)
        if not self._missing:
            self._open.set()

    async def pass_through(self, call_id: str) -> None:
        """Wait for the others.

        Raises:
            Pause: somebody is being asked something; this call has no question of its own.
        """
        self.settle(call_id)
        await self._open.wait()
        if self._questions:
            raise Pause(())
