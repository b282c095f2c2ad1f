"""Files that people send: fetched with the bot's token, and only from where Slack keeps its files."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import aiohttp
import anyio
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from gateway.adapters.shared.incoming_files import display_name_of, save_file
from gateway.adapters.slack.connection import LIBRARY_ERRORS, as_adapter_error, describe_missing_scopes
from gateway.messages import Attachment

log = logging.getLogger(__name__)

LARGEST = 25_000_000
PATIENCE = 60.0
FILE_HOST = "files.slack.com"

Kind: TypeAlias = Literal["image", "audio", "voice", "video", "document"]


async def fetch_file(web: AsyncWebClient, file: Mapping[str, Any], folder: Path) -> Attachment | str:
    """The file in our store, or in words why it is not there: a message is not lost because its file is."""
    name = display_name_of(str(file.get("name") or file.get("title") or "file"))
    size = int(file.get("size") or 0)
    if size > LARGEST:
        return f"[the file {name} has {size / 1e6:.0f} MB; {LARGEST / 1e6:.0f} MB are fetched at most]"
    try:
        with anyio.fail_after(PATIENCE):
            data = await download(web, str(file.get("url_private_download") or file.get("url_private") or ""), file)
        about = Attachment(kind_of(file), "", name, str(file.get("mimetype") or "application/octet-stream"))
        return await save_file(folder, str(file["id"]), data, about)
    except FetchFailed as error:
        why = str(error)
    except TimeoutError:
        why = f"it took more than {PATIENCE:.0f} s"
    except LIBRARY_ERRORS as error:
        why = (
            str(as_adapter_error(error))
            if not isinstance(error, OSError) or error.filename is None
            else "it cannot be kept"
        )
    log.warning("the file %s cannot be fetched: %s", name, why)
    return f"[the file {name} could not be fetched: {why}]"


class FetchFailed(Exception):
    """In words why a file is not there."""


async def download(web: AsyncWebClient, address: str, file: Mapping[str, Any]) -> bytes:
    """The bytes of a file. The token goes to Slack alone, wherever a file is said to lie or leads on to."""
    url = URL(address)
    if not (url.host == FILE_HOST and url.scheme == "https") and url.origin() != URL(web.base_url).origin():
        raise FetchFailed("it does not lie at Slack")
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Authorization": f"Bearer {web.token}"}, allow_redirects=False) as answer,
    ):
        if answer.status != 200 or (answer.content_type == "text/html" and file.get("mimetype") != "text/html"):
            raise FetchFailed(describe_missing_scopes(["files:read"]))
        data = await answer.content.read(LARGEST + 1)
        while len(data) <= LARGEST and (more := await answer.content.read(LARGEST + 1 - len(data))):
            data += more
    if len(data) > LARGEST:
        raise FetchFailed("it is larger than Slack said")
    return data


def kind_of(file: Mapping[str, Any]) -> Kind:
    if file.get("subtype") == "slack_audio":
        return "voice"
    kinds: dict[str, Kind] = {"image": "image", "audio": "audio", "video": "video"}
    return kinds.get(str(file.get("mimetype") or "").partition("/")[0], "document")
