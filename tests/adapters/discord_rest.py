"""The HTTP API of Discord on loopback: a table of routes, and what is refused."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from aiohttp import web

from tests.adapters.discord_facts import PEOPLE, keys, member, thread, user

if TYPE_CHECKING:
    from tests.adapters.discord_wire import DiscordWire

LIMIT = 2000
QUIET = 1 << 2  # the flag of a message that shows nothing of its links
VOICE = 8192


class Refused(Exception):
    """An error as Discord tells it."""

    methods: tuple[str, ...] = ("POST", "PUT")  # which are refused, where it is told to the next call

    def __init__(self, status: int, code: int, message: str, body: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {"message": message, "code": code}


def answered(body: Any, status: int = 200, more: Mapping[str, str] | None = None) -> web.Response:
    """discord.py reads JSON of exactly this type, and takes a 429 without `Via` for a ban."""
    if body is None:
        return web.Response(status=204, headers=more)
    headers = {"Content-Type": "application/json", **(more or {})} | ({"Via": "1.1 loopback"} if status == 429 else {})
    return web.Response(body=json.dumps(body).encode(), status=status, headers=headers)


def me(wire: "DiscordWire", _body: Any, _query: Any) -> Any:
    return wire.bot


def application(wire: "DiscordWire", _body: Any, _query: Any) -> Any:
    about: dict[str, Any] = {
        "id": wire.bot["id"],
        "name": "gate",
        "icon": None,
        "description": "",
        "bot_public": False,
        "flags": wire.flags,
    }
    about |= {"bot_require_code_grant": False, "verify_key": "00", "owner": user("9"), "team": None}
    return about | {"rpc_origins": [], "interactions_endpoint_url": None, "install_params": None}


def commands(_wire: "DiscordWire", body: Any, _query: Any, _app: str) -> Any:
    for one in body["all"]:
        check_named(one)
        if len(one["options"]) > 25 or [o["required"] for o in one["options"]] != sorted(
            (o["required"] for o in one["options"]), reverse=True
        ):
            raise Refused(400, 50035, f"Invalid Form Body, what is required must be first: {one}")
        for option in one["options"]:
            check_option(option)
    return []


def check_named(one: dict[str, Any]) -> None:
    if not re.fullmatch(r"[-_a-z0-9]{1,32}", one["name"]) or not 0 < len(one["description"]) <= 100:
        raise Refused(400, 50035, f"Invalid Form Body: {one}")


def check_option(option: dict[str, Any]) -> None:
    """Discord's refusals of an option of a command."""
    check_named(option)
    choices = option.get("choices", [])
    if option["type"] not in (3, 4, 5) or len(choices) > 25 or (choices and option.get("autocomplete")):
        raise Refused(400, 50035, f"Invalid Form Body: {option}")
    if option["type"] == 5 and (choices or option.get("autocomplete")):
        raise Refused(400, 50035, f"Invalid Form Body, a boolean has no choices: {option}")
    if "min_value" in option and option["type"] != 4:
        raise Refused(400, 50035, f"Invalid Form Body, min_value is for numbers: {option}")


def open_chat(wire: "DiscordWire", body: Any, _query: Any) -> Any:
    return wire.channels[wire.place(str(int(body["recipient_id"]) - PEOPLE))]


def channel(wire: "DiscordWire", _body: Any, _query: Any, number: str) -> Any:
    if number not in wire.channels:
        raise Refused(404, 10003, "Unknown Channel")
    return wire.channels[number]


def person(_wire: "DiscordWire", _body: Any, _query: Any, number: str) -> Any:
    return user(number)


def one_member(wire: "DiscordWire", _body: Any, _query: Any, _guild: str, number: str) -> Any:
    return member(user(number), wire.roles.get(str(int(number) - PEOPLE), []))


def typing(_wire: "DiscordWire", _body: Any, _query: Any, _number: str) -> Any:
    return None


def history(wire: "DiscordWire", _body: Any, query: dict[str, str], number: str) -> Any:
    found = [one for one in wire.messages.values() if one["channel_id"] == number]
    later = sorted((one for one in found if int(one["id"]) > int(query["after"])), key=lambda one: int(one["id"]))
    page = later[: int(query["limit"])][::-1]
    return [{name: value for name, value in one.items() if name not in ("guild_id", "member")} for one in page]


