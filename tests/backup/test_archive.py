"""An archive of a home: its content, and the refusal of forged ones."""

import gzip
import hashlib
import io
import json
import os
import sqlite3
import struct
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from gateway.backup.archive import write_archive
from gateway.backup.archive_reader import read_archive
from gateway.backup.contents import MANIFEST, BackupError
from gateway.backup.restore import restore_archive
from gateway.config.home import Home
from gateway.errors import EngineError
from gateway.worker.sandbox import find_support
from tests.backup.conftest import TOKEN, files_of


def test_all_that_is_the_users_is_in_it_and_comes_back(home: Home, tmp_path: Path) -> None:
    made = write_archive(home, tmp_path / "copy.tar.gz", with_env=False)
    assert (made.journal and made.journal.records, made.path.stat().st_mode & 0o777) == (20, 0o600)
    other = Home(tmp_path / "other" / "machine")
    done = restore_archive(made.path, other, replace=False)
    left = {".env", "cache/huge", "hooks/greet/__pycache__/run.pyc"}
    left |= {"hermes-gateway/logs/gateway.log", "hermes-gateway/backups/old.db"}
    kept = {name: data for name, data in files_of(home).items() if name not in left}
    assert files_of(other) == kept
    assert (done.replaced, done.archive.secrets, made.files) == (None, ("TELEGRAM_BOT_TOKEN",), len(kept) + 1)
    modes = [(other.hooks / "greet" / name).stat().st_mode & 0o777 for name in ("run", "HOOK.yaml")]
    assert modes == [0o700, 0o600]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_secrets_go_along_only_when_somebody_wants_them(home: Home, tmp_path: Path) -> None:
    home.config_undo.write_text(TOKEN)  # as `config set` keeps the bytes that it replaced
    for name, with_env in (("with", True), ("without", False)):
        made = write_archive(home, tmp_path / name, with_env=with_env)
        assert (b"123:secret" in gzip.decompress(made.path.read_bytes())) is with_env
        restore_archive(made.path, other := Home(tmp_path / f"{name}-home"), replace=False)
        assert other.env.exists() is with_env


def test_links_and_what_is_no_file_are_named_and_not_followed(home: Home, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "key").write_text("not for a copy")
    (home.hooks / "linked").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(home.hooks / "greet" / "pipe")
    made = write_archive(home, tmp_path / "copy", with_env=True)
    assert made.left_out == {"hooks/linked": f"a link to {tmp_path / 'elsewhere'}"}
    assert b"not for a copy" not in gzip.decompress(made.path.read_bytes())


