"""What a network sent and nobody could read, as files for whoever wants to look: masked, and for the owner's eyes.

It lies beside the journal and not in it: nobody knows whose it is, and so nobody has let it in. Of each network the
newest are kept; what is old goes as the files do that came with messages.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_FILES = 100  # a network
LARGEST = 64_000  # bytes


def write_unreadable(folder: Path, platform: str, text: str) -> Path:
    """Keep it, and of this network the newest only. What is there already is not written twice.

    Raises:
        OSError: it cannot be kept.
    """
    data = text.encode("utf-8", "replace")[:LARGEST]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{platform}-{hashlib.sha256(data).hexdigest()[:16]}.json"
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        kept = sorted(folder.glob(f"{platform}-*.json"), key=lambda one: one.stat().st_mtime_ns)
        for old in kept[:-MOST_FILES]:
            old.unlink(missing_ok=True)
    return path


def format_unreadable(kind: str, reason: str, payload: Any) -> str:
    """One JSON object; what is no data in it is described."""
    said = {"kind": kind, "reason": reason, "payload": payload}
    return json.dumps(said, indent=2, ensure_ascii=False, default=repr)  # of the standard library: it takes any text
