"""The one table of the hook names that plugins know: at which event of ours each is called, with what, for what answer.

`TABLE` has the names with a counterpart here, `NEVER` those without; a name in neither is nobody's. Who observes is
told and not listened to; who decides has a `meant`, and what guards something denies when it fails.
"""

from collections.abc import Callable, Mapping, MutableSet, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from gateway.events.event import Event
from gateway.hooks.wires.process.plugin import meant, told

Told: TypeAlias = Callable[[Event], dict[str, Any] | None]
# The event, what came back of the callbacks, and what people have approved for good.
Meant: TypeAlias = Callable[[Event, Sequence[Any], MutableSet[str]], Any]

SCHEMA = "hermes.observer.v1"


@dataclass(frozen=True, slots=True)
class Row:
    """One name. `told` makes the arguments (None: it does not fire this time), `notes` are the events that it needs."""

    name: str
    events: tuple[str, ...]
    doc: str
    told: Told
    meant: Meant | None = None
    guards: bool = False
    order: float = 0
    notes: tuple[str, ...] = ()
    is_loose: bool = False  # its arguments are not settled in Hermes: what a callback asks for and we lack is None

    @property
    def decides(self) -> bool:
        return self.meant is not None


_TURN = ("agent:start",)

_ROWS = (
    Row(
        "pre_tool_call",
        ("tool:before",),
        "block, approve (asks the person) or modify; block beats approve",
        told.pre_tool,
        meant.judged,
        True,
    ),
    Row("post_tool_call", ("tool:after",), "a tool has run, failed or was not allowed", told.post_tool, order=1),
    Row(
        "transform_tool_result",
        ("tool:after",),
        "the first text is the result",
        told.tool_result,
        meant.result,
        order=2,
    ),
    Row(
        "transform_terminal_output",
        ("tool:after",),
        "the first text is the output of the shell",
        told.terminal,
        meant.terminal,
    ),
    Row(
        "transform_llm_output",
        ("agent:end",),
        "the first text is the reply",
        told.output,
        meant.reply,
        notes=_TURN,
    ),
    Row(
        "pre_llm_call",
        ("agent:start",),
        "context, added to the person's message for this turn's calls alone",
        told.pre_llm,
        meant.context,
    ),
    Row(
        "post_llm_call",
        ("agent:end",),
        "the turn has its reply",
        told.post_llm,
        order=1,
        notes=(*_TURN, "message:add"),
    ),
    Row(
        "pre_verify",
        ("agent:end",),
        "continue: the model goes on, three times at most; when files were changed",
        told.verify,
        meant.goes_on,
        order=2,
        notes=(*_TURN, "tool:after"),
    ),
    Row("pre_api_request", ("llm:before",), "the model is called", told.pre_request, notes=(*_TURN, "message:add")),
    Row("post_api_request", ("llm:after",), "the model answered", told.post_request, notes=(*_TURN, "llm:before")),
    Row("api_request_error", ("llm:after",), "the model failed", told.request_error, notes=(*_TURN, "llm:before")),
    Row("on_session_start", ("agent:start",), "the first turn of a session", told.session_start, order=-1),
    Row(
        "on_session_end", ("agent:end",), "a turn is over, whatever its name says", told.turn_end, order=3, notes=_TURN
    ),
    Row("on_session_finalize", ("session:end",), "a session is over", told.finalize),
    Row("on_session_reset", ("session:reset",), "a session took another's place", told.reset),
    Row("subagent_start", ("handoff:before",), "another agent is asked", told.sub_start),
    Row("subagent_stop", ("handoff:after",), "it is done", told.sub_stop, notes=("handoff:before",)),
    Row(
        "pre_gateway_dispatch",
        ("message:received",),
        "skip, rewrite or allow; after the person was let in, not before",
        told.dispatch,
        meant.dispatched,
    ),
    Row("pre_approval_request", ("interrupt:before",), "the person is asked", told.approval),
    Row("post_approval_response", ("interrupt:after",), "the person answered", told.approved),
    Row("on_stream_start", ("llm:chunk",), "the first piece of an answer", told.stream_start, is_loose=True),
    Row("on_stream_delta", ("llm:chunk",), "a piece of an answer", told.stream, is_loose=True),
    Row("on_stream_end", ("llm:after",), "the answer is whole", told.stream_end, is_loose=True),
    Row("on_interim_message", ("llm:after",), "what the model says while it wants tools", told.interim, is_loose=True),
    Row("on_skill_lifecycle", ("skill:after",), "a skill was loaded or unloaded", told.plain, is_loose=True),
    Row("agent_loop_stopped", ("agent:end",), "the loop of model and tools ended", told.plain, order=3, is_loose=True),
    Row("pre_command", ("command:*",), "a command is about to run", told.plain, is_loose=True),
    Row(
        "gateway_platform_event",
        ("platform:up", "platform:down"),
        "a chat network came or went",
        told.platform,
        is_loose=True,
    ),
)

TABLE: Mapping[str, Row] = MappingProxyType({row.name: row for row in _ROWS})

_KANBAN = "there is no board of tasks here"
_ROOMS = "there are no rooms here"
_VOICE = "the gateway neither hears nor speaks"
_AUXILIARY = "there are no auxiliary models here"

NEVER: Mapping[str, str] = MappingProxyType(
    {
        "kanban_task_claimed": _KANBAN,
        "kanban_task_completed": _KANBAN,
        "kanban_task_blocked": _KANBAN,
        "on_kanban_worker_spawned": _KANBAN,
        "on_kanban_worker_exited": _KANBAN,
        "on_kanban_worker_stale_claim": _KANBAN,
        "on_kanban_task_updated": _KANBAN,
        "on_kanban_dispatch_tick": _KANBAN,
        "on_room_member_activity": _ROOMS,
        "pre_transcription": _VOICE,
        "pre_tts_synthesis": _VOICE,
        "pre_auxiliary_call": _AUXILIARY,
        "post_auxiliary_call": _AUXILIARY,
        "transform_api_error_classification": "which errors of a model are tried again is fixed",
    }
)


def why_never(name: str) -> str:
    """Why a callback under this name is never called."""
    return NEVER.get(name) or "Hermes has no such hook either"