def test_a_database_that_a_hook_writes_is_copied_as_of_one_instant(home: Home, tmp_path: Path) -> None:
    place = home.hook_data / "greet" / "own.db"
    place.parent.mkdir(parents=True)
    with closing(sqlite3.connect(place)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE said(word)")
        db.execute("INSERT INTO said VALUES ('kept')")
        db.commit()
        assert Path(f"{place}-wal").stat().st_size > 0
        db.execute("INSERT INTO said VALUES ('not yet')")
        made = write_archive(home, tmp_path / "copy", with_env=False)
    restore_archive(made.path, other := Home(tmp_path / "other"), replace=False)
    with closing(sqlite3.connect(other.hook_data / "greet" / "own.db")) as db:
        assert db.execute("SELECT * FROM said").fetchall() == [("kept",)]
    assert [path.name for path in (other.hook_data / "greet").iterdir()] == ["own.db"]


def test_a_link_that_takes_a_folders_place_meanwhile_leads_nowhere(home: Home, tmp_path: Path) -> None:
    """A hook may do so in its own folder, and would find what lies there when the copy is put back."""
    own, there, length = home.hook_data / "greet", tmp_path / "there", 12345
    for place in (own, there):
        place.mkdir(parents=True)
        (place / "first").write_text("x" * length)
        (place / "second").write_text(f"of {place.name}")

    def lay_link(read: int) -> None:
        if read == length:  # the first one, and they have been listed
            own.rename(tmp_path / "away")
            own.symlink_to(there)

    made = write_archive(home, tmp_path / "copy", with_env=False, count=lay_link)
    assert "hermes-gateway/data/greet/second" in made.left_out
    assert b"of there" not in gzip.decompress(made.path.read_bytes())


@pytest.mark.skipif(not find_support().landlock, reason="files are not held here")
def test_a_database_of_a_hook_has_nothing_else_removed(home: Home, tmp_path: Path) -> None:
    """The journal of one that was cut off names a file that is to go when it has been rolled back."""
    place = home.hook_data / "greet" / "own.db"
    place.parent.mkdir(parents=True)
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        db.execute("CREATE TABLE said(word)")
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN")
        db.executemany("INSERT INTO said VALUES (?)", [("word" * 100,)] * 200)
        cut_off = {file: file.read_bytes() for file in (place, Path(f"{place}-journal"))}
    precious = tmp_path / "precious"
    precious.write_text("kept")
    name, page, sign = os.fsencode(precious), (1 << 30) // 4096 + 1, bytes.fromhex("d9d505f920a163d7")
    named = struct.pack(">I", page) + name + struct.pack(">II", len(name), sum(name)) + sign
    for file, data in cut_off.items():
        file.write_bytes(data + (named if file != place else b""))
    write_archive(home, tmp_path / "copy", with_env=False)
    assert precious.exists()


def test_nothing_is_overwritten_and_nothing_is_no_copy(home: Home, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(BackupError, match="exists already"):
        write_archive(home, tmp_path / "there", with_env=False)
    with pytest.raises(BackupError, match="nothing to copy"):
        write_archive(Home(tmp_path / "nowhere"), tmp_path / "copy", with_env=False)
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "copy").exists()


def test_a_damaged_journal_is_no_copy(home: Home, tmp_path: Path) -> None:
    with home.journal.open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff" * 8000)
    with pytest.raises(EngineError, match="damaged"):
        write_archive(home, tmp_path / "copy", with_env=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_where_something_is_it_says_so_and_changes_nothing(home: Home, tmp_path: Path) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    before = files_of(home)
    with pytest.raises(BackupError, match=r"is not empty: it has BOOT.md, hermes-gateway/config.yaml.*\n.*--replace"):
        restore_archive(copy, home, replace=False)
    assert files_of(home) == before


def test_what_is_replaced_is_kept_aside_and_hermes_files_stay(home: Home, tmp_path: Path) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    (home.hooks / "greet" / "HOOK.yaml").write_text("changed since")
    (home.plugins / "new").mkdir(parents=True)
    (home.plugins / "new" / "plugin.yaml").write_text("came since")
    done = restore_archive(copy, home, replace=True)
    assert done.replaced
    assert done.replaced.parent == home.replaced
    assert (home.hooks / "greet" / "HOOK.yaml").read_text() == "events: [agent:end]\n"
    assert not home.plugins.exists()
    assert (done.replaced / "hooks" / "greet" / "HOOK.yaml").read_text() == "changed since"
    assert (done.replaced / "plugins" / "new" / "plugin.yaml").read_text() == "came since"
    assert (done.replaced / "hermes-gateway" / "journal.db").exists()
    assert (home.env.read_text(), (home.root / "cache" / "huge").read_text()) == (TOKEN, "Hermes's")


def header_of(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return made


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/tmp/outside",
        "hooks/../../outside",
        "hooks//x",
        "hooks/./x",
        "cache/x",
        "hermes-gateway/journal.db-wal",
        "hermes-gateway/logs/x",
        "hermes-gateway/../outside",
        "hermes-gateway",
        "hooks/nul\0x",
        "outside\x1b[2J",
    ],
)
def test_a_path_that_no_copy_has_is_refused(home: Home, tmp_path: Path, name: str) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    packed = header_of("x")
    packed.pax_headers = {"path": name}
    with tarfile.open(copy) as good, tarfile.open(tmp_path / "evil", "w:gz", format=tarfile.PAX_FORMAT) as into:
        into.addfile(packed)
        into.addfile(next(one for one in good if one.name == MANIFEST), good.extractfile(MANIFEST))
    other = Home(tmp_path / "other")
    with pytest.raises(BackupError) as caught:
        restore_archive(tmp_path / "evil", other, replace=True)
    assert "\x1b" not in str(caught.value)
    assert files_of(other) == {}
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize(
    "odd",
    [
        header_of("hooks/x", tarfile.SYMTYPE, "/etc"),
        header_of("hooks/x", tarfile.LNKTYPE, "../../outside"),
        header_of("hooks/x", tarfile.FIFOTYPE),
        header_of("hooks/x", tarfile.CHRTYPE),
        header_of("hooks/greet/HOOK.yaml"),  # it comes once more
        header_of("hooks"),  # a file where folders are
        header_of("BACKUP.json"),
        header_of("BOOT.md/x"),
    ],
    ids=lambda odd: f"{odd.name} {odd.type!r}",
)
def test_what_is_no_plain_file_or_comes_twice_is_refused(home: Home, tmp_path: Path, odd: tarfile.TarInfo) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    with tarfile.open(copy) as good, tarfile.open(tmp_path / "evil", "w:gz") as into:
        into.addfile(odd)
        for member in good:
            into.addfile(member, good.extractfile(member))
    other = Home(tmp_path / "other")
    with pytest.raises(BackupError):
        restore_archive(tmp_path / "evil", other, replace=True)
    assert files_of(other) == {}


def test_a_header_without_end_is_not_read(tmp_path: Path) -> None:
    """Python's reader takes what stands before a file into memory whole."""
    with gzip.open(tmp_path / "bomb", "wb") as file:
        file.write(header_of("x", tarfile.XHDTYPE, size=1 << 40).tobuf(tarfile.GNU_FORMAT))
        file.writelines(bytes(1 << 20) for _ in range(8))
    with pytest.raises(BackupError, match="header that is too long"):
        read_archive(tmp_path / "bomb")


def test_headers_within_headers_come_to_an_end(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "deep", "wb") as file:
        for _ in range(5000):
            file.write(header_of("x", tarfile.XHDTYPE).tobuf())
    with pytest.raises(BackupError):
        read_archive(tmp_path / "deep")


def test_a_file_larger_than_the_disk_is_refused_before_it_is_written(home: Home, tmp_path: Path) -> None:
    huge = header_of("hooks/huge", size=1 << 50)
    with gzip.open(tmp_path / "huge", "wb") as file:
        file.write(huge.tobuf(tarfile.GNU_FORMAT))
    with pytest.raises(BackupError, match="no space left"):
        restore_archive(tmp_path / "huge", Home(tmp_path / "other"), replace=False)


def test_any_byte_that_changed_is_noticed(home: Home, tmp_path: Path) -> None:
    copy = write_archive(home, tmp_path / "copy", with_env=False).path
    plain = gzip.decompress(copy.read_bytes())
    for found, instead in ((b"events: [agent:end]", b"events: [agent:*  ]"), (b"mine", b"ours")):
        (tmp_path / "changed").write_bytes(gzip.compress(plain.replace(found, instead, 1)))
        with pytest.raises(BackupError, match="not as it was made"):
            read_archive(tmp_path / "changed")
    whole = copy.read_bytes()
    for length in (len(whole) // 3, len(whole) - 20, 30):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(BackupError):
            read_archive(tmp_path / "cut")


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"format": 2, "version": "9"}, "a later version, 9"),
        ({"format": 1}, "not as we write it"),
        ([], "not as we write it"),
        ("[" * 100_000, "not as we write it"),
        ({"format": "x"}, "not as we write it"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, said: object, complaint: str) -> None:
    text = said if isinstance(said, str) else json.dumps(said)
    with tarfile.open(tmp_path / "odd", "w:gz") as packed:
        packed.addfile(header_of(MANIFEST, size=len(text)), io.BytesIO(text.encode()))
    with pytest.raises(BackupError, match=complaint):
        read_archive(tmp_path / "odd")


def test_the_journal_in_it_is_looked_through_before_anything_changes(home: Home, tmp_path: Path) -> None:
    """Though all digests are right."""
    bad = b"SQLite format 3\0" + bytes(9000)
    digests = {"hermes-gateway/journal.db": hashlib.sha256(bad).hexdigest()}
    about = {"format": 1, "version": "1", "home": "/", "made": 1.0, "digests": digests, "left_out": {}, "secrets": []}
    text = json.dumps(about).encode()
    with tarfile.open(tmp_path / "evil", "w:gz") as packed:
        packed.addfile(header_of("hermes-gateway/journal.db", size=len(bad)), io.BytesIO(bad))
        packed.addfile(header_of(MANIFEST, size=len(text)), io.BytesIO(text))
    before = files_of(home)
    with pytest.raises(EngineError):
        restore_archive(tmp_path / "evil", home, replace=True)
    assert files_of(home) == before
