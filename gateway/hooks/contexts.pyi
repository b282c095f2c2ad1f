"""What a handler is given, for type checkers alone: nothing of this is there at run time. `./x reference` writes it.

    if TYPE_CHECKING:
        from gateway.hooks.contexts import ToolBefore

    def handle(event_type: str, context: "ToolBefore") -> None: ...

Each event of the catalogue has a class, with its fields, which of them may be written, and the type of each.
"""

# mypy: disable-error-code="override"
# An event is a dictionary that has these fields and no others.

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Never, overload

from gateway.events import Event
from gateway.worker.capabilities import HookCapabilities

class Context(Event):
    """An event that has any fields."""

    options: Mapping[str, Any]
    gateway: HookCapabilities
    data: Path

class GatewayStartup(Context):
    """`gateway:startup`: The gateway is up and its platforms are being served."""

    @overload
    def __getitem__(self, field: Literal["platforms"], /) -> list[str]: ...
    @overload
    def __getitem__(self, field: Literal["id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class JobDue(Context):
    """`job:due`: A job is due, and begins."""

    @overload
    def __getitem__(self, field: Literal["job", "maker", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class JobDone(Context):
    """`job:done`: A job that was due has ended well."""

    @overload
    def __getitem__(self, field: Literal["job", "maker", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class JobFailed(Context):
    """`job:failed`: A job that was due has failed, or was stopped."""

    @overload
    def __getitem__(self, field: Literal["job", "maker", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class JobSkipped(Context):
    """`job:skipped`: A job that was due was not allowed to run."""

    @overload
    def __getitem__(self, field: Literal["job", "maker", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class JobMissed(Context):
    """`job:missed`: Times of a job passed while the gateway was not there."""

    @overload
    def __getitem__(self, field: Literal["job", "maker", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class GatewayShutdown(Context):
    """`gateway:shutdown`: The gateway begins to stop."""

    @overload
    def __getitem__(self, field: Literal["reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class PlatformUp(Context):
    """`platform:up`: A chat network can be reached."""

    @overload
    def __getitem__(self, field: Literal["platform", "account", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class PlatformDown(Context):
    """`platform:down`: A chat network cannot be reached any more."""

    @overload
    def __getitem__(self, field: Literal["platform", "account", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class PlatformUnreadable(Context):
    """`platform:unreadable`: A chat network sent something that could not be read, and was passed over. At most once a minute a network."""

    @overload
    def __getitem__(self, field: Literal["platform", "account", "kind", "reason", "file", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class HookLoaded(Context):
    """`hook:loaded`: A hook has been loaded or reloaded."""

    @overload
    def __getitem__(self, field: Literal["hook", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class HookFailed(Context):
    """`hook:failed`: A hook could not be loaded, or a call of it failed."""

    @overload
    def __getitem__(self, field: Literal["hook", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class HookTripped(Context):
    """`hook:tripped`: A hook failed so often that it is left alone for a while."""

    @overload
    def __getitem__(self, field: Literal["hook", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class MessageReceived(Context):
    """`message:received`: A person who may speak here wrote something. Once for every message, edit, button and file."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "account",
            "user_name",
            "chat_id",
            "chat_name",
            "chat_type",
            "thread_id",
            "message_id",
            "session_key",
            "text",
            "text_before",
            "reply_to",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["attachments", "parts", "heard"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["sent_at", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["extra"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["text"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["heard"], value: list[dict[str, Any]], /) -> None: ...

class AudioBefore(Context):
    """`audio:before`: What somebody said is about to be made into words, before its turn begins. Deny leaves it a file."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "account",
            "chat_id",
            "chat_type",
            "thread_id",
            "role",
            "message_id",
            "session_key",
            "language",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "result", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["file"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["language"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: str | None, /) -> None: ...

class AudioAfter(Context):
    """`audio:after`: What somebody said was made into words, or could not be."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "account",
            "chat_id",
            "chat_type",
            "thread_id",
            "role",
            "message_id",
            "session_key",
            "text",
            "error",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["file"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["duration", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["text"], value: str, /) -> None: ...

class MessageSending(Context):
    """`message:sending`: Something is about to be said. An interceptor here switches streaming off."""

    @overload
    def __getitem__(
        self, field: Literal["platform", "account", "chat_id", "thread_id", "session_id", "role", "text", "id"], /
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["attachments"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["text"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["attachments"], value: list[dict[str, Any]], /) -> None: ...

class MessageSent(Context):
    """`message:sent`: The chat network took it."""

    @overload
    def __getitem__(
        self, field: Literal["platform", "account", "chat_id", "thread_id", "session_id", "role", "text", "id"], /
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["attachments"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["message_ids"], /) -> list[str]: ...
    @overload
    def __getitem__(self, field: Literal["attempts"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class MessageFailed(Context):
    """`message:failed`: It could not be delivered, for good."""

    @overload
    def __getitem__(
        self,
        field: Literal["platform", "account", "chat_id", "thread_id", "session_id", "role", "text", "error", "id"],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["attachments"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["attempts"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class ReactionAdded(Context):
    """`reaction:added`: A person put a reaction on a message."""

    @overload
    def __getitem__(
        self, field: Literal["platform", "account", "chat_id", "role", "message_id", "reaction", "id"], /
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class ReactionRemoved(Context):
    """`reaction:removed`: A person took a reaction back."""

    @overload
    def __getitem__(
        self, field: Literal["platform", "account", "chat_id", "role", "message_id", "reaction", "id"], /
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class BudgetWarning(Context):
    """`budget:warning`: A budget is used to 80 %: once in its day or month."""

    @overload
    def __getitem__(self, field: Literal["person", "budget", "window", "period", "unit", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["used", "limit", "held", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class BudgetExceeded(Context):
    """`budget:exceeded`: A model is about to be called though a budget is used up. Deny refuses it in other words."""

    @overload
    def __getitem__(self, field: Literal["person", "budget", "window", "period", "unit", "text", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["used", "limit", "held", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["allowed", "resumed"], /) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __setitem__(self, field: Literal["allowed"], value: bool, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["text"], value: str, /) -> None: ...

class AccessDenied(Context):
    """`access:denied`: Somebody unknown was turned away."""

    @overload
    def __getitem__(self, field: Literal["platform", "account", "chat_id", "role", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class AccessPaired(Context):
    """`access:paired`: Somebody was let in by a pairing code."""

    @overload
    def __getitem__(self, field: Literal["platform", "account", "chat_id", "role", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class PersonForgotten(Context):
    """`person:forgotten`: All that was held of somebody is gone. A hook that keeps something of people removes what it has of this one."""

    @overload
    def __getitem__(self, field: Literal["platform", "pseudonym", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class SessionStart(Context):
    """`session:start`: A conversation begins."""

    @overload
    def __getitem__(self, field: Literal["platform", "session_id", "session_key", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class SessionEnd(Context):
    """`session:end`: A conversation is over, by command, by time or by shutdown."""

    @overload
    def __getitem__(self, field: Literal["platform", "session_id", "session_key", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "new_session_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class SessionReset(Context):
    """`session:reset`: A conversation begins anew in the same place."""

    @overload
    def __getitem__(self, field: Literal["platform", "session_id", "session_key", "reason", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "new_session_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class SessionCompress(Context):
    """`session:compress`: An overlong conversation was summarised."""

    @overload
    def __getitem__(
        self, field: Literal["platform", "session_id", "session_key", "old_session_id", "id"], /
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["in_place", "resumed"], /) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["compression_count"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class Command(Context):
    """`command:*`: A command is about to run, while a turn runs too."""

    @overload
    def __getitem__(
        self,
        field: Literal["platform", "command", "raw_command", "args", "raw_args", "session_id", "session_key", "id"],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "result", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["command", "args"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: str | None, /) -> None: ...

class Schedule(Context):
    """`schedule:*`: A hook's own `schedule:` line is due. The hook's name stands after the colon."""

    @overload
    def __getitem__(self, field: Literal["due", "late_by", "time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class Webhook(Context):
    """`webhook:*`: Somebody outside called `/webhooks/NAME`, and showed that they may. The name stands after the colon."""

    @overload
    def __getitem__(self, field: Literal["webhook", "kind", "delivery_id", "text", "role", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["headers"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["body"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class AgentInit(Context):
    """`agent:init`: An agent is there: once for each agent while the gateway runs, before its first turn."""

    @overload
    def __getitem__(self, field: Literal["agent", "kind", "role", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class AgentStart(Context):
    """`agent:start`: A turn begins."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "chat_id",
            "thread_id",
            "chat_type",
            "session_id",
            "message",
            "message_full",
            "turn_id",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_name",
            "message_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["messages"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["context"], /) -> list[str]: ...
    @overload
    def __getitem__(self, field: Literal["config"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["message_full"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["messages"], value: list[dict[str, Any]], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["context"], value: list[str], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["config"], value: dict[str, Any], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...

class AgentStep(Context):
    """`agent:step`: The model wanted tools, and they have run."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "session_id",
            "turn_id",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["iteration"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["tool_names"], /) -> list[str]: ...
    @overload
    def __getitem__(self, field: Literal["tools"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Never, value: Never, /) -> None: ...

class AgentEnd(Context):
    """`agent:end`: The turn is over, however it ended. Retry begins a new turn with the message."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "platform",
            "chat_id",
            "thread_id",
            "chat_type",
            "session_id",
            "message",
            "message_full",
            "response",
            "response_full",
            "stop",
            "hook_ended",
            "model",
            "turn_id",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_name",
            "message_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["usage"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["completed", "interrupted", "resumed"], /) -> bool: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __setitem__(self, field: Literal["response_full"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...

class LlmBefore(Context):
    """`llm:before`: The model is about to be called."""

    @overload
    def __getitem__(self, field: Literal["messages", "tools"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(
        self,
        field: Literal[
            "system",
            "model",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["hop", "tokens"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["messages", "tools"], value: list[dict[str, Any]], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["system", "model"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...

class LlmChunk(Context):
    """`llm:chunk`: A piece of the reply streams in."""

    @overload
    def __getitem__(self, field: Literal["chunk", "user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(
        self,
        field: Literal[
            "text",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["index", "hop"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["chunk"], value: str | None, /) -> None: ...

class LlmAfter(Context):
    """`llm:after`: The model answered or failed. Retry discards the answer and calls again."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "content",
            "stop",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["tool_calls"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["error", "usage"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["hop"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["content"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["tool_calls"], value: list[dict[str, Any]], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...

class ToolsBefore(Context):
    """`tools:before`: A batch of tools is about to run. Deny gives each call an error result."""

    @overload
    def __getitem__(self, field: Literal["calls", "tools"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["hop"], /) -> int: ...
    @overload
    def __getitem__(
        self,
        field: Literal[
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["calls", "tools"], value: list[dict[str, Any]], /) -> None: ...

class ToolsAfter(Context):
    """`tools:after`: The batch has run."""

    @overload
    def __getitem__(self, field: Literal["results"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["hop"], /) -> int: ...
    @overload
    def __getitem__(
        self,
        field: Literal[
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["results"], value: list[dict[str, Any]], /) -> None: ...

class ToolBefore(Context):
    """`tool:before`: One tool is about to run."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "tool",
            "call_id",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["args"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["hop"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["tool"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["args"], value: dict[str, Any], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...

class ToolAfter(Context):
    """`tool:after`: One tool has run, failed, or was denied. Deny withholds what it gave."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "tool",
            "call_id",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["args"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["parts"], /) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, field: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["duration"], /) -> float | None: ...
    @overload
    def __getitem__(self, field: Literal["denied", "user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["hop"], /) -> int: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["parts"], value: list[dict[str, Any]], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...

class MessageAdd(Context):
    """`message:add`: A message is about to join the conversation. Deny puts a placeholder in its place."""

    @overload
    def __getitem__(self, field: Literal["message"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(
        self,
        field: Literal[
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["message"], value: dict[str, Any], /) -> None: ...

class HandoffBefore(Context):
    """`handoff:before`: Another agent is about to take over (transfer) or to be asked (call)."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "kind",
            "source",
            "target",
            "reason",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["input", "result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["target"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["input", "result"], value: Any, /) -> None: ...

class HandoffAfter(Context):
    """`handoff:after`: The other agent is done."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "kind",
            "source",
            "target",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...

class SkillBefore(Context):
    """`skill:before`: A skill is about to be loaded or unloaded."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "action",
            "skill",
            "version",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["result", "user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["skill", "version"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: str | None, /) -> None: ...

class SkillAfter(Context):
    """`skill:after`: A skill has been loaded or unloaded."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "action",
            "skill",
            "version",
            "content",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["tools"], /) -> list[str]: ...
    @overload
    def __getitem__(self, field: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["content"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...

class NodeBefore(Context):
    """`node:before`: A part of the turn is entered."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "node",
            "node_type",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["state"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["state"], value: dict[str, Any], /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...

class NodeAfter(Context):
    """`node:after`: A part of the turn is left."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "node",
            "node_type",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["result"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["error"], /) -> dict[str, Any] | None: ...
    @overload
    def __getitem__(self, field: Literal["state"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["result"], value: Any, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["error"], value: dict[str, Any] | None, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["state"], value: dict[str, Any], /) -> None: ...

class InterruptBefore(Context):
    """`interrupt:before`: The person is about to be asked."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "name",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["value"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["value"], value: Any, /) -> None: ...

class InterruptAfter(Context):
    """`interrupt:after`: The person answered."""

    @overload
    def __getitem__(
        self,
        field: Literal[
            "name",
            "turn_id",
            "platform",
            "account",
            "user_name",
            "person",
            "scope",
            "role",
            "chat_id",
            "chat_name",
            "thread_id",
            "chat_type",
            "message_id",
            "session_id",
            "session_key",
            "agent",
            "id",
        ],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, field: Literal["value", "response"], /) -> Any: ...
    @overload
    def __getitem__(self, field: Literal["user_id", "cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    def __setitem__(self, field: Literal["response"], value: Any, /) -> None: ...

class ModelCreate(Context):
    """`model:create`: A model client is about to be made. `result` is a client to use instead, or a function that makes one."""

    @overload
    def __getitem__(self, field: Literal["llm_id", "provider", "model", "id"], /) -> str: ...
    @overload
    def __getitem__(self, field: Literal["kwargs"], /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, field: Literal["time"], /) -> float: ...
    @overload
    def __getitem__(self, field: Literal["cause"], /) -> str | None: ...
    @overload
    def __getitem__(self, field: Literal["resumed"], /) -> bool: ...
    @overload
    def __setitem__(self, field: Literal["model"], value: str, /) -> None: ...
    @overload
    def __setitem__(self, field: Literal["kwargs"], value: dict[str, Any], /) -> None: ...
