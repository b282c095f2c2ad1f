"""What happens around the turns: the gateway itself, the chats, access, sessions, commands."""

from gateway.catalogue.fields import (
    CHAT,
    CHAT_TYPE,
    DENY,
    END,
    KEY,
    PLATFORM,
    REASON,
    SESSION,
    THREAD,
    USER,
    Point,
    reads,
    writes,
)

_HOOK = (reads("hook", "string", "the hook's folder, or the key it was registered with"), REASON)
_SESSION = (PLATFORM, USER, SESSION, KEY)
_ENDED = (*_SESSION, REASON, reads("new_session_id", "string?", "the conversation that took its place"))
_SEND = (
    PLATFORM,
    CHAT,
    THREAD,
    SESSION,
)
_ATTACHMENTS = ("attachments", "object[]", "files beside the text: kind, path, name, media_type, size")
_REACTION = (
    PLATFORM,
    USER,
    CHAT,
    reads("message_id", "string", "the message reacted to"),
    reads("reaction", "string", "the emoji or its name"),
)
_ACCESS = (PLATFORM, USER, CHAT, REASON)

OUTSIDE = (
    Point(
        "gateway:startup",
        "The gateway is up and its platforms are being served.",
        (reads("platforms", "string[]", "the platforms that are connected"),),
    ),
    Point("gateway:shutdown", "The gateway begins to stop.", (REASON,)),
    Point("platform:up", "A chat network can be reached.", (PLATFORM, REASON)),
    Point("platform:down", "A chat network cannot be reached any more.", (PLATFORM, REASON)),
    Point("hook:loaded", "A hook has been loaded or reloaded.", _HOOK),
    Point("hook:failed", "A hook could not be loaded, or a call of it failed.", _HOOK),
    Point("hook:tripped", "A hook failed so often that it is left alone for a while.", _HOOK),
    Point(
        "message:received",
        "A person who may speak here wrote something. Once for every message, edit, button and file.",
        (
            PLATFORM,
            USER,
            reads("user_name", "string", "how the person is called there"),
            CHAT,
            CHAT_TYPE,
            THREAD,
            reads("message_id", "string", "the network's own id"),
            KEY,
            writes("text", "string", "what was written"),
            reads(*_ATTACHMENTS),
        ),
        END | DENY,
    ),
    Point(
        "message:sending",
        "Something is about to be said. An interceptor here switches streaming off for that chat.",
        (*_SEND, writes("text", "string", "what will be said"), writes(*_ATTACHMENTS)),
        DENY,
    ),
    Point(
        "message:sent",
        "The chat network took it.",
        (
            *_SEND,
            reads("text", "string", "what was said"),
            reads(*_ATTACHMENTS),
            reads("message_ids", "string[]", "the network's ids, one for each part"),
            reads("attempts", "integer", "how many tries it took"),
        ),
    ),
    Point(
        "message:failed",
        "It could not be delivered, for good.",
        (
            *_SEND,
            reads("text", "string", "what should have been said"),
            reads(*_ATTACHMENTS),
            reads("attempts", "integer", "how many times it was tried"),
            reads("error", "string", "why it failed"),
        ),
    ),
    Point("reaction:added", "A person put a reaction on a message.", _REACTION),
    Point("reaction:removed", "A person took a reaction back.", _REACTION),
    Point("access:denied", "Somebody unknown was turned away.", _ACCESS),
    Point("access:paired", "Somebody was let in by a pairing code.", _ACCESS),
    Point("session:start", "A conversation begins.", _SESSION),
    Point("session:end", "A conversation is over, by command, by time or by shutdown.", _ENDED),
    Point("session:reset", "A conversation begins anew in the same place.", _ENDED),
    Point(
        "session:compress",
        "An overlong conversation was summarised.",
        (
            *_SESSION,
            reads("old_session_id", "string", "the conversation before, empty when it is the same"),
            reads("in_place", "boolean", "whether the session id stayed"),
            reads("compression_count", "integer", "how many times by now"),
        ),
    ),
    Point(
        "command:*",
        "A command is about to run, while a turn runs too.",
        (
            PLATFORM,
            USER,
            writes("command", "string", "the command's own name; another one runs instead, if the person may use it"),
            reads("raw_command", "string", "as typed, aliases included"),
            writes("args", "string", "what stands behind the command"),
            reads("raw_args", "string", "as typed"),
            SESSION,
            KEY,
            writes("result", "string?", "given here, it is the reply (empty: none) and the command does not run"),
        ),
        DENY,
    ),
    Point(
        "webhook:*",
        "An authenticated POST to /webhooks/<name>.",
        (
            reads("headers", "object", "by lower-case name; credentials left out"),
            reads("body", "any", "parsed when it is JSON, else text"),
            reads("query", "object", "the address's query"),
        ),
    ),
    Point(
        "schedule:*",
        "A hook's own `schedule:` line is due. The hook's name stands after the colon.",
        (
            reads("due", "number", "when it was due, in seconds since 1970"),
            reads("late_by", "number", "how many seconds ago that was"),
        ),
    ),
)
