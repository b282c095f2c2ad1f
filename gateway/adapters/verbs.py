"""The verbs of chat networks, and of the terminal, which is one."""

from collections.abc import Mapping

import msgspec

from gateway.verbs import NameParams, NoParams, Shown, Verb, show

PLATFORM_SHOWN = show("name", "state", "up", "last_event", "last_send", "last_probe", "unreadable")


class SteerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters to pause, resume or restart a network."""

    verb: str
    name: str


class SayRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message typed by a person. Under the same `id` it is one message, however often it is sent.

    So a program that lost its connection sends it again, and gets the one answer. `shown` are the ids of the questions
    that the person saw: any other question is shown first, and the message waits; without `shown` every text counts.
    `is_single`: this process sends nothing else, and a question that an earlier process showed may be answered.
    """

    text: str
    session: str = "main"
    id: str = ""
    shown: tuple[str, ...] | None = None
    is_single: bool = False


class ShowRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The session of the terminal that a person opens."""

    session: str = "main"


_LISTED: Mapping[str, Shown] = {"platforms": PLATFORM_SHOWN, "off": {"*": True}}

VERBS = (
    Verb(
        "platform.list", "List the chat networks.", NoParams, "operator", authors="placed", shown=_LISTED, page="shared"
    ),
    Verb(
        "platform.steer",
        "Pause, resume or restart a chat network.",
        SteerParams,
        "operator",
        shown=show("did"),
        on="{verb} {name}",
        page=("verb", "name"),
    ),
    Verb(
        "platform.probe", "Probe a chat network.", NameParams, "operator", shown=show("name", "seconds"), page=("name",)
    ),
    Verb("chat.commands", "List the chat commands.", NoParams, "owner"),
    Verb("chat.say", "Send a message in a session of the terminal.", SayRequest, "owner", raw=True),
    Verb("chat.show", "Show the open question of a terminal session.", ShowRequest, "owner", raw=True),
)
