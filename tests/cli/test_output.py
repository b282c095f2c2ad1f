"""The output of commands: for people on a terminal, for people in a pipe, for programs."""

import json
import os
import pty
import subprocess
import sys

import pytest

from gateway.cli.output import apply_style, show_fields, show_json, show_table
from gateway.cli.status import describe_hooks
from gateway.cli.table import fold_block
from gateway.hooks.folders.calls import describe_help

WHY = "it is as it is, and why nobody knows"
TABLE = f"from gateway.cli.output import show_table; show_table(['name', 'what'], [['a', '{WHY} {WHY}']])"
LASTS = "import time; from gateway.cli.output import show_progress\n"
LASTS += "with show_progress('[red]{it}', {}): time.sleep(1.8)"


def on_a_terminal(code: str, width: int, **environ: str) -> str:
    """Return a program's output on a terminal that is `width` columns wide."""
    keeper, end = pty.openpty()
    os.set_blocking(keeper, True)
    subprocess.run(["stty", "columns", str(width)], stdin=end, check=True)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=end, stderr=end, stdin=end, env={**os.environ, **environ}
    ) as program:
        os.close(end)
        shown = b""
        while True:
            try:
                shown += (part := os.read(keeper, 4096))
            except OSError:
                break
            if not part:
                break
        assert program.wait() == 0
    os.close(keeper)
    return shown.decode()


def in_a_pipe(code: str) -> str:
    command = [sys.executable, "-c", code.format("None", it="it")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_json_is_one_object_with_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"name": "ü"}, version=2)
    assert json.loads(capsys.readouterr().out) == {"schema_version": 2, "name": "ü"}


def test_a_table_in_a_pipe_is_whole_and_plain(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["name", "what"], [["a", "x" * 200], ["日本", None]])
    assert capsys.readouterr().out.splitlines() == ["name  what", "a     " + "x" * 200, "日本"]


def test_foreign_text_cannot_act_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["a"], [["x\x1b[2Jy\nz"]])
    assert capsys.readouterr().out == "a\nx\\x1b[2Jy\\nz\n"


def test_an_empty_table_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["a"], [], empty="no sessions")
    assert capsys.readouterr().out == "no sessions\n"


def test_fields_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    show_fields([("a", 1), ("long", "x")])
    assert capsys.readouterr().out == "a     1\nlong  x\n"


