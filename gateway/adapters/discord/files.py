"""Files that people send: what kind they are, and how they are fetched, within a size and a time."""

import logging
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio
import discord

from gateway.adapters.discord.connection import LIBRARY_ERRORS, as_adapter_error
from gateway.adapters.shared.incoming_files import display_name_of, save_file
from gateway.messages import Attachment

log = logging.getLogger(__name__)

LARGEST = 25_000_000
PATIENCE = 60.0

Kind: TypeAlias = Literal["image", "audio", "voice", "video", "document"]


async def fetch_file(file: discord.Attachment, folder: Path) -> Attachment | str:
    """The file in our store, or in words why it is not there: a message is not lost because its file is."""
    name = display_name_of(file.filename)
    if file.size > LARGEST:
        return f"[the file {name} has {file.size / 1e6:.0f} MB; {LARGEST / 1e6:.0f} MB are fetched at most]"
    try:
        with anyio.fail_after(PATIENCE):
            data = await file.read()
        about = Attachment(kind_of(file), "", file.filename, media_type_of(file))
        return await save_file(folder, str(file.id), data, about)
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


def kind_of(file: discord.Attachment) -> Kind:
    if file.is_voice_message():
        return "voice"
    kinds: dict[str, Any] = {"image": "image", "audio": "audio", "video": "video"}
    kind: Kind = kinds.get(media_type_of(file).partition("/")[0], "document")
    return kind


def media_type_of(file: discord.Attachment) -> str:
    return (file.content_type or "application/octet-stream").partition(";")[0].strip()
