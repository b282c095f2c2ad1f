"""`chat` as a person sees it: a terminal, a prompt, keys, and the resulting screen."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.chat_prompt import Keyboard
from gateway.cli.chat_screen import LONG_SILENCE, SIGNS, SILENCE, STILL_WORKING, TAKEN_BACK, ChatScreen
from gateway.testing import GatewayProcess
from tests.cli.typist import Typist

pytestmark = pytest.mark.process


def piece(number: int, text: str) -> dict[str, Any]:
    return {"turn_id": "t", "place": [1, number], "text": text}


def test_a_long_silence_shows_that_something_goes_on() -> None:
    screen = ChatScreen()
    screen.wait_for_answer()
    assert screen.present == ""
    screen._heard_at = time.monotonic() - SILENCE
    assert STILL_WORKING in screen.present
    screen.show_notification("delta", piece(1, "half"))
    assert screen.present == "half"
    screen._heard_at = time.monotonic() - LONG_SILENCE
    above, below = screen.present.split("\n")
    assert (above, STILL_WORKING in below, "10 s" in below) == ("half", True, True)
    screen.result({"status": "ok", "reply": "half", "turn_id": "t"})
    assert screen.present == ""


def test_the_tools_of_a_turn_are_named_until_more_is_written() -> None:
    screen = ChatScreen()
    screen.wait_for_answer()
    screen.show_notification("delta", piece(1, "") | {"tools": "🔧 `calculate` …"})
    assert screen.present in [f"{sign} 🔧 calculate" for sign in SIGNS]
    screen.show_notification("delta", piece(2, "half"))
    assert screen.present == "half"


@pytest.mark.parametrize("streamed", ["Here it is.\nLook.", "Here it is.\nLook.\n", "Here it is.\nLook.\n\n"])
def test_the_files_of_an_answer_stand_below_it_once(streamed: str, capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen()
    screen.show_notification("delta", piece(1, streamed))
    screen.show_notification("reply", {"id": "1", "turn_id": "t", "text": "Here it is.\nLook.\n[file a.csv: /w/a.csv]"})
    assert capsys.readouterr().out.split("\n") == [
        *["Here it is.", "Look."],
        *streamed.split("\n")[3:],
        "[file a.csv: /w/a.csv]",
        "",
        "",
    ]


def test_an_answer_that_is_begun_anew_says_that_what_stands_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatScreen()
    screen.show_notification("delta", piece(1, "First\nsec"))
    screen.show_notification("delta", piece(2, "Other") | {"void": True})
    screen.show_notification("reply", {"id": "1", "turn_id": "t", "text": "Other"})
    assert capsys.readouterr().out.split("\n") == ["First", "sec", TAKEN_BACK, "Other", "", ""]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.start()
        yield gateway


def test_a_person_talks_and_leaves(gateway: GatewayProcess) -> None:
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("what is 6 * 7\r")
        person.sees("The result is 42.")
        person.type("/help\r")
        person.sees("/new")
        person.type("\x04")
        assert person.leaves() == 0


ASKS = "def handle(event_type, context):\n    context.ask('May I add?')\n"


def list_states(gateway: GatewayProcess) -> list[tuple[str, str]]:
    return [(one["name"], one["state"]) for one in gateway.call("hooks.list")["hooks"]]


def test_what_is_asked_and_what_is_unknown_stands_there_once(gateway: GatewayProcess) -> None:
    gateway.add_hook("asks", {"HOOK.yaml": "intercepts: [tool:before]\n", "handler.py": ASKS})
    gateway.until(lambda: ("asks", "loaded") in list_states(gateway))
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("/modle\r")
        person.sees("Unknown command here: /modle")
        person.type("what is 6 * 7\r")
        assert person.sees("May I add?").count("Unknown command here") == 0
        person.type("yes\r")
        assert person.sees("The result is 42.").count("May I add?") == 0


def test_commands_are_completed(gateway: GatewayProcess) -> None:
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("/who\t")
        person.sees("ami")
        person.type("\r")
        person.sees("terminal user owner")
        person.type("what /who\tis\r")
        person.sees("what /whois")


def test_a_ctrl_d_while_a_line_is_printed_is_not_the_terminals() -> None:
    """The editor calls this around what is printed above its prompt."""
    terminal, inner = pty.openpty()
    try:
        with os.fdopen(inner) as stdin:
            keyboard = Keyboard(stdin)
            with keyboard.raw_mode():
                with keyboard.cooked_mode():
                    os.write(terminal, b"\x04x")
                    select.select([terminal], [], [], 0.3)  # the line discipline has had them, and would echo here
                assert os.read(inner, 2) == b"\x04x"
    finally:
        os.close(terminal)


def test_a_line_of_before_is_there_again(gateway: GatewayProcess) -> None:
    for keys in ("what is 6 * 7\r", "\x1b[A\r"):
        with Typist(gateway, "chat") as person:
            person.sees("/help lists the commands")
            person.type(keys)
            person.sees("The result is 42.")


def test_ctrl_c_stops_the_turn_and_not_the_conversation(gateway: GatewayProcess) -> None:
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("count to 30 slowly\r")
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
        person.type("\x03")
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 0)
        person.type("what is 6 * 7\r")
        assert person.sees("The result is 42.").count("Stopped.") == 1


def test_an_answer_grows_on_the_screen_line_by_line_and_word_by_word(gateway: GatewayProcess) -> None:
    gateway.stop()
    chunks = ["First", " line\nand", " second", *[" long"] * 25, " line"]  # longer than this machine may stand still
    gateway.script({"user": "tell", "answers": [{"chunks": chunks, "delay": "400ms"}]})
    gateway.start()
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("tell\r")
        person.sees("First line\n")
        person.sees("and")
        person.sees("second")
        assert gateway.call("status")["turns"]["running"] == 1
        person.sees(f"and second{' long' * 25} line")


def test_whoever_sits_at_the_prompt_learns_that_the_gateway_has_gone(gateway: GatewayProcess) -> None:
    with Typist(gateway, "chat") as person:
        person.sees("/help lists the commands")
        person.type("half a line")
        person.sees("half a line")
        gateway.stop()
        person.sees("The gateway went away")
        assert person.leaves() == 3


def test_a_pipe_is_answered_line_by_line(gateway: GatewayProcess) -> None:
    command = [sys.executable, "-m", "gateway.cli", "chat", "--session", "work"]
    lines = "what is 1 + 1\n\nwhat is 2 + 2\n"
    done = subprocess.run(command, env=gateway.environ, input=lines, capture_output=True, text=True, check=True)
    assert done.stdout == "The result is 2.\nThe result is 4.\n"


def test_an_empty_message_is_no_message(gateway: GatewayProcess) -> None:
    said = gateway.cli("chat", "-m", " ")
    assert (said.returncode, said.stdout) == (2, "")
    assert "--message is empty" in said.stderr


def test_who_asked_a_gateway_that_is_killed_is_told_what_becomes_of_it(gateway: GatewayProcess) -> None:
    command = [sys.executable, "-m", "gateway.cli", "chat", "-m", "count to 30 slowly"]
    with subprocess.Popen(command, env=gateway.environ, stderr=subprocess.PIPE, text=True) as asking:
        gateway.until(lambda: gateway.call("status")["turns"]["running"] == 1)
        gateway.kill()
        _, said = asking.communicate()
    assert asking.returncode == 3
    assert "kept, and answered when it is back" in said


@pytest.mark.row("T29")
def test_what_an_answer_says_cannot_act_on_the_terminal(gateway: GatewayProcess) -> None:
    with Typist(gateway, "chat", "-m", "/title \x1b]0;owned\x07\x1b[31mred") as typist:
        assert "\x1b]0;" not in typist.sees(r"\x1b[31mred")


RUN = {"user": "run", "answers": [{"tool_calls": [{"name": "shell", "args": {"command": "id -u"}}]}, {"text": "Did."}]}


def test_no_word_answers_a_question_that_was_not_seen(tmp_path: Path) -> None:
    """Nor one that an earlier process has shown, unless it can be nothing but an answer."""
    with GatewayProcess(tmp_path / "home") as gateway:
        gateway.script(RUN, RUN)
        gateway.start()
        assert "id -u" in gateway.cli("chat", "-m", "run").stdout
        other = gateway.cli("chat", "-m", "what time is it?")
        assert (other.returncode, "id -u" in other.stdout) == (1, True)
        assert "what you wrote was not sent" in other.stderr
        assert "hermes-gateway chat -m ANSWER" in other.stderr
        assert gateway.cli("chat", "-m", "yes").stdout == "Did.\n"
        assert gateway.say("run")["status"] == "waiting"
        gateway.kill()
        gateway.start()
        early = gateway.cli("chat", "-m", "yes")
        assert (early.returncode, "id -u" in early.stdout) == (1, True)  # nobody was shown it by this gateway
        with Typist(gateway, "chat") as person:
            person.sees("| id -u")
            person.sees("For this session is written /approve session")
            person.answers("Yes or no? Write it, or /approve and /deny.", "yes\r")
            person.sees("Did.")
