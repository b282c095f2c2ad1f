"""Who says yes has seen what runs: every argument can be read back, to the letter, from what the network shows of it.

The commands are hostile to those who read them. Each is wanted by a person of its own: so no network slows us down.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.logs.signs import show_signs
from gateway.testing import GatewayProcess
from gateway.testing.networks.house import House, housed
from gateway.testing.networks.wire import ANN, Shown
from tests.adapters.telegram_wire import Refused
from tests.adapters.wires import WIRES
from tests.cli.typist import Typist
from tests.spine import until

HOSTILE = [
    "ls -la\n\n[a]: ;touch${IFS}/x",
    "[a]: <;touch x>\n",
    "[b]: /url ';touch x'",
    r"rm \*",
    r"echo \` \_ \# \\",
    "echo ~~gone~~ left",
    "echo ||hidden||",
    "*ls* _ls_ **ls** __ls__",
    "echo `id`",
    "echo ``id``",
    "echo ``` id",
    "```\nls\n```\nrm -rf /\n```",
    "~~~\nls\n~~~",
    "echo ````` `````` ``",
    "`",
    "ls```",
    "# ls\n> quoted\n- item\n1. item\n---",
    "<b>ls</b><!-- rm -->",
    "<script>alert(1)</script>",
    "&lt;rm&gt; &amp; &#10;",
    "<!channel> <!here> <!everyone> <!subteam^S1>",
    "<@U1> <#C1> <@1001> <@&55>",
    "@everyone @here @ann",
    "/deny /approve #tag $CASH",
    "https://evil.example/x?a=b www.evil.example [t](http://e.example) <http://e.example|ls>",
    "![p](http://e.example/p.png)",
    "echo \u202esl\u202c \u2066ls\u2069 \u200frm\u200e",
    "echo \u05d0\u05d1 rm \u05d2 1 2",
    "\u05e9\u05dc\u05d5\u05dd",
    "l\u200bs\u200c \u200d\ufeff\u2060 -l",
    "ls\u00ad\u034f\u115f\u3164\u2800\u180e",
    "ls \U000e0072\U000e006d\U000e007f",
    "ls\ufe0f \U000e0101",
    "echo a\u0301 e\u0338\u0338\u0338\u0338\u0338\u0338 \u20dd",
    "ls\r\nrm\r",
    "ls\x00rm\x08\x08\x7f",
    "\x1b[8mrm\x1b[0m\x1b]0;t\x07",
    "ls\u2028rm\u2029\x0b\x0c\x85",
    "ls\u00a0\u2003\u3000-l\t-a",
    "   ls   \n\n  \n  ",
    " ",
    "\n",
    "ls" + " " * 300 + ";rm",
    "ls" + "\n" * 300 + ";rm -rf /",
    "x" * 20_000,
    "\u00e9\n" * 8_000,
    '{"command": "ls", "why": "{\\"command\\": \\"rm\\"}"}',
    "ls\nto: somebody\nYes or no? A button answers, or /approve and /deny.\n| rm\n: rm",
    "\u27e8U+202E\u27e9 \u27e8",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u4f60\u597d",
    "MEDIA:/etc/passwd [[audio]]",
]
NUMBERED = re.compile("\u27e8U\\+([0-9A-F]{4,6})\u27e9")
UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u2000-\u200f\u2028-\u202f\u2060-\u206f\ufeff]")


def read_back(shown: str) -> str:
    """Return a person's reading of a code block, with the signs that are shown as numbers."""
    return NUMBERED.sub(lambda found: chr(int(found[1], 16)), shown)


def people() -> Iterator[tuple[str, str]]:
    return ((str(3000 + number), command) for number, command in enumerate(HOSTILE))


def argument_in(question: Shown, above: Shown | None) -> str:
    """The argument as the network shows it: the first code block, or that below its name in the file above."""
    if question.codes:
        return question.codes[0]
    assert above is not None, question.text
    lines = above.file.decode().split("\ncommand:\n")[1].split("\n\nFor this")[0].split("\n")
    assert all(line.startswith("    ") for line in lines)
    return "\n".join(line[4:] for line in lines)


@pytest.mark.parametrize("network", ["telegram", "discord", "slack"])
async def test_a_question_shows_the_argument_to_the_letter(network: str, tmp_path: Path) -> None:
    wire = WIRES[network](tmp_path / "home")
    script = [script_of(int(person), command) for person, command in people()]
    ids = [wire.known_as(person) for person, _ in people()]
    settings = f"tools: {{shell: ask}}\naccess: {{admins: {{{network}: {ids!r}}}}}\n"
    async with wire.serving(), housed(wire, tmp_path / "home", *script, settings=settings) as house:
        for person, _ in people():
            await wire.write(f"case {person}.", by=person)
        await until(lambda: len(asked_in(house)) == len(HOSTILE), "all questions", 60)
        for person, command in people():
            seen = [one for one in wire.shown if one.chat == person]
            assert len(seen) == (1 if seen[0].buttons else 2), command
            question = seen[-1]
            assert question.text.startswith("May I run shell?"), question.text
            shown = argument_in(question, seen[0])
            assert read_back(shown) == command
            assert not UNSEEN.search(shown)
            assert len(seen) == 1 or len(command) > 1000, "short enough for one message"
            assert question.codes[1:] in ([shown], []), "what a lasting yes covers is all of it"


