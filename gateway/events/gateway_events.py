"""The events around the turns: the gateway itself, the chats, access, sessions, commands."""

from gateway.events.fields import (
    ACCOUNT,
    CHAT,
    CHAT_NAME,
    CHAT_TYPE,
    DENY,
    END,
    MESSAGE_ID,
    PLATFORM,
    REASON,
    ROLE,
    SESSION,
    SESSION_KEY,
    THREAD,
    USER,
    EventField,
    make_event_spec,
    make_writable_field,
)

_HOOK = (EventField("hook", "string", "the hook's folder, or the key it was registered with"), REASON)
_SESSION = (PLATFORM, USER, SESSION, SESSION_KEY)
_ENDED = (*_SESSION, REASON, EventField("new_session_id", "string?", "the conversation that took its place"))
_SEND = (PLATFORM, ACCOUNT, CHAT, THREAD, SESSION, ROLE)
_ATTACHMENTS = ("attachments", "object[]", "files beside the text: kind, path, name, media_type, size, is_quoted")
_PARTS = "stickers, locations, contacts and polls, each with its kind; the text has words for them"
_HEARD = (
    "of a quiet chat: earlier messages there to other people, which the model gets first; each with message_id, "
    "user_id, user_name and text. You can shorten or rewrite it"
)
_REACTION = (
    PLATFORM,
    ACCOUNT,
    USER,
    CHAT,
    ROLE,
    EventField("message_id", "string", "the message reacted to"),
    EventField("reaction", "string", "the emoji or its name"),
)
_ACCESS = (PLATFORM, ACCOUNT, USER, CHAT, ROLE, REASON)

_AUDIO = (
    PLATFORM,
    ACCOUNT,
    USER,
    CHAT,
    CHAT_TYPE,
    THREAD,
    ROLE,
    MESSAGE_ID,
    SESSION_KEY,
    EventField("file", "object", "the audio: kind, path, name, media_type, size"),
)

_BUDGET = (
    EventField("person", "string", "who is charged with the call, as `platform:id`"),
    EventField("budget", "string", "which one: all, each_person ID, people ID or groups NAME"),
    EventField("window", "string", "the day or month, as 2026-01-31 or 2026-01"),
    EventField("period", "string", "day or month"),
    EventField("unit", "string", "tokens or money"),
    EventField("used", "number", "how much of it is used"),
    EventField("limit", "number", "how much may be used"),
    EventField("held", "number", "how much calls that run now may add; a call waits for them before it is refused"),
)

_JOB = (
    EventField("job", "string", "its name"),
    EventField("maker", "string", "the person who made it, as `platform:id`"),
    EventField("due", "number", "when it was due, in seconds since 1970"),
    EventField("late_by", "number", "by how many seconds it came later"),
    REASON,
)

