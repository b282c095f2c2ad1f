"""The bot's reactions on Slack. Eyes are also its sign of work, since Slack shows no bot as typing."""

from collections.abc import Awaitable, Callable
from functools import partial
from math import inf

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.status_reactions import NetworkReactions, RefusalScope
from gateway.adapters.slack.connection import ERRORS, LACKING, code_of
from gateway.errors import AdapterError
from gateway.messages.message import Address

PAUSE = 1.2  # seconds: Slack takes about fifty of them in a minute
DONE_BEFORE = ("already_reacted", "no_reaction")
NO_RIGHT = ("(not_in_channel)", "(channel_not_found)", "(is_archived)", "(restricted_action)", "(not_reactable)")


def describe_reactions(web: AsyncWebClient) -> NetworkReactions:
    return NetworkReactions(
        {"seen": "eyes", "working": "hourglass_flowing_sand", "done": "white_check_mark", "failed": "x"},
        put=partial(change_reaction, web.reactions_add),
        take=partial(change_reaction, web.reactions_remove),
        pause=PAUSE,
        scope=scope_of,
        time_of=time_of,
        is_sign=True,
    )


async def change_reaction(
    call: Callable[..., Awaitable[object]], address: Address, message_id: str, emoji: str
) -> None:
    """Add or remove a reaction; raises AdapterError."""
    with ERRORS.translated():
        try:
            await call(channel=address.chat_id, timestamp=message_id, name=emoji)
        except SlackApiError as error:
            if code_of(error) not in DONE_BEFORE:
                raise


def scope_of(error: AdapterError) -> RefusalScope:
    if str(error).startswith(LACKING):
        return "network"
    return "chat" if any(one in str(error) for one in NO_RIGHT) else ""


def time_of(message_id: str) -> float:
    """Return the time of a message, which is its id; infinity for any other id."""
    return float(message_id) if message_id.replace(".", "", 1).isdecimal() else inf
