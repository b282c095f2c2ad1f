"""A copy of a home is put back: all of it or nothing, whenever it is cut off.

It is laid out and verified beside everything; until then nothing of the home has changed. Then its folder is given the
name `restore`, which is the step that counts: from there on each piece is only moved, what stood in its place goes to
`replaced`, and whoever comes next, the start of the gateway too, finishes what was cut off.
"""

import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from gateway.backup.archive_reader import ReadArchive, read_archive
from gateway.backup.contents import ENV, JOURNAL, BackupError, list_pieces
from gateway.backup.mounts import check_mounts
from gateway.backup.restore_plan import NEW, apply_plan, has_content, resume_restore, write_plan
from gateway.config.home import OWN_FOLDER, Home
from gateway.engine.sqlite.backup import verify_journal
from gateway.engine.sqlite.journal_file import FileLock

MOST_NAMED = 8


class RestoreOutcome(msgspec.Struct, frozen=True):
    """What was put back, and where that is now which stood there; None: nothing did."""

    archive: ReadArchive
    pieces: tuple[str, ...]
    replaced: Path | None


def restore_archive(archive: Path, home: Home, *, replace: bool, own_only: bool = False) -> RestoreOutcome:
    """Put a copy in the place of what is in a home; no gateway may serve it.

    `own_only`: what lies below our own folder; all else stays.

    Raises:
        HomeBusy: a gateway serves it.
        BackupError: the copy is not whole, or something is there and is not to be replaced, or is mounted so that it
            cannot be; nothing has changed.
        EngineError: the journal in it is damaged; nothing has changed.
    """
    home.own_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    resume_restore(home)
    with closing(FileLock(home.journal)):
        part = home.restore_part
        shutil.rmtree(part, ignore_errors=True)
        try:
            (part / NEW).mkdir(parents=True, mode=0o700)
            found = read_archive(archive, part / NEW)
            if JOURNAL in found.digests:
                verify_journal(part / NEW / JOURNAL)
            wanted = f"{OWN_FOLDER}/" if own_only else ""
            pieces = [name for name in list_pieces(Home(part / NEW), with_env=True) if name.startswith(wanted)]
            mine = [name for name in list_pieces(home, with_env=ENV in pieces) if name.startswith(wanted)]
            there = [name for name in mine if has_content(home.root / name)]
            if there and not replace:
                raise BackupError(describe_conflict(home, there))
            check_mounts(home, sorted({*pieces, *there}))
            write_plan(part, home, pieces, there)
            part.rename(home.restore)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        kept = apply_plan(home)
    return RestoreOutcome(found, tuple(pieces), kept)


def describe_conflict(home: Home, there: Sequence[str]) -> str:
    more = f" and {len(there) - MOST_NAMED} more" if len(there) > MOST_NAMED else ""
    return (
        f"{home.root} is not empty: it has {', '.join(there[:MOST_NAMED])}{more}; nothing was put back\n"
        "choose an empty home with --home DIR, or say --replace: what is there is then kept aside"
    )
