"""The function `send_message_tool`: it sends a message to another chat, with the arguments and results of Hermes's."""

import json
import re
from collections.abc import Mapping
from typing import Any

from gateway.hermes.shim.gateway_calls import ask_gateway, get_facts

MEDIA = re.compile(r"\[\[\w+\]\]|MEDIA:\s*\S+")
TERMINAL = "terminal"  # a network without settings, which is always there


def send_message_tool(args: Mapping[str, Any], **_: Any) -> str:
    """Send a message or list the targets, by `action`; return the result, or an error, as JSON text."""
    try:
        match args.get("action", "send"):
            case "send":
                result = _send(str(args.get("target") or ""), str(args.get("message") or ""))
            case "list":
                result = {"targets": _describe_targets()}
            case action:
                result = {"error": f"the action {action!r} is not offered by this gateway; there is send and list"}
    except RuntimeError as refused:
        result = {"error": str(refused)}
    return json.dumps(result, ensure_ascii=False)


def _send(target: str, message: str) -> dict[str, Any]:
    if not target or not message:
        return {"error": "send needs both a `target` and a `message`"}
    name, _, place = (part.strip() for part in target.partition(":"))
    name = name.lower()
    networks = {one["name"]: one for one in get_facts()["networks"]}
    if name not in (TERMINAL, "home") and not networks.get(name, {}).get("served"):
        return {"error": f"the platform {name!r} is not configured; set it up in config.yaml or .env"}
    if place.startswith("#"):
        return {"error": f"{place!r} is a channel's name; write its id, as in {name}:123456"}
    text = MEDIA.sub("", message).strip()
    if not text:
        return {"error": "a file without a text cannot be sent by this call here"}
    sent = ask_gateway("send", to=f"{name}:{place}" if place else name, text=text)
    result = {"success": True, "platform": sent["platform"], "chat_id": sent["chat_id"], "message_id": sent["id"]}
    if not place:
        result["note"] = f"sent to the home channel of {sent['platform']} (chat_id: {sent['chat_id']})"
    if text != message.strip():
        result["warnings"] = ["files are not sent by this call here; the text was"]
    return result


def _describe_targets() -> str:
    served = [one for one in get_facts()["networks"] if one["served"]]
    lines = [f"{one['name']}:{one['home_channel']}  (home channel)" for one in served if one["home_channel"]]
    return "\n".join(lines) or "No home channel is set; a target is written platform:chat."
