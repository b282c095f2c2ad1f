"""The subjects of the journal's records.

Replies are on `gw.out.<platform>.<place>.<conv>`: one order a place, one subject a session, so that a session can be
forgotten. A reply that arrived with its record, because its network is the journal, is on
`gw.out.<platform>+.<place>.<conv>`. The others:

- `gw.in.<conv>`: inbound messages
- `gw.turn.<conv>`: the chain of a session's turns
- `gw.audio.<conv>`: the words of a message's audio
- `gw.voice.<conv>`: answers that are to be spoken
- `gw.quiet.<chat>`: overheard messages of a quiet chat
- `gw.heard.<conv>`: the ones that a conversation received
- `gw.page.<conv>`: a conversation in the page's chat
- `gw.folder.<path>.<folder>`: files of folders that all gateways share
- `gw.owed.<conv>.<name>`: events of a conversation for durable hooks
- `gw.ev.<name>`: all other events for durable hooks
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
MESSAGE_SUBJECTS = (IN_SUBJECTS, TURN_SUBJECTS, OUT_SUBJECTS, SEND_SUBJECTS)  # everything that follows from a message
EVENT_SUBJECTS = "gw.ev.>"
CURSOR_SUBJECTS = "gw.cur.>"
OWED_EVENT_SUBJECTS = "gw.owed.>"
RETRY_SUBJECTS = "gw.redo.*"
DEAD_SUBJECTS = "gw.dead.>"
HOOK_STORE_SUBJECTS = "gw.keep.*.*"
MOMENT_SUBJECTS = "gw.job.*.*"
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
FIGURE_SUBJECTS = "gw.figures.*.{}.*"  # half or day
PSEUDONYM_SUBJECT = "gw.pseudonyms"
MEMORY_SUBJECT = "gw.memory"
NOTE_SUBJECTS = "gw.notes.*"
NAME_SUBJECTS = "gw.name.*.*"
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
JOBS = "gateway/jobs"
SEARCHES = "gateway/searches"  # owns the counts of a day's searches, as the next one does its own
REMINDERS = "gateway/reminders"  # owns their store; no hook has such a name: a folder's name contains no slash
is_plain = re.compile(r"[a-z0-9_-]+").fullmatch
ARRIVED = "+"  # follows the platform of a reply; no platform's name contains it here


@lru_cache(4096)
def token_of(text: str) -> str:
    """Return one subject segment for any text."""
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@lru_cache(4096)
def session_subject_of(kind: SessionSubject, session_key: str) -> str:
    return session_subject_of_token(kind, token_of(session_key))


def session_subject_of_token(kind: SessionSubject, token: str) -> str:
    """Return the subject for a token instead of a key: a subject contains the token, not the key."""
    return f"gw.{kind}.{token}"


def token_of_subject(subject: str) -> str:
    """Return the session token at the end of a subject of a session's records or replies."""
    return subject.rpartition(".")[2]


def platform_token_of(platform: str) -> str:
    return platform if is_plain(platform) else token_of(platform)


def place_of(address: Address) -> str:
    """Return `<platform>.<token>`, the place in which replies have one order. Each account is a platform here."""
    at = f"{address.chat_id}\0{address.thread_id}"
    return f"{platform_token_of(address.served_as)}.{token_of(at)}"


def reply_subject_of(address: Address, session_key: str, *, has_arrived: bool = False) -> str:
    """Return the subject of a reply; one that `has_arrived` is outside its platform's subjects."""
    platform, _, at = place_of(address).partition(".")
    return f"gw.out.{platform}{ARRIVED if has_arrived else ''}.{at}.{token_of(session_key)}"


def is_sent(reply_subject: str) -> bool:
    """Return True if the reply on this subject arrived with its record."""
    return reply_subject.split(".")[2].endswith(ARRIVED)


@lru_cache(4096)
def owed_event_subject_of(name: str, session_key: str) -> str:
    """Return the subject of a conversation's event: under the conversation, like the records beside it."""
    return f"gw.owed.{token_of(session_key)}.{_event_path_of(name)}"


