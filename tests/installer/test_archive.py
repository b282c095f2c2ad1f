"""The limits of a stranger's archive: plain files below one folder, so many and so large."""

import tarfile
import tempfile
from pathlib import Path

import pytest

from gateway.errors import HookError
from gateway.installer import archive
from gateway.installer.archive import extract_archive
from tests.installer.archives import GREET, make_tar, make_zip


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def member(name: str, kind: bytes, leads_to: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, leads_to
    return made


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.xz"])
def test_a_tar_is_laid_out(tmp_path: Path, into: Path, name: str) -> None:
    extract_archive(make_tar(tmp_path / name, GREET), into)
    assert {path.name: path.read_text() for path in into.iterdir()} == GREET


def test_a_zip_is_laid_out_and_programs_stay_programs(tmp_path: Path, into: Path) -> None:
    files = {**GREET, "bin/run.sh": "#!/bin/sh\n"}
    extract_archive(make_zip(tmp_path / "a.zip", files, {"bin/run.sh": 0o100755}), into)
    assert (into / "bin" / "run.sh").stat().st_mode & 0o777 == 0o700
    assert (into / "handler.py").stat().st_mode & 0o777 == 0o600


def test_a_name_without_a_letter_is_said(tmp_path: Path, into: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"x.py": "x"})
    path.write_bytes(path.read_bytes().replace(b"x.py", b"\0.py"))
    with pytest.raises(HookError, match="cannot be unpacked"):
        extract_archive(path, into)


@pytest.mark.row("T25")
def test_what_was_changed_after_it_was_packed_is_refused(tmp_path: Path, into: Path) -> None:
    """The sum of all of it stands at the very end, behind the last file."""
    whole = make_tar(tmp_path / "a.tar.gz", GREET).read_bytes()
    for changed in (whole[:-8] + bytes(8), whole[:-8]):
        (tmp_path / "a.tar.gz").write_bytes(changed)
        with pytest.raises(HookError, match="cannot be unpacked"):
            extract_archive(tmp_path / "a.tar.gz", Path(tempfile.mkdtemp(dir=into)))


HOSTILE_NAMES = ["../out", "a/../../out", "/etc/out", "..\\out", "a\x1b[2Jb", "a/" * 30 + "b", "x" * 300]


@pytest.mark.row("T25")
@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_nothing_leads_out(tmp_path: Path, into: Path, name: str, kind: str) -> None:
    make = make_tar if kind == "tar" else make_zip
    path = make(tmp_path / f"a.{kind}", {"HOOK.yaml": "x", name: "out"})
    with pytest.raises(HookError, match=r"leads out of its folder|too long or too deep"):
        extract_archive(path, into)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a.{kind}", "into"]


ODD_MEMBERS = {
    "a link": member("handler.py", tarfile.SYMTYPE, "/etc/passwd"),
    "a hard link": member("handler.py", tarfile.LNKTYPE, "../../secret"),
    "a pipe": member("handler.py", tarfile.FIFOTYPE),
    "a device": member("handler.py", tarfile.CHRTYPE),
}


@pytest.mark.row("T25")
@pytest.mark.parametrize("odd", ODD_MEMBERS.values(), ids=ODD_MEMBERS)
def test_a_tar_has_plain_files_alone(tmp_path: Path, into: Path, odd: tarfile.TarInfo) -> None:
    with pytest.raises(HookError, match="a link or a device"):
        extract_archive(make_tar(tmp_path / "a.tar", {}, odd), into)
    assert not [*into.iterdir()]


@pytest.mark.row("T25")
def test_a_zip_has_plain_files_alone(tmp_path: Path, into: Path) -> None:
    path = make_zip(tmp_path / "a.zip", {"handler.py": "/etc/passwd"}, {"handler.py": 0o120777})
    with pytest.raises(HookError, match="a link or a device"):
        extract_archive(path, into)


@pytest.mark.parametrize("names", [("a.py", "a.py"), ("a.py", "A.py")])
def test_no_file_comes_twice(tmp_path: Path, into: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as packed:
        for name in names:
            packed.addfile(tarfile.TarInfo(name))
    with pytest.raises(HookError, match="twice, or in two spellings"):
        extract_archive(path, into)


@pytest.mark.row("T25")
@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tar.xz"])
def test_a_small_file_does_not_become_a_large_one(tmp_path: Path, into: Path, ending: str) -> None:
    zeros = "\0" * (archive.MAX_BYTES + (1 << 20))
    make = make_zip if ending == "zip" else make_tar
    path = make(tmp_path / f"a.{ending}", {"zeros": zeros})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(HookError, match="holds more than 64 MB"):
        extract_archive(path, into)


@pytest.mark.row("T25")
@pytest.mark.parametrize(("length", "count"), [(archive.MAX_HEADER, 1), (4000, archive.MAX_HEADERS // 4000 + 1)])
def test_nor_do_headers(tmp_path: Path, into: Path, length: int, count: int) -> None:
    """A name may be as long as its archive: it is counted before it is kept in memory, and looked through."""
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT, compresslevel=1) as packed:
        for _ in range(count):
            made = tarfile.TarInfo("x")
            made.type, made.pax_headers = tarfile.DIRTYPE, {"comment": "x" * length}
            packed.addfile(made)
    with pytest.raises(HookError, match="other words about its files, without end"):
        extract_archive(path, into)


@pytest.mark.parametrize("end", ["", "/"])
def test_nor_many_files_or_folders(tmp_path: Path, into: Path, end: str) -> None:
    path = make_zip(tmp_path / "a.zip", {f"f{number}{end}": "" for number in range(archive.MAX_FILES + 1)})
    with pytest.raises(HookError, match="more than 5000 files and folders"):
        extract_archive(path, into)


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04broken", b"\x1f\x8bbroken", b"no archive at all" * 100, b"BZhbroken"]
)
def test_what_is_no_archive_is_said(tmp_path: Path, into: Path, data: bytes) -> None:
    (tmp_path / "a.tar.gz").write_bytes(data)
    with pytest.raises(HookError, match=r"cannot be unpacked|not an archive|is empty"):
        extract_archive(tmp_path / "a.tar.gz", into)
