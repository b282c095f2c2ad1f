"""Which lines of an answer name a file, as a whole and piece by piece."""

import pytest

from gateway.files.lines import FileLineFilter, split_file_lines

CASES = {
    "no such line": ("Here it is.\n", "Here it is.\n", ()),
    "one alone": ("MEDIA:/a/chart.png", "", ("/a/chart.png",)),
    "between lines": ("Look:\n\nMEDIA:chart.png\n\nThat is it.", "Look:\n\nThat is it.", ("chart.png",)),
    "quoted, with blanks": ("x\n  `MEDIA: a b.png`  \n", "x", ("a b.png",)),
    "one quoted in it": ('MEDIA:"/a/b c.png"', "", ("/a/b c.png",)),
    "an address": ("MEDIA:file:///a/b%20c.png", "", ("file:///a/b%20c.png",)),
    "several, each once": ("MEDIA:a\nMEDIA:b\nMEDIA:a", "", ("a", "b")),
    "in the middle of a line": ("see MEDIA:/a/b", "see MEDIA:/a/b", ()),
    "in a block of code": ("```\nMEDIA:/a\n```\nMEDIA:/b", "```\nMEDIA:/a\n```", ("/b",)),
    "without a name": ("MEDIA:\nx", "MEDIA:\nx", ()),
    "a sentence": ("MEDIA: is what he wrote, no path\nx", "MEDIA: is what he wrote, no path\nx", ()),
    "other letters": ("MEDIATE: it\nmedia:/a", "MEDIATE: it\nmedia:/a", ()),
}


@pytest.mark.parametrize(("text", "left", "names"), CASES.values(), ids=CASES)
def test_lines_that_name_files_go_from_the_text(text: str, left: str, names: tuple[str, ...]) -> None:
    assert split_file_lines(text) == (left, names)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(("text", "left", "names"), CASES.values(), ids=CASES)
def test_what_is_shown_while_it_is_written_never_names_one(
    text: str, left: str, names: tuple[str, ...], size: int
) -> None:
    """In pieces of whatever size; what is shown is what is left, but for empty lines."""
    lines, shown = FileLineFilter(), ""
    for at in range(0, len(text), size):
        shown += lines.feed(text[at : at + size])
        assert all(name not in shown.replace("```\nMEDIA:/a\n", "") for name in names if len(name) > 2)
    shown += lines.feed("\n")
    assert shown.split() == left.split()
