"""The one table of plugins' hook names: the event of ours at which each is called, its arguments, and its answer.

`HERMES_HOOKS` has the names with a counterpart here, `UNSUPPORTED_HOOKS` those without; a name in neither does not
exist in Hermes. The answer of an observer is not read; a hook that decides has `apply_results`, and a guard denies when
it fails.
"""

from collections.abc import Callable, Mapping, MutableSet, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from gateway.events import Event
from gateway.hermes.plugin import arguments, results

# The parameters: the event, the callbacks' answers, and the permanent approvals of people.
ApplyResults: TypeAlias = Callable[[Event, Sequence[Any], MutableSet[str]], Any]

REGISTERS_NOTHING = "it registers nothing, so nothing here calls it"
NO_NETWORK = (
    "the network that it registers is not served: an adapter of Hermes uses a class of Hermes's own process, "
    "says nowhere how far it has read, and sends without a name to send by again; docs/adapters.md in the sources "
    "shows how one is made here"
)
TELEMETRY_SCHEMA = "hermes.observer.v1"


class HermesHook(msgspec.Struct, frozen=True):
    """One hook name.

    `build_arguments` returns None if the hook does not fire; `notes` are earlier events that it needs.
    """

    name: str
    events: tuple[str, ...]
    doc: str
    build_arguments: arguments.BuildArguments
    apply_results: ApplyResults | None = None
    guards: bool = False
    order: float = 0
    notes: tuple[str, ...] = ()
    build_named: arguments.BuildArguments | None = None  # further arguments, for callbacks that name them
    rewords: bool = False  # its answer changes text for people
    is_loose: bool = False  # its arguments are not settled in Hermes: those that we lack are None

    @property
    def decides(self) -> bool:
        return self.apply_results is not None


_TURN = ("agent:start",)

