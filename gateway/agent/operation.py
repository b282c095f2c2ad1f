"""The frame of every action of a turn: each is carried out between its two events.

Theory of operation. A call of the model, a batch of tools, one tool, a handoff, a skill, a question, the whole
invocation: each is an `Operation`, a class with the names of its two events, their fields, and the action in between.
`run_operation` is the one machine that carries all of them out:

    node:before            only if the operation is a part of the turn (`node_type`)
      <before>             its hooks change the fields, give the value (`result`), refuse with Deny or End, or fail it
        act                left out when one of them did
      <after>              its hooks see the value or the error, change either, or ask for another try
    node:after             the same once more, around all tries of it; `NodeVisit` is an operation itself

It keeps five promises, which no other module has to repeat:

Pairs. Whatever becomes of the operation or of the interceptors before it (an error, an outcome, a pause, a
cancellation), the event after it is fired exactly once for each time that the one before it was.

Errors are values. An `Exception` is put into `OperationResult.error`, the event after it shows it as the field `error`,
and hooks may remove or replace it. `conclude` decides if it is raised in the end.

Leaving is not an error. A pause, a cancellation and a refused step are a `BaseException`: the event after it is fired
on the way out, its hooks cannot change where we go, and all remaining events share `EXIT_GRACE` seconds, shielded from
the cancellation.

Tries. A Retry from the event after it runs the pair again, at most `RETRIES` times, as long as the turn's ending is
undecided.

Silence is cheap. For an event without a listener no fields are built, and no function is called.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar

import anyio
import msgspec

from gateway.agent.tools import ArgumentError
from gateway.agent.turn_state import Fields, TurnState
from gateway.errors import AgentError, ModelError
from gateway.events import Outcome, Pause, Retry
from gateway.events.outcomes import find_refusal, find_retry

log = logging.getLogger(__name__)

RETRIES = 5

Value = TypeVar("Value")

APOLOGIES: Mapping[str, str] = {
    "auth": "I could not reach my language model: it does not accept my API key. "
    "The person who runs me has to check it (`hermes-gateway doctor`).",
    "quota": "My language model's account has no credit left. The person who runs me has to solve that.",
    "rate": "My language model is getting too many requests just now. Please try again in a minute.",
    "overload": "My language model is overloaded just now. Please try again in a few minutes.",
    "context": "This conversation has become too long for my language model. Start a new one with /new.",
    "network": "I could not reach my language model. Please try again in a moment.",
    "timeout": "My language model took too long to answer. Please try again.",
    "filter": "My language model's provider refused to answer this.",
    "missing": "The language model that I am set to use was not found. "
    "The person who runs me has to check its name and its address (`hermes-gateway doctor`).",
    "request": "The language model refused the form of my request. The person who runs me finds it in the log.",
    "response": "My language model sent an answer that I could not read. Please try again.",
    "script": "My script has no answer to this.",
}
APOLOGY = "Something went wrong and I could not finish. Please try again; the person who runs me finds it in the log."


class OperationResult(msgspec.Struct):
    """The result of one try of an operation.

    before_event, after_event: the fields as the hooks left them; empty and None if no hook wants the event; the latter
    also if no hook can change it.

    outcome, after_outcome: the decision of the hooks at each of the two.

    is_from_hook: a hook gave the value, in place of the operation.

    exit_reason: `paused` or `interrupted`, while the operation is being left.
    """

    before_event: Fields = msgspec.field(default_factory=dict)
    value: Any = None
    error: Exception | None = None
    outcome: Outcome | None = None
    is_from_hook: bool = False
    exit_reason: str = ""
    after_event: Fields | None = None
    after_outcome: Outcome | None = None

    def left(self, name: str) -> Any:
        """Return the value as the hooks left it, in the field of this name."""
        return self.value if self.after_event is None else self.after_event.get(name)


@dataclass(slots=True)
class Operation(ABC, Generic[Value]):
    """A part of a turn between the events `before` and `after` (either may be empty).

    result_field: the field of the event after it that holds its value. node_type: the kind of node, if it is one: then
    `node:before` and `node:after` surround it, and the attribute `node_named_by` holds the node's name. ends_with_turn:
    a Retry of it comes too late once the turn's ending is decided.
    """

    state: TurnState
    before: ClassVar[str]
    after: ClassVar[str]
    result_field: ClassVar[str] = "result"
    node_type: ClassVar[Literal["call_llm", "tool_node", "call_agent", "load_skill", "interrupt"] | None] = None
    node_named_by: ClassVar[str] = "node_type"
    ends_with_turn: ClassVar[bool] = True

    def begin(self) -> None:
        """Prepare each try; it runs before the event."""

    @abstractmethod
    def before_fields(self) -> dict[str, Any]:
        """Return the fields of the event before it; hooks that fill in `result` give its value."""

    @abstractmethod
    async def act(self, event: Fields | None) -> Any:
        """Carry it out. `event` holds the fields as the hooks left them, or is None if no hook may change them."""

    def after_fields(self, _result: OperationResult) -> dict[str, Any]:
        """Return the fields of the event after it, beside `error`."""
        return {}

    async def when_prevented(self, result: OperationResult) -> None:
        """Clean up, in place of `act`, when a hook gave the value, refused the operation, or failed."""

    def take(self, result: OperationResult) -> None:
        """Take the result of each try, before a Retry of it is followed."""

    async def prepare_retry(self, retry: Retry) -> None:
        """Prepare the next try."""

    def conclude(self, result: OperationResult) -> Value:
        """Return the operation's value after its last try, as the hooks left it. Raises the error that they left."""
        self.state.end(result.outcome, self.before)
        self.state.end(result.after_outcome, self.after)
        if result.error is not None:
            raise result.error
        if (refusal := find_refusal(result.outcome)) is not None:
            return self.denied(refusal)
        return self.from_fields(result.left(self.result_field))

    def to_fields(self, value: Value) -> Any:
        """Convert the value for hooks of nodes."""
        return value

    def from_fields(self, left: Any) -> Value:
        """Convert the value that a hook left."""
        value: Value = left
        return value

    def denied(self, text: str) -> Value:
        """Return the value after a hook's refusal, with the hook's own words, if it has any."""
        raise AgentError(text)


