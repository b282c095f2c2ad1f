"""The class `AIAgent`: it runs our agent, with the model and the tools of the gateway's configuration."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from gateway.hermes.modules import AGENT_SESSIONS
from gateway.hermes.shim.gateway_calls import ask_gateway, warn_once
from gateway.hermes.shim.placeholders import PatchWarningType

ANSWER_TIMEOUT = 3600.0
POSITIONAL_ARGUMENTS = (
    "base_url",
    "api_key",
    "provider",
    "api_mode",
    "acp_command",
    "acp_args",
    "command",
    "args",
    "model",
)
IGNORED_ARGUMENTS = frozenset(
    {"base_url", "api_key", "provider", "api_mode", "model", "credential_pool", "command", "args"}
)


class AIAgent(metaclass=PatchWarningType):
    """One conversation with the gateway's agent.

    It takes all arguments of Hermes's, but only `ephemeral_system_prompt` and `session_id` have an effect. Model,
    endpoint, tools and limits are those of the gateway.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        every = {**dict(zip(POSITIONAL_ARGUMENTS, args, strict=False)), **kwargs}
        given = {name: value for name, value in every.items() if value is not None}
        self.model = str(given.get("model") or "")
        self.session_id = str(given.get("session_id") or uuid.uuid4().hex[:12])
        self.platform = given.get("platform")
        self.ephemeral_system_prompt = given.get("ephemeral_system_prompt")
        unused = sorted(
            given.keys() - IGNORED_ARGUMENTS - {"session_id", "platform", "ephemeral_system_prompt", "quiet_mode"}
        )
        if unused:
            warn_once(f"AIAgent: {', '.join(unused)}: not used; the gateway's own agent answers, as it is configured")

    def run_conversation(
        self,
        user_message: str,
        system_message: str | None = None,
        conversation_history: Sequence[dict[str, Any]] | None = None,
        task_id: str | None = None,  # noqa: ARG002 - Hermes's signature
        stream_callback: Callable[[str], Any] | None = None,
        **_: Any,
    ) -> dict[str, Any]:
        """Wait for the answer, and return it; no error is raised, but returned under `error`."""
        past = list(conversation_history or ())
        told = [self.ephemeral_system_prompt, system_message, _as_text(past), user_message]
        text = "\n\n".join(str(part) for part in told if part)
        text = f" {text}" if text.startswith(("/", "!")) else text  # so it is not a command, but text for the model
        try:
            done = ask_gateway("submit", text=text, session=AGENT_SESSIONS + self.session_id, wait=ANSWER_TIMEOUT)
        except RuntimeError as refused:
            done = {"reply": "", "status": "failed", "error": str(refused)}
        reply, is_done = str(done["reply"]), done["status"] in ("ok", "ended")
        if reply and stream_callback:
            stream_callback(reply)
        spoken = [{"role": "user", "content": user_message}, {"role": "assistant", "content": reply}]
        return {
            "final_response": reply,
            "messages": [*past, *spoken],
            "api_calls": 1,
            "completed": is_done,
            "failed": not is_done,
            "partial": False,
            "interrupted": done["status"] == "interrupted",
            "error": done["error"] or (None if is_done else f"the turn ended as {done['status']}"),
            "model": self.model,
        }

    def chat(self, message: str, stream_callback: Callable[[str], Any] | None = None) -> str:
        """Return the answer alone. Raises RuntimeError if it fails."""
        done = self.run_conversation(message, stream_callback=stream_callback)
        if done["failed"]:
            raise RuntimeError(str(done["error"]))
        return str(done["final_response"])

    def interrupt(self, message: str | None = None) -> None:
        """Do nothing: a call waits for the whole answer."""

    def close(self) -> None:
        """Do nothing: no resource is open."""


def _as_text(history: Sequence[dict[str, Any]]) -> str:
    lines = [f"{one.get('role', 'user')}: {one['content']}" for one in history if isinstance(one.get("content"), str)]
    return "\n".join(["Earlier messages:", *lines]) if lines else ""