def say(wire: "DiscordWire", body: Any, _query: Any, number: str) -> Any:
    if number in wire.forbidden:
        raise Refused(403, 50007, "Cannot send messages to this user")
    channel(wire, body, {}, number)
    check(body)
    if not body.get("enforce_nonce") or len(str(body["nonce"])) > 25:
        raise Refused(400, 50035, "the nonce is missing, or too long")
    if known := wire.nonces.get(body["nonce"]):
        return wire.messages[known]
    message = wire.message(wire.bot["id"], number, body.get("content") or poll_text_of(body), **said(body))
    wire.nonces[body["nonce"]] = message["id"]
    return wire.shows(message)


def poll_text_of(body: dict[str, Any]) -> str:
    """The text that people see of a poll, from Discord's form."""
    poll = body.get("poll") or {"question": {"text": ""}, "answers": []}
    names = [one["poll_media"]["text"] for one in poll["answers"]]
    if len(names) > 10 or any(len(one) > 55 for one in names):
        raise Refused(400, 50035, "this is not a poll")
    return "\n".join([poll["question"]["text"], *names])


def one_message(wire: "DiscordWire", _body: Any, _query: Any, number: str, message: str) -> Any:
    found = wire.messages.get(message)
    if found is None or found["channel_id"] != number:
        raise Refused(404, 10008, "Unknown Message")
    return found


def change(wire: "DiscordWire", body: Any, query: Any, number: str, message: str) -> Any:
    about = one_message(wire, body, query, number, message)
    check(body, is_new=False)
    about |= {name: body[name] for name in ("content", "components") if name in body}
    for shown in wire.shown:
        if shown.id == message:
            shown.text, shown.buttons = about["content"], keys(about)
    return about


def remove(wire: "DiscordWire", body: Any, query: Any, number: str, message: str) -> Any:
    one_message(wire, body, query, number, message)
    del wire.messages[message]
    wire.shown = [one for one in wire.shown if one.id != message]


def add_mark(wire: "DiscordWire", body: Any, query: Any, number: str, message: str, emoji: str) -> Any:
    if wire.no_reactions:
        raise Refused(403, 50013, "Missing Permissions")
    one_message(wire, body, query, number, message)
    wire.reactions.setdefault(message, []).append(unquote(emoji))
    wire.reacted.append(unquote(emoji))


def take_mark(wire: "DiscordWire", body: Any, query: Any, number: str, message: str, emoji: str) -> Any:
    one_message(wire, body, query, number, message)
    if unquote(emoji) not in wire.reactions.get(message, ()):
        raise Refused(404, 10014, "Unknown Emoji")
    wire.reactions[message].remove(unquote(emoji))


def make_thread(wire: "DiscordWire", body: Any, query: Any, number: str, message: str) -> Any:
    one_message(wire, body, query, number, message)
    if wire.no_threads:
        raise Refused(403, 50013, "Missing Permissions")
    if message in wire.channels:
        raise Refused(400, 160004, "A thread has already been created for this message")
    if not 0 < len(body["name"]) <= 100:
        raise Refused(400, 50035, "Invalid Form Body: name")
    wire.channels[message] = thread(message, owner=wire.bot["id"], name=body["name"])
    wire.event("THREAD_CREATE", wire.channels[message])
    return wire.channels[message]


def callback(wire: "DiscordWire", body: Any, _query: Any, number: str, _token: str) -> Any:
    about = wire.interactions.get(number)
    if about is None:
        raise Refused(404, 10062, "Unknown interaction")
    if about["answer"] is not None:
        raise Refused(400, 40060, "Interaction has already been acknowledged")
    about["answer"] = wire.interactions[about["token"]]["answer"] = body["type"]
    data = body.get("data") or {}
    if body["type"] == 4 and data.get("flags", 0) & 64:
        wire.whispers.append(data["content"])
    if body["type"] == 8:
        if about["type"] != 4 or len(data["choices"]) > 25 or not all(is_choice(one) for one in data["choices"]):
            raise Refused(400, 50035, f"Invalid Form Body: {data}")
        wire.suggested[number] = [str(one["value"]) for one in data["choices"]]
    told = {"id": number, "type": about["type"]}
    if body["type"] == 7:
        change(wire, data, {}, about["channel_id"], about["message"]["id"])
    if body["type"] == 4 and not data.get("flags", 0) & 64:
        check(data)
        text = data.get("content") or ""
        shown = wire.shows(wire.message(wire.bot["id"], about["channel_id"], text, **said(data)))
        return {"interaction": told | {"response_message_id": shown["id"]}, "resource": {"type": 4, "message": shown}}
    return {"interaction": told}


