"""What an update changes is seen before a yes, whatever its author does that it is not."""

import pytest

from gateway.cli.hooks.differences import FileText, describe_differences

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
        "picture is no text, and differs",
        "run is a program",
    ]
