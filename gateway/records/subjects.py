"""The subjects under which the journal's records stand.

Inbound messages stand on `gw.in.<conv>`, the chain of a session's turns on `gw.turn.<conv>`, replies on
`gw.out.<platform>.<place>.<conv>`: one order a place, one subject a session, so that a session can be forgotten.
A reply that arrived with its record, as its network is the journal, is on `gw.out.<platform>+.<place>.<conv>`.
The words of a message's audio stand on `gw.audio.<conv>`, answers that are to be spoken on `gw.voice.<conv>`.
What was said to others in a quiet chat stands on `gw.quiet.<chat>`, what of it a conversation was told on
`gw.heard.<conv>`.
What the page's chat shows of a conversation stands on `gw.page.<conv>`.
What lies in folders that all gateways have stands on `gw.folder.<path>.<folder>`.
Events that durable hooks are owed stand with the conversation that they are of, on `gw.owed.<conv>.<name>`; those that
are of none on `gw.ev.<name>`.
"""

import hashlib
import re
from functools import lru_cache
from typing import Literal, TypeAlias

from gateway.messages.message import Address

SessionSubject: TypeAlias = Literal[
    "in", "audio", "heard", "voice", "turn", "bell", "sum", "dead.turns", "shown", "page"
]

TURN_SUBJECTS = "gw.turn.*"
IN_SUBJECTS = "gw.in.*"
AUDIO_SUBJECTS = "gw.audio.*"
HEARD_SUBJECTS = "gw.heard.*"
QUIET_SUBJECTS = "gw.quiet.*"
VOICE_SUBJECTS = "gw.voice.*"
PAGE_SUBJECTS = "gw.page.*"
WAKEUP_SUBJECTS = "gw.bell.*"
OUT_SUBJECTS = "gw.out.>"
SEND_SUBJECTS = "gw.sent.>"
MESSAGE_SUBJECTS = (IN_SUBJECTS, TURN_SUBJECTS, OUT_SUBJECTS, SEND_SUBJECTS)  # all that becomes of a message
EVENT_SUBJECTS = "gw.ev.>"
CURSOR_SUBJECTS = "gw.cur.>"
OWED_EVENT_SUBJECTS = "gw.owed.>"
RETRY_SUBJECTS = "gw.redo.*"
DEAD_SUBJECTS = "gw.dead.>"
HOOK_STORE_SUBJECTS = "gw.keep.*.*"
ACCESS_SUBJECT = "gw.access"
KEYS_SUBJECT = "gw.keys"
LOGIN_SUBJECT = "gw.logins"
ACTIVITY_SUBJECT = "gw.activity"
CHAT_SUBJECTS = "gw.chat.*"
CALL_SUBJECTS = "gw.call.>"
UPDATE_SUBJECTS = "gw.update.*.*"
USAGE_SUBJECT = "gw.usage.calls"
FOLDED_SUBJECT = "gw.usage.folded"
DAY_SUBJECTS = "gw.usage.days.*"
PSEUDONYM_SUBJECT = "gw.pseudonyms"
MEMORY_SUBJECT = "gw.memory"
NOTE_SUBJECTS = "gw.notes.*"
HOOK_DECISIONS_SUBJECT = "gw.switches"
NODE_HOOKS_SUBJECTS = "gw.hooks.*"
FORGOTTEN_SUBJECT = "gw.forgotten"
REMOVED_FILES_SUBJECT = "gw.files"
FOLDER_SUBJECTS = "gw.folder.*.*"
CONTROL_SUBJECTS = "rt.ctl.*"
DELTA_SUBJECTS = "rt.delta.*"
PRESENCE_SUBJECTS = "rt.presence.*"
EVENT_REQUEST_SUBJECT = "rt.wish"
APPROVAL_SUBJECTS = "gw.ask.*.*"
is_plain = re.compile(r"[a-z0-9_-]+").fullmatch
ARRIVED = "+"  # behind the platform of a reply; no platform has it in its name here


@lru_cache(4096)
def token_of(text: str) -> str:
    """One segment of a subject that stands for a text, whatever the text contains."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@lru_cache(4096)
def session_subject_of(kind: SessionSubject, session_key: str) -> str:
    return session_subject_of_token(kind, token_of(session_key))


def session_subject_of_token(kind: SessionSubject, token: str) -> str:
    """Does the same where only the token is known: a subject has the token in it, and no longer the key."""
    return f"gw.{kind}.{token}"


def token_of_subject(subject: str) -> str:
    """The session token that a subject of a session's records, or of its replies, ends with."""
    return subject.rpartition(".")[2]


