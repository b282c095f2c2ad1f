"""The rest of the file of `connect --script`, for a machine without a gateway; `ask.py` is the beginning of that file.

`python3 FILE connect` copies the file to its place and writes the lines into the program's settings;
`python3 FILE disconnect` takes them out.
"""

import http.client
import json
import os
import pathlib
import shlex
import sys
import time
import urllib.parse
from posix import environ
from typing import Any

from gateway.desk.ask import main

PROGRAM, KEY, VARIABLE, IS_HOME, FOLDER, FILE = "", "", "", False, "", ""  # the file has values here
ENTRIES: dict[str, dict[str, Any]] = {}
# Each program has a copy of its own, with its key and its lines.
PLACE = pathlib.Path.home() / ".local" / "share" / "hermes-gateway" / PROGRAM / "desk" / "ask.py"
SET = os.fsdecode(environ.get(VARIABLE.encode(), b""))  # the folder of the settings, or the home around it
SETTINGS = (pathlib.Path(SET) if SET and not IS_HOME else pathlib.Path(SET or pathlib.Path.home()) / FOLDER) / FILE
TOKEN = os.urandom(16).hex()  # the same at each try, so that the gateway finds the question again
try:  # the start of this process orders the events of this host
    BEGAN = pathlib.Path("/proc/self/stat").read_text("utf-8").rpartition(")")[2].split()[19]
except OSError:  # a system without /proc
    BEGAN = str(time.monotonic_ns())
HEADERS = {"Authorization": f"Bearer {KEY}", "X-Desk-Token": TOKEN, "X-Desk-Began": BEGAN}
MISSING = "hermes-gateway is connected in these settings, and its lines would have no effect"


def connect(url: str) -> http.client.HTTPConnection:
    at = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
    connection = kind(at.netloc, timeout=10)
    connection.connect()
    return connection


def exchange(connection: http.client.HTTPConnection, request: bytes, end: float) -> bytes:
    """Post the request, and return the answer; if a proxy breaks it off, the command asks again."""
    connection.sock.settimeout(max(end - time.monotonic(), 1))
    try:
        connection.request("POST", "/desk", request, HEADERS)
        response = connection.getresponse()
        if 400 <= response.status < 500:  # the key is gone, or too many wrong ones came from here
            raise PermissionError
        return response.read() if response.status == http.client.OK else b""
    except http.client.HTTPException as error:
        raise OSError(str(error)) from None
    finally:
        connection.close()


def make_lines() -> dict[str, dict[str, Any]]:
    start = shlex.join([sys.executable, "-I", "-S", "-E", str(PLACE)])
    return {event: entry | {"command": f"{start} {entry['command']}"} for event, entry in ENTRIES.items()}


def change_settings(*, is_connected: bool) -> None:
    """Take our lines out, write them again if they are wanted, and leave what is there as it is."""
    kept = json.loads(SETTINGS.read_text("utf-8") or "{}") if SETTINGS.exists() else {}
    hooks = kept.setdefault("hooks", {})
    for event in list(hooks):
        hooks[event] = [one for one in hooks[event] if str(PLACE) not in json.dumps(one)]
        if not hooks[event]:
            del hooks[event]
    for event, entry in make_lines().items() if is_connected else ():
        hooks.setdefault(event, []).append({"hooks": [entry]})
    if not hooks:
        del kept["hooks"]
    write_private(SETTINGS, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{SETTINGS} has {'the lines' if is_connected else 'no line'} of hermes-gateway\n")


def write_private(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.new")
    part.touch(0o600)
    part.write_text(text, "utf-8")
    part.replace(path.resolve())


def find_fault(change: dict[str, Any]) -> str:
    """Return why the program must not take over this change of settings; "" if it may."""
    changed, own = (pathlib.Path(one).read_text("utf-8") for one in (change["file_path"], SETTINGS))
    is_whole = all(json.dumps(entry)[1:-1] in json.dumps(json.loads(own)) for entry in make_lines().values())
    return "" if is_whole and "disableAllHooks" not in changed else MISSING


def run(words: list[str]) -> int:
    match words:
        case ["connect"]:
            write_private(PLACE, pathlib.Path(__file__).read_text("utf-8"))
            change_settings(is_connected=True)
        case ["disconnect"]:
            change_settings(is_connected=False)
            PLACE.unlink(missing_ok=True)
        case [_, "ConfigChange", *_]:
            if why := find_fault(json.load(sys.stdin)):
                sys.stdout.write(json.dumps({"decision": "block", "reason": why}))
        case [_, _, _, _, _]:
            return main(*words)
        case _:
            sys.stdout.write(f"python3 {__file__} connect, or disconnect\n")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
