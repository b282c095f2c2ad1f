"""The files of unreadable input from networks: for the owner alone to look at, with secrets masked.

The input is beside the journal and not in it: its author is not known, and so was never authorized. The newest files of
each network are kept; old ones are removed like the files that came with messages.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_FILES = 100  # files of one network
LARGEST = 64_000  # bytes


def write_unreadable(folder: Path, platform: str, text: str) -> Path:
    """Write a file, unless the same input is there already, and keep only the newest of this network.

    Raises:
        OSError: the file cannot be written.
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
    """Describe the input as one JSON object; a value that JSON does not have is shown by its repr."""
    said = {"kind": kind, "reason": reason, "payload": payload}
    return json.dumps(said, indent=2, ensure_ascii=False, default=repr)  # the standard library's: it takes any text