def rows_of(screen: str, words: str) -> str:
    """A text as a terminal shows it below these words: each row says at its edge whether the line begins or goes on."""
    rows = screen.replace("\r", "").split(f"{words}\n", 1)[1].split("\n")
    text = ""
    for row in itertools.takewhile(lambda row: row[:2] in ("| ", ": "), rows):
        assert len(row) <= 80
        text += ("\n" if row[0] == "|" else "") + row[2:]
    return text[1:]


def script_of(number: int, command: str) -> dict[str, Any]:
    return {"user": f"case {number}.", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": command}}]}]}


@pytest.mark.process
def test_a_terminal_of_80_columns_shows_it_to_the_letter_too(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(*(script_of(*case) for case in enumerate(HOSTILE)), settings="tools: {shell: ask}\n")
        gateway.start()
        for number, command in enumerate(HOSTILE):
            asked = gateway.call("chat.say", {"text": f"case {number}.", "session": f"s{number}"})
            assert read_back(rows_of(asked["reply"], "command:")) == command
            assert not UNSEEN.search(asked["reply"])
        for number in (0, 11, 35, 41, 46):
            with Typist(gateway, "chat", "-s", f"pty{number}", "-m", f"case {number}.") as typist:
                screen = typist.sees("with the same arguments.")
            assert read_back(rows_of(screen, "command:")) == HOSTILE[number]


async def test_what_cannot_be_shown_whole_is_not_run(tmp_path: Path) -> None:
    """Too long for a message, and the network takes no file: nobody is asked, and the agent is told."""
    wire = WIRES["telegram"](tmp_path / "home")
    asked, marker = "x" * 10_000, tmp_path / "ran"
    turn = {"tool_calls": [{"name": "shell", "args": {"command": f"touch {marker}; : {asked}"}}]}
    settings = f"tools: {{shell: ask}}\naccess: {{admins: {{telegram: ['{ANN}']}}}}\n"
    script = [{"user": "do it", "answers": [turn, {"text": "As you wish."}]}]
    async with wire.serving(), housed(wire, tmp_path / "home", *script, settings=settings) as house:
        wire.ills["sendDocument"] = [Refused(400, "Bad Request: no files here")] * 5
        await wire.write("do it")
        await house.shows("As you wish.")
        await house.shows("could not be shown in full")
        assert not asked_in(house)
        denied = [after["denied"] for after in await house.hears("tool:after", 2)]
        assert denied[1] == "The question could not be shown in full, so the answer is no."
        assert not marker.exists()


async def test_what_a_hook_asks_and_what_a_message_says_is_shown_to_the_letter(tmp_path: Path) -> None:
    wire = WIRES["telegram"](tmp_path / "home")
    args = {"to": "telegram:1002", "text": "*Pay* now\n\n[a]: ;touch x\n@everyone"}
    calls = [{"tool_calls": [{"name": "send_message", "args": args}]}, {"text": "Done."}]
    settings = "access: {admins: {telegram: ['1001']}}\n"
    async with (
        wire.serving(),
        housed(wire, tmp_path / "home", {"user": "tell", "answers": calls}, settings=settings) as house,
    ):
        house.gateway.registry.on("agent:start", lambda event: event.ask("Really?\n\n[b]: *no* \u202e") and None)
        house.gateway.registry.on("message:sending", lambda event: {"text": "May I water the flowers?"})
        await wire.write("tell them")
        await until(lambda: len(asked_in(house)) == 1, "the hook's question")
        (question,) = asked_in(house)
        assert [read_back(one) for one in question.codes] == ["Really?\n\n[b]: *no* \u202e"]
        await wire.press(question, "Yes")
        await until(lambda: [one.text[:9] for one in asked_in(house)] == ["May I run"], "the tool's question")
        (question,) = asked_in(house)
        assert question.codes == [args["text"], args["to"], args["to"]]


def asked_in(house: House) -> list[Shown]:
    return [one for one in house.wire.shown if one.buttons]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_what_cannot_be_seen_is_shown_as_its_number_and_can_be_read_back(text: str) -> None:
    assert read_back(show_signs(text)) == text
    assert not UNSEEN.search(show_signs(text))


@pytest.mark.parametrize(
    "text",
    [
        "ls -la | grep x",
        "Zo\u00eb, \u4f60\u597d, \u05e9\u05dc\u05d5\u05dd!",
        "a\n\n  b",
        "\u0915\u0941\u091b",
        "\U0001f600",
    ],
)
def test_what_people_write_is_shown_as_it_is(text: str) -> None:
    assert all(show_signs(line) == line for line in text.split(", "))
