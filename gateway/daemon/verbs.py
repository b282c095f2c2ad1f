"""The verbs of the gateway itself: how it is, and its end."""

from collections.abc import Mapping

from gateway.adapters.verbs import PLATFORM_SHOWN
from gateway.records.verbs import SHOWN_NAMES
from gateway.verbs import NoParams, Shown, Verb, show

_STATUS: Mapping[str, Shown] = {
    **show("state", "version", "pid", "since", "home", "socket", "model", "memory_kb", "intake"),
    **show("unattended", "configuration"),
    "hooks": {"*": True},
    "behind": {"*": True},
    "nodes": {**show("name", "since", "roles", "works", "alone"), "holds": {"*": True}},
    "platforms": {"*": PLATFORM_SHOWN},
    "platforms_off": {"*": True},
    "turns": show("running", "waiting"),
    "backlog": {"sessions": True, "replies": {"*": True}},
    "search": show("progress"),
    "journal": show("ok", "records", "size", "progress", "commits", "commit_seconds"),
    "web": show("url", "trouble"),
    "calls": {"*": True},
    "owners": show("platform", "user_id", "why"),
    "names": SHOWN_NAMES,
    "parts": show("name", "state", "does", "since", "restarts"),
    "webhooks": show("name", "url", "origin", "verify", "taken", "known", "refused", "refused_at"),
    "attention": "heading",
}

VERBS = (
    Verb("status", "Show the state of the gateway.", NoParams, "operator", authors="all", shown=_STATUS, page="shared"),
    Verb("stop", "Stop the gateway; running turns end first.", NoParams, "admin"),
    Verb("restart", "Stop the gateway, and start it again.", NoParams, "admin", page=()),
    Verb("reload", "Read the configuration again.", NoParams, "admin", page=()),
)
