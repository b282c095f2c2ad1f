"""The connection to Slack: a client made from the settings, and Slack's errors in our words, with the remedy.

No text of ours contains a token.
"""

from functools import partial
from typing import Any, Final

import aiohttp
import msgspec
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from gateway.adapters.shared.network_errors import NetworkErrors, make_rate_limit_error, read_seconds
from gateway.adapters.slack.manifest import SCOPES
from gateway.adapters.slack.settings import SlackSettings
from gateway.errors import AdapterError

PLATFORM: Final = "slack"
API: Final = "https://slack.com/api/"
APPS: Final = "https://api.slack.com/apps"
WAIT: Final = 15  # seconds for an answer
TIMEOUT: Final = aiohttp.ClientTimeout(total=WAIT, sock_connect=10)  # without it, the library waits for five minutes
KINDS: Final = (SlackClientError, aiohttp.ClientError, OSError, TimeoutError)

LACKING: Final = "the app lacks"
BAD_TOKENS: Final = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "org_login_required"}
)
PASSING_ERRORS: Final = frozenset(
    {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org", "msg_too_busy"}
)
REFUSALS: Final = {
    "channel_not_found": "the channel was not found, or the bot is not in it: /invite it there",
    "not_in_channel": "the bot is not a member of that channel: /invite it there",
    "is_archived": "that channel is archived",
    "message_not_found": "the message is gone",
    "cant_update_message": "the message is not the bot's own",
    "edit_window_closed": "the message is too old to be edited in this workspace",
    "restricted_action": "the workspace has blocked the bot from writing there",
    "cannot_dm_bot": "bots cannot be written to",
    "user_not_found": "no person with this id in the workspace",
}


class TokenRefused(AdapterError):
    """A token is no longer valid."""


class SlackIdentity(msgspec.Struct, frozen=True):
    """The identity of the bot, and its workspace."""

    user: str
    bot: str
    team: str
    name: str
    workspace: str
    url: str


def make_client(settings: SlackSettings) -> AsyncWebClient:
    base = settings.base_url.rstrip("/")
    return AsyncWebClient(
        token=settings.bot_token.reveal(), base_url=f"{base}/" if base else API, timeout=WAIT, retry_handlers=[]
    )


async def fetch_identity(web: AsyncWebClient) -> tuple[SlackIdentity, list[str]]:
    """Return the bot's identity, and complaints about missing scopes; the call proves the bot's token."""
    answer = await web.auth_test()
    names = [str(answer.get(name) or "") for name in ("user_id", "bot_id", "team_id", "user", "team", "url")]
    user, bot, team, name, workspace, url = names
    headers = {name.lower(): value for name, value in answer.headers.items()}
    lacks = list_missing_scopes(str(headers.get("x-oauth-scopes", "")))
    complaints = [describe_missing_scopes(lacks)] if lacks else []
    return SlackIdentity(user, bot, team, f"@{name}", workspace, url), complaints


async def fetch_socket_url(web: AsyncWebClient, settings: SlackSettings) -> str:
    """Return the address for a new connection; the call proves the app's token."""
    with APP_ERRORS.translated():
        answer = await web.apps_connections_open(app_token=settings.app_token.reveal())
    return str(answer["url"])


async def fetch_messages(web: AsyncWebClient, channel: str, thread: str, **how: Any) -> Any:
    """Fetch the messages of a channel, or of a thread in it."""
    if thread:
        return (await web.conversations_replies(channel=channel, ts=thread, **how))["messages"]
    return (await web.conversations_history(channel=channel, **how))["messages"]


def code_of(error: Exception) -> str:
    """Return Slack's code of the error."""
    return str(answer_of(error).get("error", "")) if isinstance(error, SlackApiError) else ""


def answer_of(error: SlackApiError) -> dict[str, Any]:
    data = error.response if isinstance(error.response, dict) else getattr(error.response, "data", None)
    return data if isinstance(data, dict) else {}


def as_adapter_error(error: Exception, *, variable: str = "SLACK_BOT_TOKEN") -> AdapterError:
    """Describe an error for people and for the outbox: permanent, or worth another try, and when."""
    match error:
        case AdapterError():
            return error
        case SlackApiError():
            return refusal_from(error, variable)
        case TimeoutError():
            return AdapterError("Slack did not answer in time")
        case aiohttp.ClientError() | OSError():
            return AdapterError(f"Slack cannot be reached: {error}")
    return AdapterError(f"Slack: {error}")


def refusal_from(error: SlackApiError, variable: str) -> AdapterError:
    """Describe an answer by which Slack refused a request."""
    code, answer = code_of(error), answer_of(error)
    status = getattr(error.response, "status_code", 200)
    if code == "ratelimited" or status == 429:
        return make_rate_limit_error("Slack", retry_after_of(error))
    if code in BAD_TOKENS:
        return TokenRefused(
            f"Slack does not take the token in {variable} ({code}): get the present one at {APPS}, your app, "
            f"{'Basic Information, App-Level Tokens' if 'APP' in variable else 'OAuth & Permissions'}"
        )
    if code == "not_allowed_token_type":
        return AdapterError(
            "Slack wants another kind of token: SLACK_BOT_TOKEN begins with xoxb-, SLACK_APP_TOKEN with xapp-"
        )
    if code == "missing_scope":
        return AdapterError(describe_missing_scopes(str(answer.get("needed", "")).split(",")), permanent=True)
    if status >= 500 or code in PASSING_ERRORS:
        return AdapterError(f"Slack is ill ({code or status})")
    return AdapterError(f"Slack refused: {REFUSALS.get(code, code or status)} ({code})", permanent=True)


def describe_missing_scopes(scopes: list[str]) -> str:
    """Describe missing scopes, with the remedy."""
    if scopes == ["connections:write"]:
        return f"the app's token lacks connections:write: make a new one at {APPS}, your app, App-Level Tokens"
    return (
        f"{LACKING} {', '.join(scopes)}: add it at {APPS}, your app, OAuth & Permissions, Bot Token Scopes, and "
        "install the app to the workspace again"
    )


def list_missing_scopes(granted: str) -> list[str]:
    """Return the needed scopes that Slack did not grant; each answer of Slack's lists the granted ones."""
    have = {one.strip() for one in granted.split(",")}
    return [one for one in SCOPES if one not in have] if granted else []


def retry_after_of(error: SlackApiError) -> float:
    return read_seconds(getattr(error.response, "headers", None) or {}, absent=1.0)


ERRORS: Final = NetworkErrors(KINDS, as_adapter_error)
APP_ERRORS: Final = NetworkErrors(KINDS, partial(as_adapter_error, variable="SLACK_APP_TOKEN"))