def show_rows(headers: list[str], *rows: list[str], width: int = 40) -> list[str]:
    """The lines of a table on a terminal that is so wide."""
    code = f"from gateway.cli.output import show_table; show_table({headers}, {list(rows)})"
    lines = on_a_terminal(code, width, NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= width
    return lines


def test_a_table_has_colours_and_a_long_text_stands_below_its_row() -> None:
    shown = on_a_terminal(TABLE, 40, TERM="xterm").splitlines()
    assert shown[0] == "\x1b[1mname  what\x1b[0m"
    assert [line.rstrip() for line in shown[1:]] == ["a", *[f"  {WHY}"] * 2]


def test_a_text_that_finds_room_stands_beside_its_row() -> None:
    why = "the server is down, and nobody knows for how long yet"
    assert show_rows(["hook", "state", ""], ["a", "up", "well"], ["b", "down", why], ["c", "up", ""]) == [
        "hook  state",
        "a     up     well",
        "b     down",
        "  the server is down, and nobody knows",
        "  for how long yet",
        "c     up",
    ]


def test_long_cells_are_folded_and_nothing_is_cut() -> None:
    rows = [["a-name-of-a-hook", "agent:start tool:* llm:before", "7", "just now"], ["b", "tool:*", "0", ""]]
    assert show_rows(["name", "events", "calls", "last"], *rows, width=44) == [
        "name              events       calls  last",
        "a-name-of-a-hook  agent:start  7      just",
        "                  tool:*              now",
        "                  llm:before",
        "b                 tool:*       0",
    ]


def test_a_word_is_broken_where_there_is_no_room_for_it() -> None:
    assert show_rows(["id", "as", "made"], ["x" * 30, "operator", "just now"]) == [
        "id                    as        made",
        "xxxxxxxxxxxxxxxxxxxx  operator  just now",
        "xxxxxxxxxx",
    ]


def test_a_column_that_says_nothing_leaves_its_room_to_others() -> None:
    rows = [["a-name-of-a-hook", "0", "3", "", "7.5 ms"], ["b", "0", "0", "", ""]]
    assert show_rows(["name", "failed", "calls", "owed", "p95"], *rows) == [
        "name              calls  p95",
        "a-name-of-a-hook  3      7.5 ms",
        "b                 0",
    ]


def test_wide_signs_are_folded_by_the_columns_that_they_take() -> None:
    assert show_rows(["name", "as"], ["日本" * 5, "x"], width=16) == [
        "name          as",
        "日本日本日本  x",
        "日本日本",
    ]


def test_a_long_value_goes_on_below_itself_and_a_long_line_in_the_next() -> None:
    code = "from gateway.cli.output import show_fields, print_lines; "
    code += "show_fields([('name', 'short'), ('what', 'word ' * 20)]); print_lines('! ' + 'word ' * 20, '')"
    lines = on_a_terminal(code, 40, NO_COLOR="1").splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[2].startswith("      word")
    assert " ".join(lines).count("word") == 40


BLANKS = " \u00a0\u3000" * 30
PADDED = [f"hello{BLANKS}network     none", f"`hermes-gateway {'x' * 14} network     none`", f"{'x' * 30} network none"]


@pytest.mark.row("T29")
@pytest.mark.parametrize("text", PADDED)
def test_words_of_others_make_no_line_that_looks_like_ours(text: str) -> None:
    """Neither by blanks up to the end of a line, nor as a command, which would stay in one."""
    code = f"from gateway.cli.output import print_data, show_fields; text = {text!r}; print_data(text, '')\n"
    shown = on_a_terminal(f"{code}show_fields([('what', text)], is_whole=True)", 40, NO_COLOR="1").splitlines()
    assert max(map(len, shown)) <= 40
    assert [line for line in shown if line.startswith("network")] == []
    assert [line.split("none")[0] for line in shown if "none" in line] != []


def test_a_line_of_code_that_goes_on_says_so() -> None:
    code = "from gateway.cli.output import print_code; print_code('+x = 1' + ' ' * 34 + '-deny()')"
    first, rest = on_a_terminal(code, 40, NO_COLOR="1").splitlines()
    assert (first.rstrip(), rest.split()) == ("+x = 1", ["...", "-deny()"])


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"FORCE_COLOR": "0"}])
def test_colours_can_be_refused(environ: dict[str, str]) -> None:
    assert "\x1b" not in on_a_terminal(TABLE, 40, **environ)


def test_what_looks_like_markup_and_letters_of_every_script_stay_as_they_are() -> None:
    texts = ["[red]danger[/red] :smile:", "שלום עולם", "日本語", "👨‍👩‍👧 e\u0301"]
    shown = show_rows(["name", "what"], *([text, "x" * 12] for text in texts), width=60)
    assert [line.removesuffix("x" * 12).rstrip() for line in shown[1:]] == texts


def test_a_word_that_is_longer_than_a_line_stays_whole_below_its_row() -> None:
    url = "https://example.org/" + "x" * 60
    code = f"from gateway.cli.output import show_table; show_table(['a', ''], [['b', 'look at {url} for it']])"
    assert on_a_terminal(code, 40, NO_COLOR="1").split() == ["a", "b", "look", "at", url, "for", "it"]


