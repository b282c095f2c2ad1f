"""A home with something of everything, and what is the user's in it."""

from pathlib import Path

import anyio
import pytest

from gateway.config.home import Home
from gateway.engine.interface import NewRecord
from gateway.engine.sqlite.engine import open_sqlite

TOKEN = "TELEGRAM_BOT_TOKEN=123:secret\n"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    for name, text in {
        ".env": TOKEN,
        "hooks/greet/HOOK.yaml": "events: [agent:end]\n",
        "hooks/greet/run": "#!/bin/sh\n",
        "hooks/greet/__pycache__/run.pyc": "made anew",
        "skills/cook/SKILL.md": "cook",
        "BOOT.md": "hello",
        "cache/huge": "Hermes's",
        "hermes-gateway/config.yaml": "{}\n",
        "hermes-gateway/hooks.lock": "{}",
        "hermes-gateway/installed/greet@1/HOOK.yaml": "x",
        "hermes-gateway/memory/a.jsonl": "{}\n",
        "hermes-gateway/files/telegram/1/notes ü\n.txt": "mine",
        "hermes-gateway/of-a-later-version/state": "new",
        "hermes-gateway/logs/gateway.log": "log",
        "hermes-gateway/backups/old.db": "old",
    }.items():
        (home.root / name).parent.mkdir(parents=True, exist_ok=True)
        (home.root / name).write_text(text)
    (home.hooks / "greet" / "run").chmod(0o755)
    anyio.run(fill, home.journal)
    return home


async def fill(journal: Path) -> None:
    async with await open_sqlite(journal) as engine:
        await engine.append(*(NewRecord("a.x", str(number).encode()) for number in range(20)))


def files_of(home: Home) -> dict[str, bytes]:
    """Return the user's files in it, without the journal, which is another file each time."""
    ours = ("journal.db", home.lock.name)
    found = (path for path in home.root.rglob("*") if path.is_file() and not path.name.startswith(ours))
    return {str(path.relative_to(home.root)): path.read_bytes() for path in found}
