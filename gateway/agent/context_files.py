"""Context files: what people wrote down for agents (AGENTS.md) stands behind the instructions.

They are read anew for each run, so that an edit counts from the next turn on. One that is missing is no fault; one that
is no text file, or too long, is passed over or cut, and the model is told where.
"""

from collections.abc import Sequence
from pathlib import Path

import anyio.to_thread

LONGEST = 32_000  # bytes of one file


async def read_context_files(paths: Sequence[Path]) -> str:
    """The text of those that are there, each under its name."""
    return await anyio.to_thread.run_sync(_read_all, paths) if paths else ""


def _read_all(paths: Sequence[Path]) -> str:
    return "\n\n".join(text for text in map(_read, paths) if text)


def _read(path: Path) -> str:
    try:
        if not path.is_file():  # a pipe in its place would hold us up
            return ""
        with path.open("rb") as file:
            data = file.read(LONGEST + 1)
    except OSError:
        return ""
    text = data[:LONGEST].decode("utf-8", "replace").strip()
    cut = f"\n[cut after {LONGEST} bytes]" if len(data) > LONGEST else ""
    return f"# {path.name}\n\n{text}{cut}" if text else ""