def platform_token_of(platform: str) -> str:
    return platform if is_plain(platform) else token_of(platform)


def place_of(address: Address) -> str:
    """`<platform>.<token>`: where replies have one order. An account of a platform is one of its own here."""
    at = f"{address.chat_id}\0{address.thread_id}"
    return f"{platform_token_of(address.served_as)}.{token_of(at)}"


def reply_subject_of(address: Address, session_key: str, *, has_arrived: bool = False) -> str:
    """The subject of a reply; one that `has_arrived` with its record is on none of its platform's."""
    platform, _, at = place_of(address).partition(".")
    return f"gw.out.{platform}{ARRIVED if has_arrived else ''}.{at}.{token_of(session_key)}"


def is_sent(reply_subject: str) -> bool:
    """Tell if the reply on this subject has arrived with its record."""
    return reply_subject.split(".")[2].endswith(ARRIVED)


def owed_event_subject_of(name: str, session_key: str) -> str:
    """Where an event of a conversation stands: under the conversation, like the records that it is appended with."""
    return f"gw.owed.{token_of(session_key)}.{_event_path_of(name)}"


def owed_event_pattern_of(name: str) -> str:
    """The pattern of what conversations have of an event, or of all that a pattern of events meets."""
    return f"gw.owed.*.{_event_path_of(name)}"


def owed_event_pattern_of_token(token: str) -> str:
    """The pattern of the events that belong to the session key with this token."""
    return f"gw.owed.{token}.>"


def place_of_reply_subject(subject: str) -> str:
    """The place that a reply goes to, from the subject that it stands on."""
    return subject.removeprefix("gw.out.").rpartition(".")[0]


def reply_pattern_of_session(session_key: str) -> str:
    """The pattern of all replies that belong to a session key."""
    return reply_pattern_of_token(token_of(session_key))


def reply_pattern_of_token(token: str) -> str:
    """The pattern of all replies that belong to the session key with this token."""
    return f"gw.out.*.*.{token}"


def reply_pattern_of_place(where: str) -> str:
    """The pattern of all replies that go to a place."""
    return f"gw.out.{where}.*"


def reply_pattern_of_platform(platform: str) -> str:
    return f"gw.out.{platform_token_of(platform)}.>"


def stream_subject_of(bot: str) -> str:
    """Live only: what is written of answers for this bot of a network, for the node that serves it."""
    return f"rt.stream.{platform_token_of(bot)}"


def send_subject_of(where: str, stream: str = "") -> str:
    """The send journal of a place, or of one streamed reply in it."""
    return f"gw.sent.{where}.{token_of(stream)}" if stream else f"gw.sent.{where}"


def chat_subject_of(chat: str) -> str:
    """Returns where it stands what was set in a chat."""
    return f"gw.chat.{token_of(chat)}"


def quiet_subject_of(chat: str) -> str:
    """Returns where it stands what was said to others in a quiet chat."""
    return f"gw.quiet.{token_of(chat)}"


def note_subject_of(memory: str) -> str:
    """Returns where the notes of a memory stand, by the digest of whose it is."""
    return f"gw.notes.{memory}"


def folder_subject_of(folder: str, path: str | None = None) -> str:
    """Returns where it stands what lies in a folder that all gateways have; without a path, the pattern of it all."""
    return f"gw.folder.{'*' if path is None else token_of(path)}.{token_of(folder)}"


def call_subject_of(key_name: str, call_id: str, session_key: str) -> str:
    """Where a program's call stands: under the conversation, like the message that it became."""
    return f"gw.call.{token_of(f'{key_name}:{call_id}')}.{token_of(session_key)}"


def call_patterns_of(key_name: str, call_id: str) -> tuple[str, str]:
    """Where a call may stand of which no more is known; the last is how it stood before it was under a conversation."""
    above = f"gw.call.{token_of(f'{key_name}:{call_id}')}"
    return f"{above}.*", above


def delta_subject_of(session_key: str) -> str:
    """Live only: pieces of an answer while the model writes it."""
    return f"rt.delta.{token_of(session_key)}"