GATEWAY_EVENTS = (
    make_event_spec(
        "gateway:startup",
        "The gateway is up and its platforms are being served.",
        EventField("platforms", "string[]", "the platforms that are connected"),
    ),
    make_event_spec("job:due", "A job is due, and begins.", *_JOB),
    make_event_spec("job:done", "A job that was due has ended well.", *_JOB),
    make_event_spec("job:failed", "A job that was due has failed, or was stopped.", *_JOB),
    make_event_spec("job:skipped", "A job that was due was not allowed to run.", *_JOB),
    make_event_spec("job:missed", "The gateway was not running when a job was due.", *_JOB),
    make_event_spec("gateway:shutdown", "The gateway begins to stop.", REASON),
    make_event_spec("platform:up", "A chat network can be reached.", PLATFORM, ACCOUNT, REASON),
    make_event_spec("platform:down", "A chat network can no longer be reached.", PLATFORM, ACCOUNT, REASON),
    make_event_spec(
        "platform:unreadable",
        "The gateway skipped something from a chat network that it could not read. At most once a minute a network.",
        PLATFORM,
        ACCOUNT,
        EventField("kind", "string", "what it was, by the network's own word"),
        REASON,
        EventField("file", "string", "where it is kept for a while, masked; empty: it could not be kept"),
    ),
    make_event_spec("hook:loaded", "A hook has been loaded or reloaded.", *_HOOK),
    make_event_spec("hook:failed", "A hook could not be loaded, or a call of it failed.", *_HOOK),
    make_event_spec("hook:tripped", "A hook failed so often that the gateway pauses it for a while.", *_HOOK),
    make_event_spec(
        "message:received",
        "An authorized person wrote something. Once for every message, edit, button and file.",
        PLATFORM,
        ACCOUNT,
        USER,
        EventField("user_name", "string", "how the person is called there"),
        CHAT,
        CHAT_NAME,
        CHAT_TYPE,
        THREAD,
        MESSAGE_ID,
        SESSION_KEY,
        make_writable_field("text", "string", "what was written"),
        EventField("text_before", "string", "of an edit: what was said before, as far as it is known; else empty"),
        EventField(*_ATTACHMENTS),
        EventField("parts", "object[]", _PARTS),
        EventField("reply_to", "string", "the message that it answers, by the network's own id, or empty"),
        EventField("sent_at", "number", "when it was written, in seconds since 1970; 0: the network does not say"),
        EventField("extra", "object", "what else the network says, such as chat_topic, reply_to_text and raw"),
        make_writable_field("heard", "object[]", _HEARD),
        outcomes=END | DENY,
    ),
    make_event_spec(
        "audio:before",
        "A voice note is about to become text, before its turn begins. Deny leaves it a file.",
        *_AUDIO,
        make_writable_field("language", "string", "the language that is spoken; empty: that is found out"),
        make_writable_field("result", "string?", "set it to give the words yourself; no service is called then"),
        outcomes=DENY,
    ),
    make_event_spec(
        "audio:after",
        "A voice note became text, or could not.",
        *_AUDIO,
        make_writable_field("text", "string", "the words"),
        EventField("error", "string", "why there are none, or empty"),
        EventField("duration", "number", "seconds that it took"),
    ),
    make_event_spec(
        "message:sending",
        "A message is about to be sent. An interceptor here switches streaming off.",
        *_SEND,
        make_writable_field("text", "string", "what will be said"),
        make_writable_field(*_ATTACHMENTS),
        outcomes=DENY,
    ),
    make_event_spec(
        "message:sent",
        "The chat network accepted the message.",
        *_SEND,
        EventField("text", "string", "what was said"),
        EventField(*_ATTACHMENTS),
        EventField("message_ids", "string[]", "the network's ids, one for each part"),
        EventField("attempts", "integer", "how many tries it took"),
    ),
    make_event_spec(
        "message:failed",
        "The message could not be delivered, also after the last retry.",
        *_SEND,
        EventField("text", "string", "what should have been said"),
        EventField(*_ATTACHMENTS),
        EventField("attempts", "integer", "how many times it was tried"),
        EventField("error", "string", "why it failed"),
    ),
    make_event_spec("reaction:added", "A person put a reaction on a message.", *_REACTION),
    make_event_spec("reaction:removed", "A person removed a reaction.", *_REACTION),
    make_event_spec("budget:warning", "A budget is used to 80 %: once in its day or month.", *_BUDGET),
    make_event_spec(
        "budget:exceeded",
        "A model is about to be called though a budget is used up. Deny refuses it in other words.",
        *_BUDGET,
        make_writable_field("allowed", "boolean", "whether this call is made all the same; true for owners"),
        make_writable_field("text", "string", "the words that the person reads if the call is not made"),
        outcomes=DENY,
    ),
    make_event_spec("access:denied", "An unknown person was denied access.", *_ACCESS),
    make_event_spec("access:paired", "A person was authorized by a pairing code.", *_ACCESS),
    make_event_spec(
        "person:forgotten",
        "All data of a person was removed. A hook that keeps data of people removes what it has of this one.",
        PLATFORM,
        USER,
        EventField("pseudonym", "string", "what they are called where something has to remain"),
    ),
    make_event_spec("session:start", "A conversation begins.", *_SESSION),
    make_event_spec("session:end", "A conversation is over, by command, by time or by shutdown.", *_ENDED),
    make_event_spec("session:reset", "A conversation begins again in the same place.", *_ENDED),
    make_event_spec(
        "session:compress",
        "An overlong conversation was summarised.",
        *_SESSION,
        EventField("old_session_id", "string", "the conversation before, empty when it is the same"),
        EventField("in_place", "boolean", "whether the session id stayed"),
        EventField("compression_count", "integer", "how many times by now"),
    ),
    make_event_spec(
        "command:*",
        "A command is about to run, while a turn runs too.",
        PLATFORM,
        USER,
        make_writable_field(
            "command", "string", "the command's own name; a harmless one runs instead, if the person may use it"
        ),
        EventField("raw_command", "string", "as typed, aliases included"),
        make_writable_field("args", "string", "the text after the command"),
        EventField("raw_args", "string", "as typed"),
        SESSION,
        SESSION_KEY,
        make_writable_field(
            "result", "string?", "given here, it is the reply (empty: none) and the command does not run"
        ),
        outcomes=DENY,
    ),
    make_event_spec(
        "schedule:*",
        "A hook's own `schedule:` line is due. The hook's name follows the colon.",
        EventField("due", "number", "when it was due, in seconds since 1970"),
        EventField("late_by", "number", "how many seconds ago that was"),
    ),
    make_event_spec(
        "webhook:*",
        "A program outside called `/webhooks/NAME` with its secret. The name follows the colon.",
        EventField("webhook", "string", "its name"),
        EventField("kind", "string", "what happened, by the sender's own word, such as issues.opened; or empty"),
        EventField("delivery_id", "string", "the sender's id of this call; each id comes once"),
        EventField("headers", "object", "those that tell of the call, by their names in small letters"),
        EventField("body", "any", "what was sent, decoded"),
        EventField("text", "string", "what was sent, as it came"),
        ROLE,
    ),
)
