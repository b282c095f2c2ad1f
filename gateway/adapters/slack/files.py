"""The files of Slack, both ways.

Files of people are downloaded with the bot's token, and only from Slack's own hosts. Ours are uploaded in three steps,
as Slack requires: the library's own method for that holds up everything else.
"""

import io
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

from gateway.adapters.shared import files
from gateway.adapters.shared.files import LoadedFile
from gateway.adapters.slack.connection import ERRORS, describe_missing_scopes, fetch_messages
from gateway.adapters.slack.reader import list_shared_files
from gateway.errors import AdapterError
from gateway.messages.message import Attachment, kind_of

log = logging.getLogger(__name__)

LARGEST = 25_000_000
FILE = "file:"  # before the id of a file that is a message
UPLOAD = aiohttp.ClientTimeout(total=120)
FILE_HOST = "files.slack.com"


async def fetch_file(file: Mapping[str, Any], folder: Path, web: AsyncWebClient) -> Attachment | str:
    """Download a file to our store; return it, or the reason why it is missing, in words."""
    name = str(file.get("name") or file.get("title") or "file")
    media_type = str(file.get("mimetype") or "application/octet-stream")
    kind = "voice" if file.get("subtype") == "slack_audio" else kind_of(media_type)
    about = Attachment(kind, "", name, media_type, int(file.get("size") or 0))
    return await files.fetch_file(about, str(file["id"]), folder, LARGEST, partial(download, web, file))


async def list_parent_files(web: AsyncWebClient, channel: str, thread: str) -> tuple[Mapping[str, Any], ...]:
    """List the pictures and documents of a thread's first message; none if it cannot be read."""
    found: tuple[Mapping[str, Any], ...] = ()
    with ERRORS.logged(log.info, "what a thread of %s hangs on cannot be read", channel):
        messages = await fetch_messages(web, channel, thread, limit=1)
        parent = next((one for one in messages if isinstance(one, dict) and one.get("ts") == thread), {})
        found = (*(parent.get("files") or ()), *list_shared_files(parent))
    return tuple(one for one in found if not str(one.get("mimetype")).startswith(("audio/", "video/")))


async def download(web: AsyncWebClient, file: Mapping[str, Any]) -> bytes:
    """Download the bytes of a file.

    Raises:
        AdapterError: they are not available; with the reason.
    """
    with ERRORS.translated():
        return await read_from(web, str(file.get("url_private_download") or file.get("url_private") or ""), file)


async def read_from(web: AsyncWebClient, address: str, file: Mapping[str, Any]) -> bytes:
    """Read the bytes at an address; only Slack gets the token, whatever host an event names or a redirect leads to."""
    url = URL(address)
    if not (url.host == FILE_HOST and url.scheme == "https") and url.origin() != URL(web.base_url).origin():
        raise AdapterError("it is not a file of Slack")
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Authorization": f"Bearer {web.token}"}, allow_redirects=False) as answer,
    ):
        if answer.status != 200 or (answer.content_type == "text/html" and file.get("mimetype") != "text/html"):
            raise AdapterError(describe_missing_scopes(["files:read"]))
        data = await answer.content.read(LARGEST + 1)
        while len(data) <= LARGEST and (more := await answer.content.read(LARGEST + 1 - len(data))):
            data += more
    if len(data) > LARGEST:
        raise AdapterError("it is larger than Slack said")
    return data


async def send_files(
    web: AsyncWebClient, sent: Sequence[LoadedFile], channel: str, thread: str, words: str | None
) -> tuple[str, ...]:
    """Send all files as one message, with these words, and return the files' ids."""
    placed: list[dict[str, str | None]] = [{"id": await send_file(web, one), "title": one.name} for one in sent]
    done = await web.files_completeUploadExternal(
        files=placed, channel_id=channel, thread_ts=thread or None, initial_comment=words
    )
    return tuple(f"{FILE}{one['id']}" for one in done["files"])


async def send_file(web: AsyncWebClient, file: LoadedFile) -> str:
    """Upload a file that Slack shows to no person yet; return its id."""
    place = await web.files_getUploadURLExternal(filename=file.name, length=len(file.data))
    assert web.session
    async with web.session.post(place["upload_url"], data=io.BytesIO(file.data), timeout=UPLOAD) as answer:
        if answer.status != 200:
            raise AdapterError(f"Slack did not take {file.name} ({answer.status})")
    return str(place["file_id"])