def steering_subject_of(node: str) -> str:
    """Live only: where a node is asked to do something with a network that it serves."""
    return f"rt.steer.{token_of(node)}"


def presence_subject_of(name: str) -> str:
    """Live only: what a node says of itself, again and again."""
    return f"rt.presence.{token_of(name)}"


def sign_subject_of(bot: str) -> str:
    """Live only: which turns are at work for this bot of a network, for the node that serves it."""
    return f"rt.sign.{platform_token_of(bot)}"


def request_subject_of(bot: str) -> str:
    """Live only: what is asked of the node that serves this bot of a network."""
    return f"rt.ask.{platform_token_of(bot)}"


def forwarded_event_subject_of(run_id: str) -> str:
    """Live only: events of other nodes, for whoever watches them in this run of a gateway."""
    return f"rt.event.{token_of(run_id)}"


def run_subject_of(run_id: str) -> str:
    """Live only: whether this run of a gateway goes on; it answers whoever asks."""
    return f"rt.run.{token_of(run_id)}"


def control_subject_of(session_key: str) -> str:
    """Live only: whichever node has something to do for the session shall stop it; the message is the session's key."""
    return f"rt.ctl.{token_of(session_key)}"


def node_subject_of(node: str) -> str:
    """Live only: where a node answers what other nodes ask of its lanes."""
    return f"rt.node.{token_of(node)}"


def approval_subject_of(mark: str, session_key: str = "") -> str:
    """Returns where the request of an approval stands; without a session, the pattern of the one with this mark."""
    return f"gw.ask.{mark}.{token_of(session_key) if session_key else '*'}"


def approval_pattern_of_token(token: str) -> str:
    """The pattern of the requests that belong to the session key with this token."""
    return f"gw.ask.*.{token}"


def event_subject_of(name: str) -> str:
    """`command:new` -> `gw.ev.command.new`; a pattern's last `*` takes in all that is below."""
    return f"gw.ev.{_event_path_of(name)}"


def _event_path_of(name: str) -> str:
    parts = name.split(":")
    return ".".join([*parts[:-1], ">" if parts[-1] == "*" else parts[-1]])


def hook_store_subject_of(hook: str, key: str | None = None) -> str:
    """Returns where a hook keeps a value; without a key, the pattern of its whole store."""
    return f"gw.keep.{token_of(hook)}.{'*' if key is None else token_of(key)}"


def node_hooks_subject_of(node: str) -> str:
    """Returns where it is kept which hooks a gateway has."""
    return f"gw.hooks.{token_of(node)}"


def schedule_subject_of(hook: str) -> str:
    """Returns where it is kept when a hook's schedule was last due."""
    return f"gw.schedule.{token_of(hook)}"


def webhook_subject_of(name: str, session_key: str = "") -> str:
    """Returns where it is kept by which signature a webhook was called: under the conversation that it speaks in."""
    return f"gw.webhook.{name}.{token_of(session_key)}" if session_key else f"gw.webhook.{name}"


def dead_letter_subject_of(hook_token: str, seq: int | None = None) -> str:
    """Returns where an event is kept that a durable hook could not be given; without a sequence, the pattern of all."""
    return f"gw.dead.{hook_token}.{'*' if seq is None else seq}"


def hook_token_of_subject(subject: str) -> str:
    """Returns the token of the hook to which a dead letter with this subject was owed."""
    return subject.split(".")[2]


def day_subject_of(day: str) -> str:
    """Returns where the sums of a day stand."""
    return f"gw.usage.days.{day}"


def retry_subject_of(hook_token: str) -> str:
    """Returns where a dead letter is put that is tried again: this hook's consumer alone reads it."""
    return f"gw.redo.{hook_token}"


def update_subject_of(platform: str, bot: str) -> str:
    """Returns where it is held what a network called a bot with."""
    return f"gw.update.{platform_token_of(platform)}.{token_of(bot)}"


def signature_subject_of(platform: str, served_as: str) -> str:
    """Returns where it is held which calls of a network were taken."""
    return f"gw.signed.{platform_token_of(platform)}.{token_of(served_as)}"


def cursor_subject_of(reader: str, bot: str = "") -> str:
    """Returns where it is kept how far a bot has read its network, or a follower the journal."""
    subject = f"{CURSOR_SUBJECTS[:-1]}{platform_token_of(reader)}"
    return f"{subject}.{token_of(bot)}" if bot else subject
