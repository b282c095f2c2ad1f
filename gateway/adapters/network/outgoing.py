"""Files that go out: their bytes, or in words why there are none."""

import anyio

from gateway.errors import AdapterError
from gateway.messages import Attachment


async def contents(attachment: Attachment, largest: int, network: str) -> bytes:
    """The bytes of a file that goes out; `largest` is what the network takes.

    Raises:
        AdapterError: it is not there, no plain file, or too large.
    """
    path = anyio.Path(attachment.path)
    name = attachment.name or path.name
    try:
        if not await path.is_file():
            raise AdapterError(f"there is no file {attachment.path}", permanent=True)
        size = (await path.stat()).st_size
        if size > largest:
            raise AdapterError(
                f"{name} has {size / 1e6:.0f} MB; {network} takes {largest / 1e6:.0f} MB", permanent=True
            )
        return await path.read_bytes()
    except OSError as error:
        raise AdapterError(f"{name} cannot be read: {error.strerror}", permanent=True) from None