def is_choice(one: dict[str, Any]) -> bool:
    return 0 < len(one["name"]) <= 100 and 0 < len(str(one["value"])) <= 100


def follow_up(wire: "DiscordWire", body: Any, _query: Any, _app: str, token: str) -> Any:
    about = wire.interactions.get(token)
    if about is None or about["answer"] != 5:
        raise Refused(404, 10015, "Unknown Webhook")
    check(body)
    return wire.shows(wire.message(wire.bot["id"], about["channel_id"], body.get("content") or "", **said(body)))


def drop_answer(wire: "DiscordWire", _body: Any, _query: Any, _app: str, token: str) -> Any:
    wire.interactions[token]["answer"] = "dropped"


def check(body: dict[str, Any], *, is_new: bool = True) -> None:
    """Discord's refusals, and messages that we promise never to send."""
    text = body.get("content") or ""
    if len(text.encode("utf-16-le")) // 2 > LIMIT:
        raise Refused(400, 50035, "Invalid Form Body: Must be 2000 or fewer in length.")
    if is_new and not text.strip() and not (body.get("attachments") or body.get("poll")):
        raise Refused(400, 50006, "Cannot send an empty message")
    if text and (body.get("allowed_mentions") or {"parse": None}).get("parse") != []:
        raise Refused(400, 50035, "somebody would be pinged")
    if is_new and not body.get("flags", 0) & QUIET:
        raise Refused(400, 50035, "a link preview would be shown")
    if body.get("flags", 0) & VOICE:
        check_note(body)
    if any(len(carried) > 100 for carried in keys(body).values()):
        raise Refused(400, 50035, "Invalid Form Body: custom_id")


def check_note(body: dict[str, Any]) -> None:
    """Discord's refusals of a voice note."""
    about = body.get("attachments") or [{}]
    if body.get("content") or len(about) != 1 or not {"duration_secs", "waveform"} <= about[0].keys():
        raise Refused(400, 50161, "Voice messages must have exactly one audio attachment, with its shape.")
    if not 0 < about[0]["duration_secs"] <= 1200 or not 0 < len(base64.b64decode(about[0]["waveform"])) <= 256:
        raise Refused(400, 50162, "Voice messages must have supporting metadata.")


def said(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("components", "attachments", "message_reference", "flags") if name in body}


Does = Callable[..., Any]
ROUTES: list[tuple[str, str, Does]] = [
    ("GET", "users/@me", me),
    ("GET", "oauth2/applications/@me", application),
    ("PUT", "applications/*/commands", commands),
    ("POST", "users/@me/channels", open_chat),
    ("GET", "users/*", person),
    ("GET", "channels/*", channel),
    ("GET", "guilds/*/members/*", one_member),
    ("POST", "channels/*/typing", typing),
    ("GET", "channels/*/messages", history),
    ("POST", "channels/*/messages", say),
    ("GET", "channels/*/messages/*", one_message),
    ("PATCH", "channels/*/messages/*", change),
    ("DELETE", "channels/*/messages/*", remove),
    ("POST", "channels/*/messages/*/threads", make_thread),
    ("PUT", "channels/*/messages/*/reactions/*/@me", add_mark),
    ("DELETE", "channels/*/messages/*/reactions/*/@me", take_mark),
    ("POST", "interactions/*/*/callback", callback),
    ("POST", "webhooks/*/*", follow_up),
    ("DELETE", "webhooks/*/*/messages/@original", drop_answer),
]
REST: list[tuple[str, re.Pattern[str], Does]] = [
    (method, re.compile(path.replace("*", "([^/]+)")), does) for method, path, does in ROUTES
]
