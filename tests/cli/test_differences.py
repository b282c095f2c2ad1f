"""The changes of an update are visible before it is accepted, whatever its author does to hide them."""

import hashlib
from pathlib import Path

import pytest

from gateway.cli.hooks.differences import FileText, describe_differences, list_unreadable_code, read_contents
from tests.installer.archives import put

NUL, NULS = (hashlib.sha256(data).hexdigest() for data in (b"\0", b"\0\0"))
HIDDEN = b"print('hello')  # once%s    print('more')\n"


def differences(then: bytes, now: bytes) -> list[str]:
    return [*describe_differences({"handler.py": FileText(then)}, {"handler.py": FileText(now)})]


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("sign", "shown"),
    [(b"\x0b", r"\x0b"), (b"\x0c", r"\x0c"), (b"\r", r"\r"), (b"\x1c", r"\x1c"), (b"\xc2\x85", r"\x85")],
)
def test_a_sign_that_ends_no_line_for_python_or_a_shell_ends_none_here(sign: bytes, shown: str) -> None:
    assert differences(HIDDEN % sign, HIDDEN % b"\n") == [
        "--- a/handler.py",
        "+++ b/handler.py",
        "@@ -1 +1,2 @@",
        f"-print('hello')  # once{shown}    print('more')",
        "+print('hello')  # once",
        "+    print('more')",
    ]


@pytest.mark.row("T25")
def test_code_that_is_no_utf_8_is_shown() -> None:
    assert differences(b"# \xe4\n", b"# \xe4\nprint('more')\n")[-2:] == [r" # \udce4", "+print('more')"]
    assert differences(b"# \xe4\n", b"# \\xe4\n")[-2:] == [r"-# \udce4", r"+# \xe4"]


@pytest.mark.row("T25")
def test_what_is_no_line_is_told_too() -> None:
    then = {
        "gone": FileText(b""),
        "same": FileText(b"\0"),
        "picture": FileText(b"\0"),
        "run": FileText(b"x\n"),
        "end": FileText(b"x"),
    }
    now = {
        "new": FileText(b""),
        "same": FileText(b"\0"),
        "picture": FileText(b"\0\0"),
        "run": FileText(b"x\n", True),
        "end": FileText(b"x\n"),
    }
    told = [line for line in describe_differences(then, now) if not line.startswith(("---", "@@"))]
    assert told == [
        "end differs in how it ends",
        "+++ b/gone",
        "-",
        "+++ b/new",
        "+",
        f"picture is not text, differs, and is not shown: 1 byte with sha256 {NUL}, now 2 bytes with sha256 {NULS}",
        "run is a program",
    ]


@pytest.mark.row("T25")
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (b"print('hello')  #\0\n", "holds NUL bytes"),
        (b"# \xe4\n", "is not UTF-8"),
        (b"# coding: latin-1\n# \xe4\n", "is not UTF-8"),
        (b"# coding: utf-7\n# +AAo-print('more')\n", "is in utf-7"),
        (b"# coding: utf-16\n", "is in utf-16"),
        (b"# coding: no-such\n", "is not UTF-8"),
        (b"# once\rprint('more')\n", r"has lines that end with \r alone"),
        (b"# once\r\nprint('more')\r\n", ""),
        ("\ufeff# \u00e4\n".encode(), ""),
    ],
)
def test_python_that_is_read_in_another_way_than_it_is_shown_is_named_first(code: bytes, why: str) -> None:
    first, *_ = differences(b"print('hello')\n", code)
    told = f"! handler.py {why}: what Python runs of it is not what is shown"
    assert first == (told if why else "--- a/handler.py")
    assert [*list_unreadable_code({"handler.py": FileText(code)})] == ([told] if why else [])


@pytest.mark.row("T25")
def test_python_by_another_name_is_named_too(tmp_path: Path) -> None:
    """A program may be given any file, and a link may lead to it."""
    put(tmp_path, {"run": "# coding: utf-7\n# +AAo-print('more')\n", "notes": "# told\n", "own.py": "print()\n"})
    (tmp_path / "picture").write_bytes(b"\x89PNG\0")
    (tmp_path / "handler.py").symlink_to("notes")
    (tmp_path / "other.py").symlink_to("own.py")
    assert [*list_unreadable_code(read_contents(tmp_path))] == [
        "! handler.py is a link: what Python runs of it is notes",
        "! run is in utf-7: what Python runs of it is not what is shown",
    ]