@dataclass(slots=True)
class NodeVisit(Operation[Value]):
    """An operation as a part of the turn, with all its tries."""

    inner: Operation[Value]
    before = "node:before"
    after = "node:after"

    def before_fields(self) -> dict[str, Any]:
        return self._fields(None)

    async def act(self, event: Fields | None) -> Value:
        if event is not None:
            self.state.node_state = event.get("state", self.state.node_state)
        return await _run_tries(self.inner)

    def after_fields(self, result: OperationResult) -> dict[str, Any]:
        is_plain = result.value is None or result.is_from_hook
        return self._fields(result.value if is_plain else self.inner.to_fields(result.value))

    def take(self, result: OperationResult) -> None:
        if result.after_event is not None:
            self.state.node_state = result.after_event.get("state", self.state.node_state)

    def conclude(self, result: OperationResult) -> Value:
        if result.error is not None:
            raise result.error
        if self.state.end(result.outcome, self.before):
            return self.inner.denied("")
        if (refusal := find_refusal(result.outcome)) is not None:
            return self.inner.denied(refusal)
        value: Any = result.value
        left = result.left("result")
        if result.is_from_hook:
            return self.inner.from_fields(left)
        # A value that no hook touched stays as it is: its plain form would lose the parts that hooks do not
        # see.
        is_untouched = result.after_event is None or (value is not None and left == self.inner.to_fields(value))
        return value if is_untouched else self.inner.from_fields(left)

    def _fields(self, result: Any) -> dict[str, Any]:
        name = attrgetter(self.inner.node_named_by)(self.inner)
        node = {"node": name, "node_type": self.inner.node_type}
        return node | {"state": self.state.node_state, "result": result}


