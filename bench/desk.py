"""Measure the command that a program on the desk runs before each tool, beside a Python that does nothing.

`.venv/bin/python -m bench.desk [--rounds N]`. A thread of this process is the gateway: it answers at once. Commands are
started in turn, so that a machine that is busy meanwhile is busy for all of them; the time of a command is the median.
Then a real gateway answers over http, in turn with a server that answers at once, each on a connection that stays open.
"""

import argparse
import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.options import parse_options
from gateway.config.home import Home, get_process_environment
from gateway.desk import ask
from gateway.testing import GatewayProcess

GOAL = 1.8  # times the Python that does nothing
WEB_GOAL = 3.0  # milliseconds more than a server that answers at once
WEB_ROUNDS = 10  # requests for each round of the commands
CALL = b'{"hook_event_name":"PreToolUse","session_id":"1","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}'
PYTHON = (sys.executable, "-I", "-S", "-E")


def answer_calls(accepting: socket.socket) -> None:
    """Let each call pass, as the gateway does if no hook wants it."""
    while True:
        with accepting.accept()[0] as connection:
            data = b""
            while not data.endswith(CALL):
                data += connection.recv(65536)
            connection.sendall(b"0 0\n")


def measure(commands: Mapping[str, Sequence[str]], environ: Mapping[str, str], rounds: int) -> dict[str, float]:
    """Return the median milliseconds from the start of each command to its end."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            began = time.perf_counter()
            subprocess.run(command, input=CALL, env=environ, stdout=subprocess.DEVNULL, check=True)
            taken[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(times) for name, times in taken.items()}


def answer_requests(accepting: socket.socket) -> None:
    """Answer each request of one connection at once."""
    with accepting.accept()[0] as connection:
        data = b""
        while piece := connection.recv(65536):
            data += piece
            if data.endswith(CALL):
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
                data = b""


def measure_web(addresses: Mapping[str, str], key: str, rounds: int) -> dict[str, float]:
    """Return the median milliseconds of a request to each address."""
    taken: dict[str, list[float]] = {name: [] for name in addresses}
    connections = {name: http.client.HTTPConnection(address) for name, address in addresses.items()}
    for _ in range(rounds):
        for name, connection in connections.items():
            began = time.perf_counter()
            connection.request("POST", "/desk/claude", CALL, {"Authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"{}")
            taken[name].append((time.perf_counter() - began) * 1000)
    for connection in connections.values():
        connection.close()
    return {name: statistics.median(times) for name, times in taken.items()}


def compare_web(rounds: int) -> None:
    """Print what a real gateway takes over http beside a server that answers at once."""
    with (
        tempfile.TemporaryDirectory() as folder,
        GatewayProcess(Path(folder)) as gateway,
        socket.create_server(("127.0.0.1", 0)) as accepting,
    ):
        gateway.script({"user": "", "text": "Hello."})
        gateway.start()
        key = gateway.cli("keys", "new", "laptop", "--as", "desk").stdout.strip()
        threading.Thread(target=answer_requests, args=(accepting,), daemon=True).start()
        own = gateway.call("status")["web"]["url"].removeprefix("http://")
        addresses = {"http, answers at once": f"127.0.0.1:{accepting.getsockname()[1]}", "http, the gateway": own}
        found = measure_web(addresses, key, rounds * WEB_ROUNDS)
    floor, asked = found.values()
    for what, value in found.items():
        print(f"{what:28}{value:8.2f} ms{value - floor:+8.2f} ms")
    verdict = "met" if asked - floor <= WEB_GOAL else "MISSED"
    print(f"goal: at most {WEB_GOAL:g} ms more, {verdict}; load {os.getloadavg()[0]:.1f}")


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as accepting:
        home = Home(Path(folder))
        home.desk_socket.parent.mkdir(parents=True)
        accepting.bind(str(home.desk_socket))
        accepting.listen()
        threading.Thread(target=answer_calls, args=(accepting,), daemon=True).start()
        words = (ask.__file__, "claude", "PreToolUse", "ask", "60", str(home.desk_socket))
        verb = (sys.executable, "-m", "gateway.cli", "hooks", "ask", "claude")
        commands = {
            "python -I -S -c pass": (sys.executable, "-I", "-S", "-c", "pass"),
            "the command of `connect`": (*PYTHON, *words),
            "hermes-gateway hooks ask": verb,
        }
        found = measure(commands, get_process_environment() | {"HERMES_HOME": folder}, rounds)
    floor, asked, _ = found.values()
    for what, value in found.items():
        print(f"{what:28}{value:8.1f} ms{value / floor:8.2f} times")
    verdict = "met" if asked / floor <= GOAL else "MISSED"
    print(f"goal: at most {GOAL:g} times, {verdict}; load {os.getloadavg()[0]:.1f}")
    compare_web(rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    main(parse_options(parser, rounds=5).rounds)