def test_what_lasts_has_a_bar_on_a_terminal_alone() -> None:
    bar = on_a_terminal(LASTS.format("lambda: (1, 2)", it="it"), 80, TERM="xterm")
    assert ("[red]it" in bar, "50%" in bar, "━" in bar, bar.endswith("\x1b[2K")) == (True, True, True, True)
    for environ in ({"TERM": "dumb"}, {}):
        shown = on_a_terminal(LASTS.format("None", it="it"), 80, **environ) if environ else in_a_pipe(LASTS)
        assert shown.replace("\r", "") == "[red]it ...\n"


def test_colours_can_be_forced() -> None:
    code = "from gateway.cli.output import apply_style; print(apply_style('x', 'red'))"
    told = subprocess.run([sys.executable, "-c", code], env={"FORCE_COLOR": "1"}, capture_output=True, text=True)
    assert told.stdout == "\x1b[31mx\x1b[0m\n"
    assert apply_style("x", "red") == "x"


SENTENCES = "the model says nothing of it, and whoever asked it is told so; see: hermes-gateway logs --follow -n 9"
CODE = "result = first_name_of(person) or last_name_of(person) or the_name_of_all_of_them"


@pytest.mark.parametrize(
    "call",
    [
        "print_text(text)",
        "print_note(text)",
        "print(AnswerFolder().fold(text))",
        "print(fold_log(sys.stdout, text))",
        "_print_error(text)",
        "_parse_command_line([text])",
    ],
)
def test_words_are_whole_on_a_terminal(call: str) -> None:
    code = "import sys; from gateway.cli import _parse_command_line, _print_error\n"
    code += "from gateway.cli.chat_screen import AnswerFolder; from gateway.cli.output import *\n"
    code += f"from gateway.cli.output import fold_log\ntext = {SENTENCES!r}\n"
    code += f"try: {call}\nexcept SystemExit: pass"
    shown = on_a_terminal(code, 60, NO_COLOR="1")
    lines = shown.replace("\r", "").splitlines()
    assert len(lines) > 1
    assert [line for line in lines if len(line) > 60] == []
    assert " ".join(map(str.strip, lines)).count(SENTENCES[:58]) == 1
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert SENTENCES[:58] in f"{piped.stdout}{piped.stderr}"


def test_what_helps_against_a_failing_hook_is_read_and_copied_on_80_columns() -> None:
    lines = fold_block(describe_help("greet"), 80).splitlines()
    assert max(map(len, lines)) <= 80
    for verb in ("info", "disable"):
        assert any(f"hermes-gateway hooks {verb} greet" in line for line in lines)


def test_what_is_copied_stays_in_one_line() -> None:
    """Code is fenced or set in; a paragraph of a list is set in, too."""
    command = "hermes-gateway hooks install /home/somebody/hooks/a-hook --yes"
    code = "from gateway.cli.chat_screen import AnswerFolder; from gateway.cli.output import print_text; "
    whole = ["```", CODE, "```", "", f"    {CODE}", "", f"\t{CODE}"]
    answer = "\n".join([*whole, CODE, f"    {CODE}", "1. so", "", f"    {CODE}"])
    code += f"print_text('it is there already: {command}'); print(AnswerFolder().fold({answer!r}))"
    lines = on_a_terminal(code, 40, NO_COLOR="1").replace("\r", "").splitlines()
    assert lines[:2] == ["it is there already:", command]
    assert lines[2 : len(whole) + 2] == [line.replace("\t", "    ") for line in whole]
    assert max(map(len, lines[len(whole) + 2 :])) <= 40


def test_status_says_how_far_durable_hooks_are_behind() -> None:
    hooks = {"loaded": 2, "broken": 1}
    assert describe_hooks({"hooks": hooks, "behind": {}}) == "2 loaded, 1 broken"
    assert describe_hooks({"hooks": hooks, "behind": {"audit": 62.4}}) == "2 loaded, 1 broken; behind: audit 1 min 2 s"
    assert describe_hooks({"hooks": {}}) == "none", "a gateway of an earlier version says nothing of it"
