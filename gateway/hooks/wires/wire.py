"""The connection to a hook of any kind: one call, one answer.

A wire speaks JSON-RPC 2.0. The method is the event's name, `params` are its fields, and `meta` (a member beside
`params`, which a plain JSON-RPC peer may ignore) describes the call itself. The result is null, changed fields, or an
outcome as plain data. Requests go both ways: a hook sends requests to the gateway on the same wire.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol

import anyio
import msgspec

from gateway.errors import HookError
from gateway.events import Question, outcome_from
from gateway.events.outcomes import is_decision
from gateway.worker.protocol import CallMeta

# verb ("send", "store.get"), its parameters, and the id of the event that the hook handles ("" if none).
Capability = Callable[[str, dict[str, Any], str], Awaitable[Any]]

MAX_ANSWER_BYTES = 4 << 20  # of a hook that runs elsewhere

# raised: the hook raised · timeout: it was over its time · died: its process or connection ended ·
# killed: another process killed its process ·
# garbled: its output is not an answer · refused: the wire did not take the call
# orphaned: the fork server ended, and its process with it, which may not be its fault
FailureKind = Literal["raised", "timeout", "died", "killed", "garbled", "refused", "orphaned", "untrusted", "short"]


class BagDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The changes that a call made to a bag; a delta, so that concurrent hooks do not undo each other's changes."""

    put: dict[str, Any] = {}
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.gone)

    def apply_to(self, bag: dict[str, Any]) -> None:
        bag.update(self.put)
        for key in self.gone:
            bag.pop(key, None)


NO_CHANGE = BagDelta()


class HookAnswer(msgspec.Struct, frozen=True):
    """The result of one call."""

    result: Any = None  # what the hook returned or raised as its outcome, as plain data
    changed: dict[str, Any] = {}  # writable fields with a new value
    ask: Question | None = None  # the hook needs a person's answer first; nothing else of this answer counts
    refused: tuple[str, ...] = ()  # read-only fields that the hook changed: warned about, not applied
    turn_bag: BagDelta = NO_CHANGE
    session_bag: BagDelta = NO_CHANGE


class HookFailed(HookError):
    """The failure of one call, or of the hook as a whole; `kind` names the kind of failure, `traceback` the place."""

    def __init__(self, message: str, *, kind: FailureKind, traceback: str = "") -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.traceback = traceback


def answer_of(result: Any, who: str = "") -> HookAnswer:
    """Return the answer in a plain result. Raises HookFailed if the result has no meaning; `who` starts the text."""
    try:
        outcome = outcome_from(result)
    except (TypeError, ValueError) as error:
        raise HookFailed(f"{who}{error}", kind="garbled") from None
    return HookAnswer(ask=outcome) if isinstance(outcome, Question) else HookAnswer(result=result)


def unused_part_of(answer: HookAnswer) -> HookAnswer:
    """Return the decision in an observer's answer, which has no effect but a remark; drop the rest."""
    return answer if is_decision(answer.result) or answer.ask is not None else HookAnswer()


class Disconnection(msgspec.Struct, eq=False):
    """The end of a wire, with its reason. Any number of tasks may wait for the end."""

    _event: anyio.Event = msgspec.field(default_factory=anyio.Event)
    reason: str = ""
    is_orphaned: bool = False  # the wire ended together with the fork server

    def __bool__(self) -> bool:
        return self._event.is_set()

    def tell(self, reason: str, is_orphaned: bool = False) -> None:
        """Set the reason of the end; the first reason is kept."""
        if not self._event.is_set():
            self.reason, self.is_orphaned = reason, is_orphaned
            self._event.set()

    async def wait(self) -> str:
        await self._event.wait()
        return self.reason


class Wire(Protocol):
    """The gateway's end of the connection to one hook."""

    @property
    def gone(self) -> Disconnection: ...

    async def call(self, name: str, fields: bytes | Mapping[str, Any], meta: CallMeta, timeout: float) -> HookAnswer:
        """Call the hook for one event; `fields` as bytes are JSON, encoded once for all hooks.

        Raises:
            HookFailed: the hook raised an error, exceeded its time, died, or gave no valid answer.
        """

    async def stop(self, grace: float) -> None:
        """Let the hook finish its work for at most `grace` seconds; afterwards no process of the hook is left."""
