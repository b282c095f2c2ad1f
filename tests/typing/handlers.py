"""A type checker's knowledge of a handler's context. Nothing here runs: `./x check types` reads it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_type

from gateway.hooks import Deny, HookRegistry, Subscription, is_yes

if TYPE_CHECKING:
    from gateway.hooks.contexts import AgentEnd, Command, Context, MessageReceived, ToolBefore


def guard(event_type: str, context: "ToolBefore") -> Deny | None:
    assert_type(context["tool"], str)
    assert_type(context["args"], dict[str, Any])
    assert_type(context["user_id"], str | None)
    assert_type(context["time"], float)
    assert_type(context.options, Mapping[str, Any])
    context["args"] = {"command": "ls"}
    context["tool"] = 3  # type: ignore[call-overload]
    context["call_id"] = "another"  # type: ignore[call-overload]
    context["tol"]  # type: ignore[call-overload]
    return None if is_yes(context.ask("May I?", name="approval")) else Deny("no")


async def note(event_type: str, context: "MessageReceived") -> None:
    context.session["seen"] = context.session.get("seen", 0) + 1
    await context.gateway.store.set("last", context["text"])
    await context.gateway.send("home", context["text"])
    context.gateway.shout("x")  # type: ignore[attr-defined]


def ends(context: "AgentEnd") -> dict[str, str]:
    return {"response_full": context["response_full"].upper()}


def answers(context: "Command") -> None:
    context["result"] = None
    context["raw_args"] = ""  # type: ignore[call-overload]


def free(event_type: str, context: "Context") -> None:
    context["anything"] = context["else"]


def registers(hooks: HookRegistry) -> None:
    assert_type(hooks.on("tool:before", print), Subscription)
    assert_type(hooks.watch("tool:*", print), Subscription)
    assert_type(hooks.add(hooks), Subscription)
