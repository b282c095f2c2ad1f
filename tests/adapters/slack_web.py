"""The Web API of Slack on loopback: a table of methods, and what is refused."""

import html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.adapters.slack_wire import SlackWire

BOT = "U0000BOT0"
LIMIT = 12_000
CALLING = re.compile(r"<!(channel|here|everyone)|(?<!`)@(channel|here|everyone)\b")


class Refused(Exception):
    """An error as Slack tells it."""

    def __init__(self, code: str, *, status: int = 200, retry_after: float = 0, **more: Any) -> None:
        super().__init__(code)
        self.status = status
        self.headers = {"Retry-After": str(retry_after)} if retry_after else {}
        self.body = {"ok": False, "error": code, **more}


def auth_test(wire: "SlackWire", _asked: Any) -> Any:
    return {
        "url": wire.url,
        "team": "a team",
        "user": "gate",
        "team_id": "T1",
        "user_id": wire.bot,
        "bot_id": wire.bot_id,
    }


def connections_open(wire: "SlackWire", _asked: Any) -> Any:
    return {"url": f"{wire.url.replace('http', 'ws')}/link?ticket={wire.stamp()}"}


def post(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    if code := wire.forbidden.get(asked["channel"]):
        raise Refused(code)
    if str(asked.get("unfurl_links")) not in ("0", "False") or str(asked.get("unfurl_media")) not in ("0", "False"):
        raise Refused("a_link_would_be_shown")
    message = wire.shows(asked, checked(asked), buttons_of(asked))
    return {"channel": asked["channel"], "ts": message["ts"], "message": message}


def update(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    message = wire.messages.get(str(asked["ts"]))
    if message is None or message["channel"] != asked["channel"]:
        raise Refused("message_not_found")
    if message["ts"] in wire.growing:
        raise Refused("streaming_state_conflict")
    text = checked(asked)
    message |= {"text": text, "blocks": asked.get("blocks") or []}
    for shown in wire.shown:
        if shown.id == asked["ts"]:
            shown.text, shown.buttons = text, buttons_of(asked)
    return {"channel": asked["channel"], "ts": asked["ts"], "text": text}


def start_stream(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    if code := wire.forbidden.get(asked["channel"]):
        raise Refused(code)
    is_direct = asked["channel"].startswith("D")
    if not asked.get("thread_ts") or not (is_direct or (asked.get("recipient_user_id") and asked["recipient_team_id"])):
        raise Refused("invalid_arguments")
    message = wire.shows(asked, checked({"markdown_text": "", **asked}, is_whole=False), {})
    wire.growing.add(message["ts"])
    return {"channel": asked["channel"], "ts": message["ts"]}


def append_stream(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    grow(wire, asked, str(asked["markdown_text"]))
    return {"channel": asked["channel"], "ts": asked["ts"]}


def stop_stream(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    message = grow(wire, asked, str(asked.get("markdown_text") or ""))
    message["metadata"] = asked.get("metadata")
    wire.growing.discard(message["ts"])
    return {"channel": asked["channel"], "ts": asked["ts"], "message": message}


def grow(wire: "SlackWire", asked: dict[str, Any], text: str) -> dict[str, Any]:
    message = wire.messages.get(str(asked["ts"]))
    if message is None or message["channel"] != asked["channel"]:
        raise Refused("message_not_found")
    if message["ts"] not in wire.growing:
        raise Refused("message_not_in_streaming_state")
    message["text"] = checked({"markdown_text": message["text"] + text}, is_whole=False)
    for shown in wire.shown:
        if shown.id == asked["ts"]:
            shown.text = message["text"]
    return message


def delete(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    if wire.messages.pop(str(asked["ts"]), None) is None:
        raise Refused("message_not_found")
    wire.shown = [one for one in wire.shown if one.id != asked["ts"]]
    return {}


def whisper(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    wire.whispers.append(asked["text"])
    return {"message_ts": wire.stamp()}


def own_chats(wire: "SlackWire", asked: Any) -> Any:
    known = {one["channel"] for one in wire.messages.values() if one["channel_type"] == "im"}
    return {"channels": [{"id": one, "is_im": True} for one in sorted(known)[: int(asked["limit"])]]}


def channels_of_bot(wire: "SlackWire", _asked: Any) -> Any:
    return {"channels": [{"id": one, "name": name} for one, name in wire.names.items() if one.startswith("C")]}


def open_chat(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    return {"channel": {"id": wire.place(str(asked["users"]).removeprefix("U0000"))}}


def person(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    """One without a display name has a real name."""
    if asked["user"] not in wire.names:
        raise Refused("user_not_found")
    return {"user": {"id": asked["user"], "profile": {"display_name": "", "real_name": wire.names[asked["user"]]}}}


def channel(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    if asked["channel"] not in wire.names:
        raise Refused("channel_not_found")
    return {"channel": {"id": asked["channel"], "name": wire.names[asked["channel"]]}}


def history(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    return page(wire, asked, lambda one: one.get("thread_ts", one["ts"]) == one["ts"])


def replies(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    """Return the oldest first: the message that the thread hangs on precedes the others."""
    return page(wire, asked, lambda one: asked["ts"] in (one["ts"], one.get("thread_ts")), step=1)


def page(wire: "SlackWire", asked: dict[str, Any], is_there: Callable[[dict[str, Any]], bool], step: int = -1) -> Any:
    oldest = float(asked.get("oldest") or 0)
    found = [one for one in wire.messages.values() if one["channel"] == asked["channel"] and is_there(one)]
    later = [one for one in found if float(one["ts"]) > oldest][::step][: int(asked["limit"])]
    hidden = ("channel", "channel_type", *(() if asked.get("include_all_metadata") else ("metadata",)))
    return {"messages": [{name: value for name, value in one.items() if name not in hidden} for one in later]}


def react(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    there = marks_of(wire, asked)
    if asked["name"] in there:
        raise Refused("already_reacted")
    there.append(asked["name"])
    wire.reacted.append(asked["name"])
    return {}


def unreact(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    there = marks_of(wire, asked)
    if asked["name"] not in there:
        raise Refused("no_reaction")
    there.remove(asked["name"])
    return {}


def marks_of(wire: "SlackWire", asked: dict[str, Any]) -> list[str]:
    message = wire.messages.get(str(asked["timestamp"]))
    if message is None or message["channel"] != asked["channel"]:
        raise Refused("message_not_found")
    return wire.reactions.setdefault(str(asked["timestamp"]), [])


def about_thread(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    """Slack keeps what it is told of threads in its view of assistants, and of no others; and of a channel alone."""
    if not wire.has_threads:
        raise Refused("missing_scope", needed="assistant:write")
    thread = str(asked.get("thread_ts") or asked["channel_id"])
    if thread not in wire.threads:
        raise Refused("invalid_thread_ts")
    wire.threads[thread] |= {name: value for name, value in asked.items() if name in ("status", "title", "prompts")}
    return {}


def upload_url(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    number = f"F{wire.stamp()}"
    wire.files[number] = (str(asked["filename"]), b"")
    return {"upload_url": f"{wire.url}/upload/{number}", "file_id": number}


def upload_done(wire: "SlackWire", asked: dict[str, Any]) -> Any:
    (name, data), *others = [wire.files[one["id"]] for one in asked["files"]]
    text = html.unescape(str(asked.get("initial_comment") or ""))
    message = wire.shows({"channel": asked["channel_id"], "thread_ts": asked.get("thread_ts")}, text, {})
    wire.shown[-1].file, wire.shown[-1].file_name, wire.shown[-1].more_files = data, name, others
    assert message["channel"] == asked["channel_id"]
    return {"files": [{"id": one["id"], "title": one.get("title")} for one in asked["files"]]}


def checked(asked: dict[str, Any], *, is_whole: bool = True) -> str:
    """The text that is shown, if Slack would take it, and we promised nothing else."""
    blocks = asked.get("blocks") or []
    if not is_whole and "://" in str(asked["markdown_text"]):
        raise Refused("a_link_would_be_shown")
    if asked.get("markdown_text") is not None and (blocks or asked.get("text")):
        raise Refused("markdown_text_conflict")
    marked = [one["text"] for one in blocks if one["type"] == "markdown"]
    rich = "".join(f"{words}\n" if "preformatted" in kind else words for kind, words in rich_texts(asked))
    told = str(asked.get("text") or "")  # in notifications, where mentions act as they do in a text
    text = str(asked.get("markdown_text") or "\n".join(marked) or rich or told)
    if is_whole and not text.strip():
        raise Refused("no_text")
    if len(text.encode("utf-16-le")) // 2 > LIMIT:
        raise Refused("msg_too_long")
    if CALLING.search(told if rich else text):
        raise Refused("everybody_would_be_called")
    return text


def rich_texts(asked: dict[str, Any]) -> list[tuple[str, str]]:
    """The texts in blocks of rich text, each with its kind: Slack looks for nothing in them."""
    found = [part for one in asked.get("blocks") or [] if one["type"] == "rich_text" for part in one["elements"]]
    if any(set(piece) != {"type", "text"} or not piece["text"] for part in found for piece in part["elements"]):
        raise Refused("invalid_blocks")
    return [(part["type"], "".join(piece["text"] for piece in part["elements"])) for part in found]


def buttons_of(asked: dict[str, Any]) -> dict[str, str]:
    rows = [one["elements"] for one in asked.get("blocks") or [] if one["type"] == "actions"]
    return {one["text"]["text"]: one["value"] for row in rows for one in row}


METHODS: dict[str, Callable[["SlackWire", dict[str, Any]], Any]] = {
    "auth.test": auth_test,
    "apps.connections.open": connections_open,
    "chat.postMessage": post,
    "chat.update": update,
    "chat.delete": delete,
    "chat.startStream": start_stream,
    "chat.appendStream": append_stream,
    "chat.stopStream": stop_stream,
    "chat.postEphemeral": whisper,
    "users.info": person,
    "conversations.info": channel,
    "users.conversations": channels_of_bot,
    "conversations.list": own_chats,
    "conversations.open": open_chat,
    "conversations.history": history,
    "conversations.replies": replies,
    "assistant.threads.setStatus": about_thread,
    "assistant.threads.setTitle": about_thread,
    "assistant.threads.setSuggestedPrompts": about_thread,
    "reactions.add": react,
    "reactions.remove": unreact,
    "files.getUploadURLExternal": upload_url,
    "files.completeUploadExternal": upload_done,
}