def owed_event_pattern_of(name: str) -> str:
    """Return the pattern of a conversation event, or of a pattern of events."""
    return f"gw.owed.*.{_event_path_of(name)}"


def owed_event_pattern_of_token(token: str) -> str:
    """Return the pattern of the events of a session token."""
    return f"gw.owed.{token}.>"


def place_of_reply_subject(subject: str) -> str:
    """Return the place of a reply, by its subject."""
    return subject.removeprefix("gw.out.").rpartition(".")[0]


def reply_pattern_of_session(session_key: str) -> str:
    """Return the pattern of all replies of a session key."""
    return reply_pattern_of_token(token_of(session_key))


def reply_pattern_of_token(token: str) -> str:
    """Return the pattern of all replies of a session token."""
    return f"gw.out.*.*.{token}"


def reply_pattern_of_place(where: str) -> str:
    """Return the pattern of all replies to a place."""
    return f"gw.out.{where}.*"


def reply_pattern_of_platform(platform: str) -> str:
    return f"gw.out.{platform_token_of(platform)}.>"


def stream_subject_of(bot: str) -> str:
    """Return the live subject of growing answers, for the node that serves this bot."""
    return f"rt.stream.{platform_token_of(bot)}"


def send_subject_of(where: str, stream: str = "") -> str:
    """Return the send journal's subject of a place, or of one streamed reply in it."""
    return f"gw.sent.{where}.{token_of(stream)}" if stream else f"gw.sent.{where}"


def chat_subject_of(chat: str) -> str:
    """Return the subject of a chat's settings."""
    return f"gw.chat.{token_of(chat)}"


def quiet_subject_of(chat: str) -> str:
    """Return the subject of a quiet chat's overheard messages."""
    return f"gw.quiet.{token_of(chat)}"


def note_subject_of(memory: str) -> str:
    """Return the subject of a memory's notes, by the digest of its person."""
    return f"gw.notes.{memory}"


def name_subject_of(identity: str, *, is_chat: bool) -> str:
    """Return the subject of the name of a person or a chat."""
    return f"gw.name.{'chat' if is_chat else 'person'}.{token_of(identity)}"


def folder_subject_of(folder: str, path: str | None = None) -> str:
    """Return the subject of a shared folder's file; without a path, the pattern of all its files."""
    return f"gw.folder.{'*' if path is None else token_of(path)}.{token_of(folder)}"


def call_subject_of(key_name: str, call_id: str, session_key: str) -> str:
    """Return the subject of a program's call: under the conversation, like its message."""
    return f"gw.call.{token_of(f'{key_name}:{call_id}')}.{token_of(session_key)}"


def call_patterns_of(key_name: str, call_id: str) -> tuple[str, str]:
    """Return the patterns of a call of unknown conversation; the last is of calls from before they had one."""
    above = f"gw.call.{token_of(f'{key_name}:{call_id}')}"
    return f"{above}.*", above


def delta_subject_of(session_key: str) -> str:
    """Return the live subject of an answer's pieces while the model writes."""
    return f"rt.delta.{token_of(session_key)}"


def steering_subject_of(node: str) -> str:
    """Return the live subject of requests to a node about a network that it serves."""
    return f"rt.steer.{token_of(node)}"


def presence_subject_of(name: str) -> str:
    """Return the live subject of a node's regular status."""
    return f"rt.presence.{token_of(name)}"


def sign_subject_of(bot: str) -> str:
    """Return the live subject of working turns, for the node that serves this bot."""
    return f"rt.sign.{platform_token_of(bot)}"


def request_subject_of(bot: str) -> str:
    """Return the live subject of requests to the node that serves this bot."""
    return f"rt.ask.{platform_token_of(bot)}"


def forwarded_event_subject_of(run_id: str) -> str:
    """Return the live subject of other nodes' events, for watchers in this run of a gateway."""
    return f"rt.event.{token_of(run_id)}"


