"""A program's output on a terminal, as a picture."""

from tests.terminal_picture import NO_BREAK, WIDTH, as_svg


def drawn(said: str) -> str:
    return as_svg([("say", said)]).replace(NO_BREAK, " ")


def test_colours_are_kept_and_other_sequences_are_not() -> None:
    assert '<tspan fill="#f07178">no</tspan><tspan> way</tspan>' in drawn("\x1b[31mno\x1b[0m\x1b[2K way")


def test_what_looks_like_markup_is_text() -> None:
    assert "&lt;script&gt;" in drawn("<script>")


def test_a_long_line_goes_on_in_the_next_row() -> None:
    assert f"<tspan>{'a' * WIDTH}</tspan>" in drawn("a" * (WIDTH + 1))
    assert "<tspan>a</tspan>" in drawn("a" * (WIDTH + 1))