async def run_operation(operation: Operation[Value]) -> Value:
    """Carry out an operation between its events, and the events of its node around them. Returns its conclusion."""
    wants = operation.state.ports.wants
    if operation.node_type is not None and (wants("node:before") or wants("node:after")):
        operation = NodeVisit(operation.state, operation)
    return await _run_tries(operation)


async def _run_tries(operation: Operation[Value]) -> Value:
    for attempt in range(RETRIES + 1):
        operation.begin()
        result = await _run_between_events(operation)
        operation.take(result)
        retry = find_retry(result.after_outcome)
        if retry is None or (operation.ends_with_turn and operation.state.ending.finish is not None):
            break
        if attempt == RETRIES:
            log.warning("%s asked for another try %d times in a row; the last one counts", operation.after, RETRIES)
            break
        await operation.prepare_retry(retry)
        if retry.delay > 0:
            await anyio.sleep(retry.delay)
    return operation.conclude(result)


async def _run_between_events(operation: Operation[Any]) -> OperationResult:
    state, result = operation.state, OperationResult()
    wants = state.ports.wants
    try:
        is_decided = state.ports.decides(operation.before)
        event = await _fire_before(operation, result) if wants(operation.before) else None
        if result.is_from_hook or result.outcome or result.error:
            await operation.when_prevented(result)
        else:
            result.value = await operation.act(event if is_decided else None)
    except Exception as error:  # noqa: BLE001 - whatever a tool, a model or a hook raises, the event after it says so
        result.error = error
    except BaseException as leaving:
        result.exit_reason = "paused" if isinstance(leaving, Pause) else "interrupted"
        if operation.after and wants(operation.after):
            await state.fire_on_exit(operation.after, {"error": None, **operation.after_fields(result)})
        raise
    # Not within the try: an error or a pause of these hooks has no event of its own, and goes straight to the caller.
    if operation.after and wants(operation.after):
        shown = error_as_fields(result.error, state.ports.redact)
        fields = {"error": shown, **operation.after_fields(result)}
        event, result.after_outcome = await state.fire(operation.after, fields)
        if event is not fields:
            result.after_event, result.error = event, error_from_fields(event.get("error"), result.error, shown)
    return result


async def _fire_before(operation: Operation[Any], result: OperationResult) -> Fields:
    try:
        result.before_event, result.outcome = await operation.state.fire(operation.before, operation.before_fields())
    except Exception as error:  # noqa: BLE001 - a hook with `on_error: raise` makes the operation fail
        result.error = error
    if result.outcome is None and (given := result.before_event.get("result")) is not None:
        result.value, result.is_from_hook = given, True
    return result.before_event


def error_as_fields(error: BaseException | None, redact: Callable[[str], str] = str) -> dict[str, Any] | None:
    """Convert the error into a plain dict: `type`, `message`, and `kind` if it has one. Secrets are redacted."""
    if error is None:
        return None
    fields: dict[str, Any] = {"type": type(error).__name__, "message": redact(str(error)) or type(error).__name__}
    if isinstance(error, ModelError):
        fields["kind"] = error.kind
    elif isinstance(error, ArgumentError):
        fields |= {"kind": "arguments", "parameters": dict(error.parameters)}
    return fields


def error_from_fields(left: Any, error: Exception | None, shown: Mapping[str, Any] | None) -> Exception | None:
    """Return the error that hooks left: the same one, none, or another in its place, raised from the old one."""
    if left is None or left == shown:
        return None if left is None else error
    other: Exception
    if isinstance(left, Exception):
        other = left
    elif isinstance(left, Mapping):
        kind = left.get("kind")
        text = str(left.get("message") or left)
        other = ModelError(text, kind=str(kind)) if kind in APOLOGIES else AgentError(text)
    else:
        other = AgentError(str(left))
    other.__cause__ = error
    return other


def apologise(error: BaseException) -> str:
    """Return the words for the person: never the error's own text, which may hold private details."""
    return APOLOGIES.get(error.kind, APOLOGY) if isinstance(error, ModelError) else APOLOGY
