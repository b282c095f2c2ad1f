"""Files that came in at a gateway before it shared them with others."""

import logging
from contextlib import suppress

from gateway.config.home import Home
from gateway.shared_files import SharedFiles
from gateway.threads import run_in_thread
from gateway.yaml_source.units import format_count

log = logging.getLogger(__name__)


async def put_received_files(files: SharedFiles, home: Home) -> None:
    """Let other gateways have what lies here from before they could, once; where nobody shares files nothing is done.

    What others have already is passed over, so the next start goes on with one that was cut off. A home whose own
    journal was not taken along keeps what came in under that.

    Raises:
        EngineError: they are not all stored.
    """
    if not files.is_shared or await run_in_thread(home.shared_files.exists):
        return
    since = 0.0
    with suppress(OSError):
        since = home.journal.stat().st_mtime
    if count := await files.put_all(since):
        log.info("other gateways can have what people had sent here before: %s", format_count(count, "file"))
    await run_in_thread(home.shared_files.touch)