_HOOKS = (
    HermesHook(
        "pre_tool_call",
        ("tool:before",),
        "block, approve (asks the person) or modify; block beats approve",
        arguments.build_pre_tool_args,
        results.apply_tool_decision,
        True,
    ),
    HermesHook(
        "post_tool_call",
        ("tool:after",),
        "a tool has run, failed or was not allowed",
        arguments.build_post_tool_args,
        order=1,
    ),
    HermesHook(
        "transform_tool_result",
        ("tool:after",),
        "the first text is the result",
        arguments.build_tool_result_args,
        results.apply_tool_result,
        True,
        order=2,
    ),
    HermesHook(
        "transform_terminal_output",
        ("tool:after",),
        "the first text is the output of the shell",
        arguments.build_terminal_args,
        results.apply_terminal_output,
        True,
        build_named=arguments.build_terminal_names,
    ),
    HermesHook(
        "transform_llm_output",
        ("agent:end",),
        "the first text is the reply; nothing of the answer is shown before",
        arguments.build_output_args,
        results.apply_reply,
        build_named=arguments.build_output_names,
        rewords=True,
        notes=_TURN,
    ),
    HermesHook(
        "pre_llm_call",
        ("agent:start",),
        "context, added to the person's message for this turn's calls alone",
        arguments.build_pre_llm_args,
        results.apply_context,
        build_named=arguments.build_pre_llm_names,
    ),
    HermesHook(
        "post_llm_call",
        ("agent:end",),
        "the turn has its reply; a callback that names `usage` or `cost` gets them",
        arguments.build_post_llm_args,
        build_named=arguments.build_cost_args,
        order=1,
        notes=(*_TURN, "message:add"),
    ),
    HermesHook(
        "pre_verify",
        ("agent:end",),
        "continue: the model goes on, three times at most; when files were changed",
        arguments.build_verify_args,
        results.apply_verify,
        order=2,
        notes=(*_TURN, "tool:after"),
    ),
    HermesHook(
        "pre_api_request",
        ("llm:before",),
        "the model is called",
        arguments.build_pre_request_args,
        build_named=arguments.build_pre_request_names,
        notes=(*_TURN, "message:add"),
    ),
    HermesHook(
        "post_api_request",
        ("llm:after",),
        "the model answered",
        arguments.build_post_request_args,
        build_named=arguments.build_post_request_names,
        notes=(*_TURN, "llm:before"),
    ),
    HermesHook(
        "api_request_error",
        ("llm:after",),
        "the model failed",
        arguments.build_request_error_args,
        notes=(*_TURN, "llm:before"),
    ),
    HermesHook(
        "on_session_start",
        ("agent:start",),
        "the first turn of a session",
        arguments.build_session_start_args,
        order=-1,
    ),
    HermesHook(
        "on_session_end",
        ("agent:end",),
        "a turn is over, whatever its name says",
        arguments.build_turn_end_args,
        build_named=arguments.build_turn_end_names,
        order=3,
        notes=_TURN,
    ),
    HermesHook("on_session_finalize", ("session:end",), "a session is over", arguments.build_finalize_args),
    HermesHook("on_session_reset", ("session:reset",), "a session took another's place", arguments.build_reset_args),
    HermesHook(
        "subagent_start",
        ("handoff:before",),
        "another agent gets work; its `child_session_id` is the `session_id` of its events",
        arguments.build_subagent_start_args,
    ),
    HermesHook(
        "subagent_stop",
        ("handoff:after",),
        "it is done",
        arguments.build_subagent_stop_args,
        build_named=arguments.build_subagent_stop_names,
        notes=("handoff:before",),
    ),
    HermesHook(
        "pre_gateway_dispatch",
        ("message:received",),
        "skip, rewrite or allow; after the person was authorized, not before",
        arguments.build_dispatch_args,
        results.apply_dispatch,
    ),
    HermesHook(
        "post_gateway_admission",
        ("message:received",),
        "handled: the plugin has dealt with the message, and may say a `reply`",
        arguments.build_admission_args,
        results.apply_message_answer,
        order=1,
    ),
    HermesHook(
        "on_human_input_request", ("interrupt:before",), "a person is waited for", arguments.build_person_asked_args
    ),
    HermesHook(
        "on_human_input_resolved", ("interrupt:after",), "the wait is over", arguments.build_person_answered_args
    ),
    HermesHook(
        "pre_approval_request", ("interrupt:before",), "the gateway asks the person", arguments.build_approval_args
    ),
    HermesHook(
        "post_approval_response", ("interrupt:after",), "the person answered", arguments.build_approval_response_args
    ),
    HermesHook(
        "on_stream_start",
        ("llm:chunk",),
        "the first piece of an answer",
        arguments.build_stream_start_args,
        is_loose=True,
    ),
    HermesHook("on_stream_delta", ("llm:chunk",), "a piece of an answer", arguments.build_stream_args, is_loose=True),
    HermesHook("on_stream_end", ("llm:after",), "the answer is whole", arguments.build_stream_end_args, is_loose=True),
    HermesHook(
        "on_interim_message",
        ("llm:after",),
        "what the model says while it wants tools",
        arguments.build_interim_args,
        is_loose=True,
    ),
    HermesHook(
        "on_skill_lifecycle",
        ("skill:after",),
        "a skill was loaded or unloaded",
        arguments.build_plain_args,
        is_loose=True,
    ),
    HermesHook(
        "agent_loop_stopped",
        ("agent:end",),
        "a turn was stopped",
        arguments.build_stopped_args,
        order=3,
        is_loose=True,
    ),
    HermesHook("pre_command", ("command:*",), "a command is about to run", arguments.build_command_args, is_loose=True),
    HermesHook(
        "gateway_platform_event",
        ("reaction:added", "reaction:removed", "platform:up", "platform:down"),
        "a reaction; a chat network came or went",
        arguments.build_platform_args,
        is_loose=True,
    ),
)

HERMES_HOOKS: Mapping[str, HermesHook] = MappingProxyType({row.name: row for row in _HOOKS})

UNSUPPORTED_HOOKS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "kanban_task_claimed",
                "kanban_task_completed",
                "kanban_task_blocked",
                "on_kanban_worker_spawned",
                "on_kanban_worker_exited",
                "on_kanban_worker_stale_claim",
                "on_kanban_task_updated",
                "on_kanban_dispatch_tick",
            ),
            "this gateway has no task board",
        ),
        "on_room_member_activity": "this gateway has no rooms",
        **dict.fromkeys(
            ("pre_transcription", "pre_tts_synthesis"),
            "use audio:before for voice notes; speech has already passed message:sending",
        ),
        **dict.fromkeys(("pre_auxiliary_call", "post_auxiliary_call"), "this gateway has no auxiliary models"),
        "transform_api_error_classification": "which errors of a model are tried again is fixed",
    }
)


def describe_unsupported(name: str) -> str:
    """Say why a callback under this name is never called."""
    return UNSUPPORTED_HOOKS.get(name) or "Hermes has no such hook either"
