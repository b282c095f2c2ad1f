"""Asks the gateway for a program on this machine: `connect` writes this command into the program's own settings.

It runs as `python -I -S -E ask.py PROGRAM EVENT DOWN SECONDS SOCKET`, before each tool, so it has to start fast: beside
modules that Python has loaded at that time it imports `_socket` alone. It reads no JSON: the gateway takes the bytes of
the program as they came, and returns an exit code and a text. If the gateway ends meanwhile, the command asks again,
and the gateway finds the question that it has put already. The answer comes within these seconds, in any case.
"""

import _socket
import sys
import time
from posix import environ

TRIES = 20  # of the first connection, with a pause after each
TRIES_AGAIN = 600  # more after the first connection, and never again: so long a restart of the gateway may take
PAUSE = 0.1
LONGEST_SILENCE = 25.0  # a gateway that holds a question sends an empty line every ten seconds
DENIED = 2  # the exit code that each program takes as a denial, with the reason on the standard error
REASON = "hermes-gateway does not answer: start it with `hermes-gateway run`, or see `hermes-gateway doctor`"
ASK = (
    '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",'
    '"permissionDecisionReason":"hermes-gateway does not answer"}}'
)
DENY = (
    '{"hookSpecificOutput":{"hookEventName":"PermissionRequest",'
    '"decision":{"behavior":"deny","message":"hermes-gateway does not answer"}}}'
)


def ask_gateway(program: str, event: str, seconds: float, path: str, body: bytes) -> "tuple[int, str] | None":
    """Return the gateway's exit code and text; None if no gateway answers in time."""
    attended = environ.get(b"CLAUDE_CODE_SESSION_ATTENDED", b"-")
    request = f"{program} {event} {attended.decode() or '-'} {len(body)}\n".encode() + body
    is_waited_for = program == "gemini" and event != "BeforeTool"  # it waits, though nothing is asked
    tries, more = 1 if is_waited_for else TRIES, TRIES_AGAIN
    end = time.monotonic() + seconds
    while tries > 0 and time.monotonic() < end:
        try:
            connection = connect(path)
            tries, more = tries + more, 0
            head, _, text = exchange(connection, request, end).partition(b"\n")
            code, _, length = head.partition(b" ")
            if length and len(text) == int(length):
                return int(code), text.decode()
        except PermissionError:  # the key is gone, or this user may not ask: no later try is answered
            return None
        except (OSError, ValueError):  # no gateway, or an answer of something else
            pass
        tries -= 1
        time.sleep(PAUSE)
    return None


def connect(path: str) -> "_socket.socket":
    connection = _socket.socket(_socket.AF_UNIX)
    connection.settimeout(LONGEST_SILENCE)
    connection.connect(path)
    return connection


def exchange(connection: "_socket.socket", request: bytes, end: float) -> bytes:
    """Send the request, and return what comes, up to this moment."""
    data = b""
    try:
        connection.sendall(request)
        piece = b"\n"
        while piece and (left := end - time.monotonic()) > 0:
            connection.settimeout(min(left, LONGEST_SILENCE))
            piece = connection.recv(65536)
            data = (data + piece).lstrip()
    finally:
        connection.close()
    return data


def make_own_answer(program: str, event: str, down: str) -> "tuple[int, str]":
    """Answer without the gateway, by the setting `desk.down`."""
    if event == "PermissionRequest":
        return 0, DENY if down == "deny" else ""
    if down == "pass" or event not in ("PreToolUse", "BeforeTool"):
        return 0, ""
    # The other programs run what is answered with `ask`, or wait for ever; and so does Claude without a person.
    is_attended = program == "claude" and environ.get(b"CLAUDE_CODE_SESSION_ATTENDED") == b"1"
    return (0, ASK) if down == "ask" and is_attended else (DENIED, REASON)


def write_answer(answer: "tuple[int, str]") -> int:
    """Write the text where the program reads it, and return the exit code."""
    code, text = answer
    (sys.stderr if code else sys.stdout).write(text)
    return code


def main(program: str, event: str, down: str, seconds: str, path: str) -> int:
    answer = ask_gateway(program, event, float(seconds), path, sys.stdin.buffer.read())
    return write_answer(answer or make_own_answer(program, event, down))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
