"""Measure a turn without its model: one answer, 200 pieces, one tool call; beside model clients and other agents.

    .venv/bin/python -m bench.turn [--turns 30] [--rounds 3] [--peers FOLDER]

The peers live in environments of their own below FOLDER, which are made where they are missing; without it only ours is
measured, and the model clients. All talk to the same endpoint on loopback, which answers at once; they run in turn, and
the order changes with each round. `sdk` is the openai library with its typed stream, `ours` our model client alone,
`gateway` a turn of the agent with an observer on each of six events. The history grows by each turn, as in a chat.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.options import parse_options

HERE = Path(__file__).parent
MODELS = {"text": "one answer", "long": "200 pieces", "tool": "one tool call"}
FLOORS = ("sdk", "ours")
PEERS = {"strands": "strands-agents[openai]", "pydantic_ai": "pydantic-ai-slim[openai]", "hermes": "hermes-agent"}


def environments(folder: Path) -> dict[str, str]:
    """The interpreter of each peer."""
    for peer, package in PEERS.items():
        place = folder / peer
        if not (place / "whole").exists():  # one that was cut off is made again
            print(f"installing {package}", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
            subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", package], check=True)
            (place / "whole").touch()
    return {peer: str(folder / peer / "bin" / "python") for peer in PEERS}


def measure(python: str, who: str, model: str, turns: int, port: int) -> dict[str, Any]:
    url = f"http://127.0.0.1:{port}/v1"
    command = [python, str(HERE / "peers" / "turns.py"), who, url, model, str(turns)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{who}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(targets: dict[str, str], turns: int, rounds: int) -> dict[tuple[str, str], list[dict[str, Any]]]:
    endpoint = subprocess.Popen(
        [sys.executable, str(HERE / "peers" / "endpoint.py")], stdout=subprocess.PIPE, text=True
    )
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    try:
        assert endpoint.stdout
        port = int(endpoint.stdout.readline())
        for number in range(rounds):
            for who, python in list(targets.items())[:: 1 if number % 2 else -1]:
                for model in MODELS:
                    if model == "tool" and who in FLOORS:
                        continue
                    found.setdefault((who, model), []).append(measure(python, who, model, turns, port))
    finally:
        endpoint.kill()
        endpoint.wait()
    return found


def show(targets: dict[str, str], found: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    def middle(who: str, model: str, key: str) -> float:
        return float(statistics.median(time for part in found[who, model] for time in part[key])) * 1000

    for model, words in MODELS.items():
        print(f"\n{words}\n{'':14}{'p50 ms':>9}{'CPU ms':>9}{'to gateway':>12}{'first turn s':>14}")
        for who in targets:
            if (who, model) not in found:
                continue
            wall, cpu = middle(who, model, "times"), middle(who, model, "cpu")
            first = statistics.median(part["first"] for part in found[who, model])
            ratio = wall / middle("gateway", model, "times")
            print(f"{who:14}{wall:9.2f}{cpu:9.2f}{ratio:11.1f}x{first:14.2f}")
    # By processor time, which a busy machine falsifies least. A turn with a tool calls the model twice.
    client, turn = middle("ours", "text", "cpu"), middle("gateway", "text", "cpu")
    tool, pieces = middle("gateway", "tool", "cpu"), (middle("gateway", "long", "cpu") - turn) / 197 * 1000
    beside, tools = turn - client, tool - turn - client
    print(f"\nCPU of a turn beside the client: {beside:.2f} ms; a tool call: {tools:.2f} ms; a piece: {pieces:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, metavar="FOLDER")
    options = parse_options(parser, turns=3, rounds=1)
    targets = dict.fromkeys(("sdk", "ours", "gateway"), sys.executable)
    targets |= environments(options.peers) if options.peers else {}
    show(targets, run(targets, options.turns, options.rounds))


if __name__ == "__main__":
    main()
