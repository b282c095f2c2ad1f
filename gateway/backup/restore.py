"""The restore of a home's copy: all of it or nothing, whenever it is interrupted.

The copy is extracted and verified beside the home; until then nothing of the home has changed. Then its folder is
renamed to `restore`, which is the decisive step: from there on each piece is only moved, an earlier one goes to
`replaced`, and the next process, even a start of the gateway, finishes an interrupted restore.
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
    """The restored pieces, and the present place of those that they replaced; None: nothing was replaced."""

    archive: ReadArchive
    pieces: tuple[str, ...]
    replaced: Path | None


def restore_archive(archive: Path, home: Home, *, replace: bool, own_only: bool = False) -> RestoreOutcome:
    """Replace the content of a home by a copy; no gateway may serve the home.

    `own_only`: only the pieces below our own folder; all others stay.

    Raises:
        HomeBusy: a gateway serves it.
        BackupError: the copy is not complete, or a piece exists and must not be replaced, or is mounted so that it
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