def run_subject_of(run_id: str) -> str:
    """Return the live subject on which this run of a gateway answers while it is alive."""
    return f"rt.run.{token_of(run_id)}"


def control_subject_of(session_key: str) -> str:
    """Return the live subject that stops a session's work on any node; the message is the session's key."""
    return f"rt.ctl.{token_of(session_key)}"


def node_subject_of(node: str) -> str:
    """Return the live subject on which a node answers other nodes about its lanes."""
    return f"rt.node.{token_of(node)}"


def approval_subject_of(mark: str, session_key: str = "") -> str:
    """Return the subject of an approval request; without a session, the pattern of the one with this mark."""
    return f"gw.ask.{mark}.{token_of(session_key) if session_key else '*'}"


def approval_pattern_of_token(token: str) -> str:
    """Return the pattern of the approval requests of a session token."""
    return f"gw.ask.*.{token}"


def event_subject_of(name: str) -> str:
    """Convert `command:new` to `gw.ev.command.new`; a pattern's last `*` matches everything below."""
    return f"gw.ev.{_event_path_of(name)}"


@lru_cache(4096)
def _event_path_of(name: str) -> str:
    parts = name.split(":")
    return ".".join([*parts[:-1], ">" if parts[-1] == "*" else parts[-1]])


def hook_store_subject_of(hook: str, key: str | None = None) -> str:
    """Return the subject of a hook's stored value; without a key, the pattern of its whole store."""
    return f"gw.keep.{token_of(hook)}.{'*' if key is None else token_of(key)}"


def moment_subject_of(job_id: str, due: float | None = None) -> str:
    """Return the subject of a job's moment; without one, the pattern of its whole history."""
    return f"gw.job.{token_of(job_id)}.{'*' if due is None else token_of(f'{due:.3f}')}"


def node_hooks_subject_of(node: str) -> str:
    """Return the subject of a gateway's list of hooks."""
    return f"gw.hooks.{token_of(node)}"


def schedule_subject_of(hook: str) -> str:
    """Return the subject that records when a hook's schedule was last due."""
    return f"gw.schedule.{token_of(hook)}"


def webhook_subject_of(name: str, session_key: str = "") -> str:
    """Return the subject of a webhook call's signature: under the conversation that it writes to."""
    return f"gw.webhook.{name}.{token_of(session_key)}" if session_key else f"gw.webhook.{name}"


def dead_letter_subject_of(hook_token: str, seq: int | None = None) -> str:
    """Return the subject of a durable hook's dead letter; without a sequence, the pattern of all."""
    return f"gw.dead.{hook_token}.{'*' if seq is None else seq}"


def hook_token_of_subject(subject: str) -> str:
    """Return the token of the hook, by the subject of its dead letter."""
    return subject.split(".")[2]


def day_subject_of(day: str) -> str:
    """Return the subject of a day's sums."""
    return f"gw.usage.days.{day}"


def figure_subject_of(node: str, kind: str, place: int) -> str:
    """Return the subject of a node's figures of a half hour or a day: one of a ring of places."""
    return f"gw.figures.{token_of(node)}.{kind}.{place}"


def retry_subject_of(hook_token: str) -> str:
    """Return the subject for the retry of a dead letter: only this hook's consumer reads it."""
    return f"gw.redo.{hook_token}"


def update_subject_of(platform: str, bot: str) -> str:
    """Return the subject of a network's unprocessed calls to a bot."""
    return f"gw.update.{platform_token_of(platform)}.{token_of(bot)}"


def signature_subject_of(platform: str, served_as: str) -> str:
    """Return the subject of the processed calls of a network."""
    return f"gw.signed.{platform_token_of(platform)}.{token_of(served_as)}"


def cursor_subject_of(reader: str, bot: str = "") -> str:
    """Return the subject of the position up to which a bot has read its network, or a follower the journal."""
    subject = f"{CURSOR_SUBJECTS[:-1]}{platform_token_of(reader)}"
    return f"{subject}.{token_of(bot)}" if bot else subject
